// Overhead of an op besides its arithmetic: products of single elements, forward and backward.
#include "bench/bench.h"
#include "heed/ops/ops.h"

namespace heed::bench {

std::vector<Benchmark> graph_benchmarks() {
  std::vector<Benchmark> list;
  for (const int64_t length : {1, 100}) {
    list.push_back({name_of("graph/train/chain", {length}), Unit::none, 0, [length]() -> Call {
                      const Tensor a = Tensor::ones({1}, kCpu).require_grad(), b = Tensor::ones({1}, kCpu).require_grad();
                      return [=] {
                        Tensor x = a;
                        for (int64_t i = 0; i < length; ++i) x = multiply(x, b);
                        backward(x);
                        a.zero_grad();
                        b.zero_grad();
                      };
                    }});
  }
  return list;
}

}  // namespace heed::bench
