// Attention on the lengths and widths that models have, and with learned terms and windows.
#include "heed/attention/attention.h"

#include "bench/bench.h"

namespace heed::bench {
namespace {

struct Size {
  int64_t B, H, N, D;
};

// Enough heads that every length is about the same work.
const Size kSizes[] = {{64, 3, 65, 32},   {64, 3, 65, 64},   {64, 3, 65, 128}, {1, 12, 197, 32}, {1, 12, 197, 64},
                       {1, 12, 197, 128}, {1, 8, 512, 32},   {1, 8, 512, 64},  {1, 8, 512, 128}, {1, 2, 2048, 32},
                       {1, 2, 2048, 64},  {1, 2, 2048, 128}, {1, 1, 8192, 32}, {1, 1, 8192, 64}, {1, 1, 8192, 128}};

// Two products forward and five backward, of those scores that are kept.
double flops(const Size& s, bool train, double kept) {
  return (train ? 7 : 2) * 2.0 * static_cast<double>(s.B * s.H * s.D) * static_cast<double>(s.N) * static_cast<double>(s.N) * kept;
}

}  // namespace

std::vector<Benchmark> attention_benchmarks() {
  std::vector<Benchmark> list;
  for (const bool train : {false, true}) {
    const std::string pass = train ? "train" : "forward";
    const auto put = [&](const char* op, const Size& s, double kept, std::vector<Shape> parameters, const Function& function) {
      const Shape x{s.B, s.H, s.N, s.D};
      std::vector<Shape> shapes{x, x, x};
      shapes.insert(shapes.end(), parameters.begin(), parameters.end());
      list.push_back({name_of(std::string(op) + "/" + pass + "/n" + std::to_string(s.N), {s.B, s.H, s.N, s.D}), Unit::flops,
                      flops(s, train, kept), (train ? train_call : forward_call)(shapes, function)});
    };
    for (const Size& s : kSizes) {
      put("attention", s, 1, {}, [](const Tensors& t) { return attention(t[0], t[1], t[2]); });
      put("causal_attention", s, 0.5, {}, [](const Tensors& t) { return attention(t[0], t[1], t[2], {{}, {Causal{}}}); });
    }
    for (const Size& s : {Size{1, 12, 197, 64}, Size{1, 8, 512, 64}, Size{1, 2, 2048, 64}}) {
      put("relative_attention", s, 1, {{s.H, 2 * s.N - 1}}, [](const Tensors& t) {
        return attention(t[0], t[1], t[2], {{}, {RelativeBias{t[3]}}});
      });
      put("gaussian_attention", s, 1, {{s.H}, {s.H, 2}}, [](const Tensors& t) {
        return attention(t[0], t[1], t[2], {{}, {Gaussian2d{t[3], t[4], 16}}});
      });
    }
    const Size local{1, 1, 8192, 64};
    put("window_attention", local, 513.0 / 8192, {}, [](const Tensors& t) {
      return attention(t[0], t[1], t[2], {{}, {Window{256, 256}}});
    });
  }
  // One query of every head, as in decoding: keys and values are read once.
  for (const int64_t M : {1024, 8192}) {
    const Shape q{1, 12, 1, 64}, k{1, 12, M, 64};
    list.push_back({name_of("decode_attention/forward/m" + std::to_string(M), k), Unit::bytes, 2.0 * sizeof(float) * count(k),
                    forward_call({q, k, k}, [](const Tensors& t) { return attention(t[0], t[1], t[2]); })});
  }
  return list;
}

}  // namespace heed::bench
