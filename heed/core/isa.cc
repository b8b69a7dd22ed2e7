#include "heed/core/isa.h"

#include <hwy/targets.h>
#include <oneapi/dnnl/dnnl.h>

#include <cstdlib>
#include <string_view>

#include "heed/core/check.h"

namespace heed {
namespace {

// Highway 1.0 resets disabled targets when the supported ones are queried again, so they are queried here, once.
std::string choose() {
  const int64_t targets = hwy::SupportedTargets();
  const char* wish = std::getenv("HEED_ISA");
#if defined(__x86_64__)
  constexpr int64_t all512 = HWY_AVX3 | HWY_AVX3_DL;
  const std::string_view level = wish == nullptr ? "" : wish;
  if (level == "avx512") {
    check<UsageError>((targets & HWY_AVX3) != 0, "HEED_ISA=avx512: this machine has no AVX-512");
    return "avx512";
  }
  if (level == "avx2") {
    hwy::DisableTargets(all512);
    dnnl_set_max_cpu_isa(dnnl_cpu_isa_avx2);
    return targets & HWY_AVX2 ? "avx2" : "baseline";
  }
  if (level == "baseline") {
    hwy::DisableTargets(all512 | HWY_AVX2 | HWY_SSE4 | HWY_SSSE3);
    dnnl_set_max_cpu_isa(dnnl_cpu_isa_sse41);
    return "baseline";
  }
#endif
  if (wish != nullptr && *wish != '\0' && std::string_view(wish) != "best")
    fail<UsageError>("HEED_ISA is '", wish, "', expected avx512, avx2, baseline or best");
#if defined(__x86_64__)
  if (targets & HWY_AVX3) return "avx512";
  if (targets & HWY_AVX2) return "avx2";
#elif defined(__aarch64__)
  if (targets & HWY_NEON) return "neon";
#endif
  return "baseline";
}

}  // namespace

std::string instruction_set() {
  static const std::string chosen = choose();
  return chosen;
}

void apply_instruction_set() { instruction_set(); }

}  // namespace heed
