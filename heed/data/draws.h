// A sequence of random numbers determined by one key.
#pragma once

#include <cmath>
#include <cstdint>
#include <numbers>

#include "heed/core/api.h"
#include "heed/core/random.h"

namespace HEED_API heed {

class Draws {
 public:
  // Streams of one key are independent of each other.
  explicit Draws(RandomKey key, uint64_t stream = 0) : key_(key), block_(stream << 32) {}

  uint32_t bits() {
    if (at_ == words_.size()) {
      words_ = philox(key_, block_++);
      at_ = 0;
    }
    return words_[at_++];
  }
  uint64_t count() const { return (block_ & 0xffffffff) * words_.size() + at_ - words_.size(); }  // numbers drawn so far
  double unit() { return static_cast<double>(bits()) * 0x1p-32; }                                 // [0, 1)
  double between(double low, double high) { return low + (high - low) * unit(); }
  bool coin() { return bits() >> 31 != 0; }
  double sign() { return coin() ? 1 : -1; }
  int64_t below(int64_t bound) {  // bound <= 2^31; bias at most bound / 2^32
    return static_cast<int64_t>(static_cast<uint64_t>(bits()) * static_cast<uint64_t>(bound) >> 32);
  }
  double normal() {  // Box-Muller, first value only
    const double radius = std::sqrt(-2 * std::log(1 - unit()));
    return radius * std::cos(2 * std::numbers::pi * unit());
  }

 private:
  RandomKey key_;
  uint64_t block_;
  std::array<uint32_t, 4> words_{};
  size_t at_ = 4;
};

}  // namespace heed
