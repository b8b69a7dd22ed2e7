#include "heed/models/finite.h"

#include <algorithm>
#include <cmath>

#include "heed/ops/all_finite.h"

namespace heed {

void check_finite(const Model& model, const Tensor& out, std::span<const int64_t> lengths) {
  const NoGrad no_grad;
  if (out.count() == 0 || all_finite(out)) return;
  const int64_t B = out.size(0), each = out.count() / B, token = lengths.empty() ? each : each / out.size(1);
  const std::vector<float> values = out.to_vector<float>();
  for (int64_t b = 0; b < B; ++b) {
    const auto begin = values.begin() + b * each;
    const int64_t counts = lengths.empty() ? each : lengths[static_cast<size_t>(b)] * token;
    if (std::all_of(begin, begin + counts, [](float x) { return std::isfinite(x); })) continue;
    const std::string& weights = model.params().nonfinite();
    throw NonfiniteOutput(
        "the output of " + model.architecture() + " is NaN or infinite: " +
            (weights.empty() ? "its weights are finite, but they or values in its config.json are too large" : "it has " + weights),
        b);
  }
}

}  // namespace heed
