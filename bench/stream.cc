// Memory-bound ops on tensors larger than the caches. A stream with the same number of arrays runs in the same rounds, because the
// bandwidth of a shared machine changes from minute to minute.
#include <memory>

#include "bench/bench.h"
#include "bench/peak.h"
#include "heed/ops/ops.h"

namespace heed::bench {
namespace {

constexpr int64_t kRows = 16384, kColumns = 1024;
constexpr double kBytes = 4.0 * kRows * kColumns;  // 64 MiB

Benchmark benchmark(const std::string& op, int reads, int writes, const std::vector<Shape>& shapes, const Function& function) {
  const Stream like = reads == writes ? Stream::copy : Stream::triad;
  return {name_of(op + "/forward/big", {kRows, kColumns}),
          Unit::bytes,
          kBytes * (reads + writes),
          forward_call(shapes, function),
          "stream",
          [like] { return stream_call(like, kRows * kColumns); },
          kBytes * arrays(like)};
}

}  // namespace

std::vector<Benchmark> stream_benchmarks() {
  const Shape x = {kRows, kColumns}, d = {kColumns};
  return {
      benchmark("add", 2, 1, {x, x}, [](const Tensors& t) { return add(t[0], t[1]); }),
      benchmark("multiply", 2, 1, {x, x}, [](const Tensors& t) { return multiply(t[0], t[1]); }),
      benchmark("relu", 1, 1, {x}, [](const Tensors& t) { return relu(t[0]); }),
      benchmark("gelu", 1, 1, {x}, [](const Tensors& t) { return gelu(t[0]); }),
      benchmark("layer_norm", 1, 1, {x, d, d}, [](const Tensors& t) { return layer_norm(t[0], t[1], t[2]); }),
      benchmark("add_layer_norm", 2, 2, {x, x, d, d}, [](const Tensors& t) { return add_layer_norm(t[0], t[1], t[2], t[3]).second; }),
      benchmark("rms_norm", 1, 1, {x, d}, [](const Tensors& t) { return rms_norm(t[0], t[1]); }),
      benchmark("softmax", 1, 1, {x}, [](const Tensors& t) { return softmax(t[0]); }),
      benchmark("dropout", 1, 1, {x}, [rng = std::make_shared<Rng>(4)](const Tensors& t) { return dropout(t[0], 0.1f, *rng); }),
  };
}

}  // namespace heed::bench
