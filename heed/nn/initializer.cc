#include "heed/nn/initializer.h"

#include <cmath>
#include <utility>

#include "heed/ops/ops.h"

namespace heed::initializer {
namespace {

struct Fans {
  float in, out;
};

Fans fans_of(const Shape& shape) {
  check(shape.rank() >= 2, "initializer: a weight of shape ", shape, ", expected (O, I) or (O, C, KY, KX)");
  int64_t taps = 1;
  for (int axis = 2; axis < shape.rank(); ++axis) taps = checked_multiply(taps, shape[axis]);
  return {static_cast<float>(checked_multiply(shape[1], taps)), static_cast<float>(checked_multiply(shape[0], taps))};
}

template <class Variance>
Initializer with_variance(bool is_uniform, const Variance& variance) {
  return [=](const Shape& shape, Rng& rng) {
    const float deviation = std::sqrt(variance(fans_of(shape)));
    return (is_uniform ? uniform(std::sqrt(3.0f) * deviation) : normal(deviation))(shape, rng);
  };
}

float xavier(Fans fans) { return 2 / (fans.in + fans.out); }
float kaiming(Fans fans) { return 2 / fans.in; }
float lecun(Fans fans) { return 1 / fans.in; }

}  // namespace

Initializer constant(float value) {
  return [value](const Shape& shape, Rng&) { return Tensor::full(shape, value, kCpu); };
}

Initializer uniform(float bound) {
  return [bound](const Shape& shape, Rng& rng) { return random_uniform(shape, -bound, bound, rng, kCpu); };
}

Initializer normal(float deviation, float mean) {
  return [=](const Shape& shape, Rng& rng) { return random_normal(shape, mean, deviation, rng, kCpu); };
}

Initializer truncated_normal(float deviation) {
  return [deviation](const Shape& shape, Rng& rng) {
    std::vector<float> values = random_normal(shape, 0, deviation, rng, kCpu).to_vector<float>();
    std::vector<size_t> outside;
    for (size_t i = 0; i < values.size(); ++i)
      if (std::abs(values[i]) > 2 * deviation) outside.push_back(i);
    while (!outside.empty()) {  // 5% of the draws are outside each time
      const std::vector<float> again = random_normal({std::ssize(outside)}, 0, deviation, rng, kCpu).to_vector<float>();
      std::vector<size_t> still;
      for (size_t k = 0; k < outside.size(); ++k) {
        values[outside[k]] = again[k];
        if (std::abs(again[k]) > 2 * deviation) still.push_back(outside[k]);
      }
      outside = std::move(still);
    }
    return Tensor::from(values, shape, kCpu);
  };
}

Initializer xavier_uniform() { return with_variance(true, xavier); }
Initializer kaiming_normal() { return with_variance(false, kaiming); }
Initializer lecun_normal() { return with_variance(false, lecun); }

Initializer in_parts(std::vector<int64_t> rows, Initializer each) {
  return [rows = std::move(rows), each = std::move(each)](const Shape& shape, Rng& rng) {
    Tensors parts;
    for (int64_t count : rows) {
      Shape part = shape;
      part[0] = count;
      parts.push_back(each(part, rng));
    }
    return concat(parts, 0);
  };
}

Initializers original(int64_t D) {
  const Initializer tokens = normal(1 / std::sqrt(static_cast<float>(D)));
  return {.weight = xavier_uniform(), .residual = xavier_uniform(), .embedding = tokens, .patch = xavier_uniform(), .position = tokens};
}

Initializers bert() {
  const Initializer all = truncated_normal(0.02f);
  return {.weight = all, .residual = all, .embedding = all, .patch = all, .position = all};
}

Initializers gpt2(int64_t layers) {
  check(layers >= 1, "initializer: ", layers, " layers, expected 1 or more");
  const float residual = 0.02f / std::sqrt(2 * static_cast<float>(layers));  // two additions a layer
  const Initializer all = normal(0.02f);
  return {.weight = all, .residual = normal(residual), .embedding = all, .patch = all, .position = normal(0.01f)};
}

Initializers vit() {
  const Initializer dense = xavier_uniform(), small = normal(0.02f);
  return {.weight = dense, .residual = dense, .embedding = small, .patch = lecun_normal(), .position = small};
}

}  // namespace heed::initializer
