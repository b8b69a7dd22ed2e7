// Norms, activations, softmax, cross-entropy and dropout, forward and backward, on shapes of real models.
#include <memory>

#include "bench/bench.h"
#include "heed/ops/ops.h"

namespace heed::bench {
namespace {

struct RowsSize {
  const char* group;
  Shape shape;
};

const RowsSize kHidden[] = {{"vit-b", {197, 768}}, {"bert", {1024, 768}}, {"cifar", {4160, 192}}};
const RowsSize kWide[] = {{"vit-b", {197, 3072}}, {"bert", {1024, 3072}}, {"cifar", {4160, 768}}};
const RowsSize kScores[] = {{"vit-b", {12, 197, 197}}, {"bert", {8, 12, 128, 128}}, {"cifar", {64, 3, 65, 65}}};
const RowsSize kLogits[] = {{"words", {1024, 30522}}, {"classes", {1024, 1000}}, {"cifar", {64, 10}}};

}  // namespace

std::vector<Benchmark> rows_benchmarks() {
  std::vector<Benchmark> list;
  // passes: how many times a tensor of this shape is read or written, forward and backward together.
  const auto add_benchmark = [&](const std::string& op, const RowsSize& size, double passes, const std::vector<Shape>& shapes,
                                 const Function& function) {
    const double bytes = 4 * static_cast<double>(count(size.shape));
    list.push_back({name_of(op + "/train/" + size.group, size.shape), Unit::bytes, passes * bytes, train_call(shapes, function)});
  };
  for (const RowsSize& size : kHidden) {
    const Shape x = size.shape, d = {x.back()};
    add_benchmark("layer_norm", size, 5, {x, d, d}, [](const Tensors& t) { return layer_norm(t[0], t[1], t[2]); });
    add_benchmark("add_layer_norm", size, 7, {x, x, d, d}, [](const Tensors& t) { return add_layer_norm(t[0], t[1], t[2], t[3]).second; });
    add_benchmark("rms_norm", size, 5, {x, d}, [](const Tensors& t) { return rms_norm(t[0], t[1]); });
    add_benchmark("dropout", size, 4, {x}, [rng = std::make_shared<Rng>(3)](const Tensors& t) { return dropout(t[0], 0.1f, *rng); });
  }
  for (const RowsSize& size : kWide) {
    add_benchmark("gelu", size, 5, {size.shape}, [](const Tensors& t) { return gelu(t[0]); });
    add_benchmark("gelu_tanh", size, 5, {size.shape}, [](const Tensors& t) { return gelu_tanh(t[0]); });
  }
  for (const RowsSize& size : kScores) add_benchmark("softmax", size, 5, {size.shape}, [](const Tensors& t) { return softmax(t[0]); });
  for (const RowsSize& size : kLogits) {
    const Tensor targets = random_targets(size.shape[0], size.shape[1]);
    add_benchmark("cross_entropy", size, 3, {size.shape}, [targets](const Tensors& t) { return cross_entropy(t[0], targets); });
  }
  return list;
}

}  // namespace heed::bench
