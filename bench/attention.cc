// Attention on lengths and widths of real models, with learned terms and windows.
#include "heed/attention/attention.h"

#include "bench/bench.h"
#include "heed/ops/ops.h"

namespace heed::bench {
namespace {

struct Size {
  int64_t B, H, N, D;
};

// Head counts chosen so that every length has about the same work.
const Size kSizes[] = {{64, 3, 65, 32},   {64, 3, 65, 64},   {64, 3, 65, 128}, {1, 12, 197, 32}, {1, 12, 197, 64},
                       {1, 12, 197, 128}, {1, 8, 512, 32},   {1, 8, 512, 64},  {1, 8, 512, 128}, {1, 2, 2048, 32},
                       {1, 2, 2048, 64},  {1, 2, 2048, 128}, {1, 1, 8192, 32}, {1, 1, 8192, 64}, {1, 1, 8192, 128}};

// Two products forward and five backward, over the scores that are not masked.
double flops(const Size& s, bool train, double unmasked) {
  return (train ? 7 : 2) * 2.0 * static_cast<double>(s.B * s.H * s.D) * static_cast<double>(s.N) * static_cast<double>(s.N) * unmasked;
}

constexpr int64_t kGridWidth = 16;

// (1, 256, 256): difference of this coordinate between every two tokens of the grid.
Tensor distances(int64_t (*coordinate)(int64_t token)) {
  constexpr int64_t tokens = kGridWidth * kGridWidth;
  std::vector<float> differences;
  for (int64_t i = 0; i < tokens; ++i)
    for (int64_t j = 0; j < tokens; ++j) differences.push_back(static_cast<float>(coordinate(i) - coordinate(j)));
  return Tensor::from(differences, {1, tokens, tokens}, kCpu);
}

// Position-only Gaussian attention with the map in memory: one per head, shared by all items. q and k do not enter, so they have no
// gradients.
Tensor composed_positions(const Tensors& t) {
  const int64_t H = t[0].size(1);
  static const Tensor down = distances([](int64_t i) { return i / kGridWidth; }),
                      along = distances([](int64_t i) { return i % kGridWidth; });
  const auto squared_distance = [&](const Tensor& delta, int64_t axis) {
    const Tensor x = delta - reshape(slice(t[4], 1, axis, axis + 1), {H, 1, 1});
    return x * x;
  };
  return matmul(softmax((squared_distance(down, 0) + squared_distance(along, 1)) * reshape(t[3], {H, 1, 1}) * -1.0f), t[2]);
}

}  // namespace

std::vector<Benchmark> attention_benchmarks() {
  std::vector<Benchmark> list;
  for (const bool train : {false, true}) {
    const std::string pass = train ? "train" : "forward";
    std::vector<Shape> last_shapes;
    const auto add_benchmark = [&](const char* op, const Size& s, double unmasked, std::vector<Shape> parameters, const Function& function,
                                   bool shared = false) {  // shared: one key head for all heads
      const Shape x{s.B, s.H, s.N, s.D}, keys{s.B, shared ? 1 : s.H, s.N, s.D};
      last_shapes = {x, keys, keys};
      last_shapes.insert(last_shapes.end(), parameters.begin(), parameters.end());
      list.push_back({name_of(std::string(op) + "/" + pass + "/n" + std::to_string(s.N), {s.B, s.H, s.N, s.D}), Unit::flops,
                      flops(s, train, unmasked), (train ? train_call : forward_call)(last_shapes, function)});
    };
    // The baseline, on the same inputs.
    const auto add_baseline = [&](const char* what, const Function& function) {
      Benchmark& last = list.back();
      last.baseline = what;
      last.make_baseline = (train ? train_call : forward_call)(last_shapes, function);
      last.baseline_work = last.work;
    };
    for (const Size& s : kSizes) {
      add_benchmark("attention", s, 1, {}, [](const Tensors& t) { return attention(t[0], t[1], t[2]); });
      add_benchmark("causal_attention", s, 0.5, {}, [](const Tensors& t) { return attention(t[0], t[1], t[2], {{}, {Causal{}}}); });
    }
    for (const Size& s : {Size{1, 12, 197, 64}, Size{1, 8, 512, 64}, Size{1, 2, 2048, 64}}) {
      add_benchmark("relative_attention", s, 1, {{s.H, 2 * s.N - 1}}, [](const Tensors& t) {
        return attention(t[0], t[1], t[2], {{}, {RelativeBias{t[3]}}});
      });
      add_benchmark("gaussian_attention", s, 1, {{s.H}, {s.H, 2}}, [](const Tensors& t) {
        return attention(t[0], t[1], t[2], {{}, {Gaussian2d{t[3], t[4], kGridWidth}}});
      });
    }
    // The layer of the convolution experiment: 16 x 16 tokens, positions only, 9 heads that share values of width 400.
    for (const Size grid : {Size{1, 9, 256, 400}, Size{8, 9, 256, 400}}) {
      add_benchmark(
          "position_attention", grid, 1.0 / 16, {{grid.H}, {grid.H, 2}},
          [](const Tensors& t) {
            return attention(t[0], t[1], t[2], {0.0f, {Gaussian2d{t[3], t[4], kGridWidth}}});
          },
          true);
      add_baseline("composed", composed_positions);
    }
    const Size local{1, 1, 8192, 64};
    add_benchmark("window_attention", local, 513.0 / 8192, {}, [](const Tensors& t) {
      return attention(t[0], t[1], t[2], {{}, {Window{256, 256}}});
    });
    add_baseline("full", [](const Tensors& t) { return attention(t[0], t[1], t[2]); });
  }
  // One query per head, as in decoding: keys and values are read once.
  for (const int64_t M : {1024, 8192}) {
    const Shape q{1, 12, 1, 64}, k{1, 12, M, 64};
    list.push_back({name_of("decode_attention/forward/m" + std::to_string(M), k), Unit::bytes, 2.0 * sizeof(float) * count(k),
                    forward_call({q, k, k}, [](const Tensors& t) { return attention(t[0], t[1], t[2]); })});
  }
  return list;
}

}  // namespace heed::bench
