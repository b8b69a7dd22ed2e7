#include "heed/core/random.h"

#include <cmath>
#include <numbers>
#include <numeric>
#include <vector>

#include "heed/core/parallel.h"
#include "heed/core/random_kernels.h"
#include "heed/core/raw.h"

namespace heed {
namespace {

constexpr int64_t kGrain = 1 << 14;  // a multiple of 4: every task starts at a block of the generator

// Fills with make(four random words) -> four floats.
template <class Make>
void fill_blocks(float* to, int64_t count, RandomKey key, const Make& make) {
  parallel_for(count, kGrain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i += 4) {
      const std::array<float, 4> values = make(philox(key, static_cast<uint64_t>(i / 4)));
      for (int64_t lane = 0; lane < 4 && i + lane < end; ++lane) to[i + lane] = values[static_cast<size_t>(lane)];
    }
  });
}

}  // namespace

void cpu::fill_uniform(const FillUniform& f) {
  fill_blocks(f.to, f.count, f.key, [low = f.low, high = f.high](const std::array<uint32_t, 4>& words) {
    std::array<float, 4> out{};
    for (size_t i = 0; i < 4; ++i) out[i] = low + (high - low) * unit_float(words[i]);
    return out;
  });
}

// Two numbers from two: Box and Muller 1958.
void cpu::fill_normal(const FillNormal& f) {
  fill_blocks(f.to, f.count, f.key, [mean = f.mean, deviation = f.deviation](const std::array<uint32_t, 4>& words) {
    std::array<float, 4> out{};
    for (size_t i = 0; i < 4; i += 2) {
      const float radius = std::sqrt(-2 * std::log(1 - unit_float(words[i]))) * deviation;
      const float angle = 2 * std::numbers::pi_v<float> * unit_float(words[i + 1]);
      out[i] = mean + radius * std::cos(angle);
      out[i + 1] = mean + radius * std::sin(angle);
    }
    return out;
  });
}

uint64_t Rng::below(uint64_t bound) {
  check(bound > 0, "below: the bound is 0");
  const RandomKey key = next();
  const uint64_t fair = UINT64_MAX - UINT64_MAX % bound;  // draws at or above it would favour small numbers
  for (uint64_t block = 0;; ++block) {
    const auto words = philox(key, block);
    const uint64_t draw = uint64_t{words[0]} << 32 | words[1];
    if (draw < fair) return draw % bound;
  }
}

Tensor random_uniform(const Shape& shape, float low, float high, Rng& rng, Device device) {
  const Tensor out = Tensor::empty(shape, DType::f32, device);
  launch(fill_uniform, device, {.to = raw<float>(out), .count = out.count(), .key = rng.next(), .low = low, .high = high});
  return out;
}

Tensor random_normal(const Shape& shape, float mean, float deviation, Rng& rng, Device device) {
  const Tensor out = Tensor::empty(shape, DType::f32, device);
  launch(fill_normal, device, {.to = raw<float>(out), .count = out.count(), .key = rng.next(), .mean = mean, .deviation = deviation});
  return out;
}

std::vector<int64_t> random_permutation(int64_t count, Rng& rng) {
  std::vector<int64_t> order(static_cast<size_t>(count));
  std::iota(order.begin(), order.end(), 0);
  const uint64_t seed = rng.below(UINT64_MAX);
  Rng draws(seed);
  for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[draws.below(i)]);
  return order;
}

}  // namespace heed
