// Cheaper attention: linear attention, full and causal, channel attention, and attention with pooled keys.
#include "bench/bench.h"
#include "heed/attention/attention.h"
#include "heed/attention/channel_attention.h"
#include "heed/attention/linear_attention.h"
#include "heed/attention/pooled_keys.h"

namespace heed::bench {
namespace {

double product(const Shape& sizes) { return static_cast<double>(count(sizes)); }

}  // namespace

std::vector<Benchmark> cheaper_benchmarks() {
  std::vector<Benchmark> list;
  for (const bool train : {false, true}) {
    const auto add_benchmark = [&](const char* op, const Shape& x, double flops, const Function& function) {
      list.push_back({name_of(std::string(op) + (train ? "/train/n" : "/forward/n") + std::to_string(x[2]), x), Unit::flops, flops,
                      (train ? train_call : forward_call)({x, x, x}, function)});
    };
    // Minimal work: a D x D state is updated by every key and read by every query; backward has four such products more. The masked
    // products inside chunks, which the causal form adds, are not counted.
    for (const Shape& x : {Shape{1, 8, 512, 64}, Shape{1, 2, 2048, 64}, Shape{1, 1, 8192, 64}})
      for (const bool causal : {false, true}) {
        const double flops = (train ? 6 : 2) * 2 * product(x) * 64;
        add_benchmark(causal ? "causal_linear_attention" : "linear_attention", x, flops,
                      [causal](const Tensors& t) { return linear_attention(t[0], t[1], t[2], {.causal = causal}); });
      }
    // The channel groups of DaViT-Tiny's stages for images of 224 x 224; two products forward and four backward.
    for (const Shape& x : {Shape{1, 3, 3136, 32}, Shape{1, 6, 784, 32}, Shape{1, 12, 196, 32}})
      add_benchmark("channel_attention", x, (train ? 6 : 2) * 2 * product(x) * static_cast<double>(x[3]),
                    [](const Tensors& t) { return channel_attention(t[0], t[1], t[2]); });
    // The first stages of the pyramid vision transformer: every 8 x 8 or 4 x 4 tokens become one key.
    struct Stage {
      Shape x;
      int64_t side, reduction;
    };
    for (const Stage& s : {Stage{{1, 1, 3136, 64}, 56, 8}, Stage{{1, 2, 784, 64}, 28, 4}}) {
      const double keys = static_cast<double>(s.x[2] / (s.reduction * s.reduction));
      add_benchmark("pooled_attention", s.x, (train ? 7 : 2) * 2 * product(s.x) * keys, [s](const Tensors& t) {
        const TokenGrid grid{s.side, s.side};
        return attention(t[0], pooled_keys(t[1], grid, s.reduction), pooled_keys(t[2], grid, s.reduction));
      });
    }
  }
  return list;
}

}  // namespace heed::bench
