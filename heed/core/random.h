// Random tensors and permutations. Number i of a stream is a function of (seed, stream, i), so results never depend on threads.
#pragma once

#include <cstdint>
#include <vector>

#include "heed/core/api.h"
#include "heed/core/philox.h"
#include "heed/core/tensor.h"

namespace HEED_API heed {

// Provides streams, one per draw. Its whole state is two numbers, which can be saved and restored.
class Rng {
 public:
  // Streams of `seed`, from number `next_stream` on.
  explicit Rng(uint64_t seed, uint64_t next_stream = 0) : seed_(seed), next_(next_stream) {}
  // The next stream.
  RandomKey next() { return {seed_, next_++, advance_}; }
  uint64_t seed() const { return seed_; }
  uint64_t next_stream() const { return next_; }

  uint64_t below(uint64_t bound);  // an integer in [0, bound), uniformly

  // Leaves out streams.
  void skip(uint64_t streams) { next_ += streams; }
  void set_advance(const uint64_t* advance) { advance_ = advance; }  // of the keys from now on (RandomKey)

 private:
  uint64_t seed_, next_;
  const uint64_t* advance_ = nullptr;
};

Tensor random_uniform(const Shape& shape, float low, float high, Rng& rng, Device device);       // in [low, high)
Tensor random_normal(const Shape& shape, float mean, float deviation, Rng& rng, Device device);  // normal
std::vector<int64_t> random_permutation(int64_t count, Rng& rng);                                // of 0 ... count - 1

}  // namespace heed
