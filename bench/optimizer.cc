// One optimizer step over the parameters of a ViT for CIFAR: 5.4 million in 150 tensors, most of them small.
#include "heed/train/optimizer.h"

#include <memory>

#include "bench/bench.h"
#include "heed/core/autograd.h"
#include "heed/core/random.h"

namespace heed::bench {
namespace {

constexpr int64_t kLayers = 12;

std::vector<Shape> parameter_shapes() {
  constexpr int64_t D = 192, wide = 4 * D, tokens = 65, patch = 48;
  std::vector<Shape> shapes{{D, patch}, {D}, {D}, {tokens, D}, {D}, {D}};
  for (int64_t i = 0; i < kLayers; ++i)
    for (const Shape& shape : {Shape{3 * D, D}, Shape{3 * D}, Shape{D, D}, Shape{D}, Shape{wide, D}, Shape{wide}, Shape{D, wide}, Shape{D},
                               Shape{D}, Shape{D}, Shape{D}, Shape{D}})
      shapes.push_back(shape);
  return shapes;
}

double parameter_bytes() {
  double bytes = 0;
  for (const Shape& shape : parameter_shapes()) bytes += 4 * static_cast<double>(count(shape));
  return bytes;
}

Tensors parameters_with_gradients() {
  Rng rng(5);
  Tensors parameters;
  for (const Shape& shape : parameter_shapes()) {
    parameters.push_back(random_normal(shape, 0, 1, rng, kCpu).require_grad());
    backward(parameters.back(), random_normal(shape, 0, 1, rng, kCpu));
  }
  return parameters;
}

Call adamw_step() {
  auto adam = std::make_shared<Adam>(std::vector<ParameterGroup>{{parameters_with_gradients(), 0.01f}}, AdamOptions{});
  return [adam] { adam->step(1e-3f); };
}

Call sgd_step() {
  auto sgd = std::make_shared<Sgd>(std::vector<ParameterGroup>{{parameters_with_gradients(), 0}}, SgdOptions{.momentum = 0.9f});
  return [sgd] { sgd->step(1e-3f); };
}

// The limit shrinks each time, so that every call has to scale.
Call clip() {
  return [parameters = parameters_with_gradients(), limit = 1.0f]() mutable {
    clip_gradients(parameters, limit);
    limit *= 0.999f;
  };
}

}  // namespace

std::vector<Benchmark> optimizer_benchmarks() {
  const double bytes = parameter_bytes();  // of all parameters, of all gradients, or of one moment
  return {
      {name_of("adamw/step/cifar", {kLayers}), Unit::bytes, 7 * bytes, adamw_step},
      {name_of("adamw/step/cifar-fused", {kLayers}), Unit::bytes, 7 * bytes, adamw_step},  // the peer's fused kernel, not its default
      {name_of("sgd/step/cifar", {kLayers}), Unit::bytes, 5 * bytes, sgd_step},
      {name_of("clip_gradients/step/cifar", {kLayers}), Unit::bytes, 3 * bytes, clip},
  };
}

}  // namespace heed::bench
