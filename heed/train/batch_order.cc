#include "heed/train/batch_order.h"

#include <algorithm>
#include <numeric>

#include "heed/core/check.h"

namespace heed {
namespace {

// Separate random streams; the model itself uses the seed unchanged.
enum class RandomStream : uint64_t { sample = 0x9E3779B97F4A7C15, order = 0xBF58476D1CE4E5B9, split = 0x94D049BB133111EB };
uint64_t seed_of(uint64_t seed, RandomStream stream) { return seed * 0xD1342543DE82EF95 + static_cast<uint64_t>(stream); }

// Leaves 2^40 streams per epoch for its samples.
uint64_t first_stream(int64_t epoch) { return static_cast<uint64_t>(epoch) << 40; }

Batches cut(const std::vector<int64_t>& order, int64_t batch) {
  check(batch > 0, "batches: ", batch, " samples in a batch, expected at least 1");
  Batches out;
  for (int64_t begin = 0; begin < std::ssize(order); begin += batch)
    out.emplace_back(order.begin() + begin, order.begin() + std::min<int64_t>(begin + batch, std::ssize(order)));
  return out;
}

}  // namespace

RandomKey sample_key(uint64_t seed, int64_t epoch, int64_t sample) {
  return {seed_of(seed, RandomStream::sample), first_stream(epoch) + static_cast<uint64_t>(sample)};
}

Batches shuffled_batches(int64_t count, int64_t batch, uint64_t seed, int64_t epoch) {
  Rng rng(seed_of(seed, RandomStream::order), first_stream(epoch));
  return cut(random_permutation(count, rng), batch);
}

Batches length_bucketed_batches(std::span<const int64_t> lengths, int64_t batch, uint64_t seed, int64_t epoch) {
  Rng rng(seed_of(seed, RandomStream::order), first_stream(epoch));
  std::vector<int64_t> order = random_permutation(std::ssize(lengths), rng);
  const int64_t group = 100 * batch;
  for (int64_t begin = 0; begin < std::ssize(order); begin += group)
    std::stable_sort(order.begin() + begin, order.begin() + std::min<int64_t>(begin + group, std::ssize(order)),
                     [&](int64_t a, int64_t b) { return lengths[static_cast<size_t>(a)] < lengths[static_cast<size_t>(b)]; });
  const Batches sorted = cut(order, batch);
  Batches out;
  for (const int64_t index : random_permutation(std::ssize(sorted), rng)) out.push_back(sorted[static_cast<size_t>(index)]);
  return out;
}

Batches batches_in_order(int64_t count, int64_t batch) {
  std::vector<int64_t> order(static_cast<size_t>(count));
  std::iota(order.begin(), order.end(), int64_t{0});
  return cut(order, batch);
}

Split split(int64_t count, double share, uint64_t seed) {
  Rng rng(seed_of(seed, RandomStream::split));
  const std::vector<int64_t> order = random_permutation(count, rng);
  const int64_t out = share > 0 ? std::clamp<int64_t>(static_cast<int64_t>(share * static_cast<double>(count)), 1, count) : 0;
  Split parts{{order.begin() + out, order.end()}, {order.begin(), order.begin() + out}};
  std::sort(parts.kept.begin(), parts.kept.end());
  std::sort(parts.held_out.begin(), parts.held_out.end());
  return parts;
}

}  // namespace heed
