// Calls on random inputs, forward only or forward and backward.
#include "bench/bench.h"
#include "heed/core/autograd.h"
#include "heed/core/random.h"

namespace heed::bench {
namespace {

Tensors random_inputs(const std::vector<Shape>& shapes) {
  Rng rng(1);
  Tensors inputs;
  for (const Shape& shape : shapes) inputs.push_back(random_normal(shape, 0, 1, rng, kCpu));
  return inputs;
}

}  // namespace

std::string name_of(const std::string& start, const Shape& sizes) {
  std::string name = start;
  for (int axis = 0; axis < sizes.rank(); ++axis) {
    name += axis ? 'x' : '/';
    name += std::to_string(sizes[axis]);
  }
  return name;
}

std::function<Call()> forward_call(std::vector<Shape> shapes, Function function) {
  return [shapes, function]() -> Call { return [inputs = random_inputs(shapes), function] { function(inputs); }; };
}

std::function<Call()> train_call(std::vector<Shape> shapes, Function function) {
  return [shapes, function]() -> Call {
    Tensors inputs = random_inputs(shapes);
    const Shape out = function(inputs).shape();
    for (Tensor& input : inputs) input.require_grad();
    const Tensor seed = count(out) == 1 ? Tensor() : random_inputs({out})[0];
    return [inputs, function, seed] {
      backward(function(inputs), seed);
      for (const Tensor& input : inputs) input.zero_grad();
    };
  };
}

Tensor random_targets(int64_t count, int64_t classes) {
  Rng rng(2);
  std::vector<int64_t> targets(static_cast<size_t>(count));
  for (int64_t& target : targets) target = static_cast<int64_t>(rng.below(static_cast<uint64_t>(classes)));
  return Tensor::from(targets, {count}, kCpu);
}

}  // namespace heed::bench
