#include "heed/train/batch_order.h"

#include <set>

#include "tests/expect_error.h"

namespace heed {
namespace {

std::vector<int64_t> joined(const Batches& batches) {
  std::vector<int64_t> all;
  for (const std::vector<int64_t>& batch : batches) all.insert(all.end(), batch.begin(), batch.end());
  return all;
}

std::vector<int64_t> sorted(std::vector<int64_t> list) {
  std::sort(list.begin(), list.end());
  return list;
}

TEST(Order, every_sample_comes_once_an_epoch) {
  const std::vector<int64_t> all = joined(batches_in_order(103, 10));
  for (const Batches& batches : {shuffled_batches(103, 10, 1, 0), batches_in_order(103, 10)}) {
    EXPECT_EQ(batches.size(), 11u);
    EXPECT_EQ(batches.back().size(), 3u);
    EXPECT_EQ(sorted(joined(batches)), all);
  }
  EXPECT_EQ(all.front(), 0);
  EXPECT_EQ(all.back(), 102);
  EXPECT_TRUE(shuffled_batches(0, 10, 1, 0).empty());
  expect_error([] { shuffled_batches(3, 0, 1, 0); }, "batches: 0 samples in a batch, expected at least 1");
}

TEST(Order, depends_on_seed_and_epoch_alone) {
  EXPECT_EQ(shuffled_batches(50, 8, 3, 2), shuffled_batches(50, 8, 3, 2));
  EXPECT_NE(shuffled_batches(50, 8, 3, 2), shuffled_batches(50, 8, 3, 1));
  EXPECT_NE(shuffled_batches(50, 8, 3, 2), shuffled_batches(50, 8, 4, 2));
  // Two half batches have the samples of one whole batch: accumulating gradients changes no numbers.
  EXPECT_EQ(joined(shuffled_batches(50, 8, 3, 2)), joined(shuffled_batches(50, 4, 3, 2)));
}

TEST(Order, similar_lengths_share_batches) {
  std::vector<int64_t> lengths;
  for (int64_t i = 0; i < 1003; ++i) lengths.push_back(1 + i * 7919 % 100);
  const auto padding = [&](const Batches& batches) {
    int64_t wasted = 0;
    for (const std::vector<int64_t>& batch : batches) {
      int64_t longest = 0;
      for (const int64_t i : batch) longest = std::max(longest, lengths[static_cast<size_t>(i)]);
      for (const int64_t i : batch) wasted += longest - lengths[static_cast<size_t>(i)];
    }
    return wasted;
  };
  const Batches bucketed = length_bucketed_batches(lengths, 16, 1, 0);
  EXPECT_EQ(sorted(joined(bucketed)), joined(batches_in_order(1003, 16)));
  EXPECT_LT(10 * padding(bucketed), padding(shuffled_batches(1003, 16, 1, 0)));
  EXPECT_EQ(bucketed, length_bucketed_batches(lengths, 16, 1, 0));
  EXPECT_NE(bucketed, length_bucketed_batches(lengths, 16, 1, 1));
  // Batches are shuffled: lengths do not increase.
  std::vector<int64_t> first_lengths;
  for (const std::vector<int64_t>& batch : bucketed) first_lengths.push_back(lengths[static_cast<size_t>(batch[0])]);
  EXPECT_FALSE(std::is_sorted(first_lengths.begin(), first_lengths.end()));
}

TEST(Order, random_numbers_of_samples_differ) {
  std::set<std::pair<uint64_t, uint64_t>> seen;
  for (const uint64_t seed : {1, 2})
    for (int64_t epoch = 0; epoch < 5; ++epoch)
      for (int64_t sample = 0; sample < 100; ++sample) {
        const RandomKey key = sample_key(seed, epoch, sample);
        EXPECT_TRUE(seen.emplace(key.seed, key.stream).second);
      }
}

TEST(Order, splits_keep_every_sample) {
  const Split parts = split(101, 0.1, 7);
  EXPECT_EQ(parts.held_out.size(), 10u);
  std::vector<int64_t> all = parts.kept;
  all.insert(all.end(), parts.held_out.begin(), parts.held_out.end());
  EXPECT_EQ(sorted(all), joined(batches_in_order(101, 101)));
  EXPECT_TRUE(std::is_sorted(parts.kept.begin(), parts.kept.end()) && std::is_sorted(parts.held_out.begin(), parts.held_out.end()));
  EXPECT_NE(parts.held_out, split(101, 0.1, 8).held_out);
  EXPECT_EQ(split(5, 0.01, 1).held_out.size(), 1u);
  EXPECT_EQ(split(5, 0, 1).held_out.size(), 0u);
  EXPECT_EQ(split(1, 0.5, 1).kept.size(), 0u);
}

}  // namespace
}  // namespace heed
