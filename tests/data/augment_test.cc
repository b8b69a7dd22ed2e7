// Properties of random augmentation and of mixed batches.
#include "heed/data/augment.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "heed/data/image_ops.h"
#include "tests/data/pixels.h"
#include "tests/expect_error.h"

namespace heed::test {
namespace {

TEST(Augment, crop_and_flip_copy_pixels_of_the_image) {
  const Image p = some_image(7, 5);
  std::set<int64_t> seen;
  for (uint64_t stream = 0; stream < 400; ++stream) {
    const Image found = augmented(p, {.pad = 2, .flip = true}, {1, stream});
    int64_t matches = 0;
    for (int64_t move = 0; move < 50; ++move) {
      const int64_t left = move % 5 - 2, top = move / 5 % 5 - 2;
      bool same = true;
      for (int64_t i = 0; i < 7 * 5 * 3 && same; ++i) {
        const int64_t x = i / 3 % 7, y = i / 21;
        same = at(found, x, y, i % 3) == at(p, (move < 25 ? x : 6 - x) + left, y + top, i % 3);
      }
      if (!same) continue;
      ++matches;
      seen.insert(move);
    }
    EXPECT_EQ(matches, 1);
  }
  EXPECT_EQ(seen.size(), 50u);  // all combinations occur
}

TEST(Augment, depends_only_on_the_key) {
  const Image p = some_image(16, 12);
  const AugmentOptions all{
      .pad = 2, .flip = true, .resized_crop = 0.5f, .colour = 0.4f, .random_ops = 2, .random_strength = 0.6f, .erase = 0.5f};
  std::set<std::vector<uint8_t>> seen;
  for (uint64_t i = 0; i < 50; ++i) {
    const Image once = augmented(p, all, {7, i});
    EXPECT_EQ(once.pixels, augmented(p, all, {7, i}).pixels);
    EXPECT_EQ(once.width, 16);
    EXPECT_EQ(once.height, 12);
    seen.insert(once.pixels);
    EXPECT_NE(once.pixels, augmented(p, all, {8, i}).pixels);
  }
  EXPECT_GE(seen.size(), 49u);
  EXPECT_EQ(augmented(p, {}, {7, 1}).pixels, p.pixels);
}

TEST(Augment, steps_are_independent_of_each_other) {
  const Image p = some_image(16, 12);
  for (uint64_t i = 0; i < 20; ++i) {
    const Image crop = augmented(p, {.pad = 3}, {7, i}), both = augmented(p, {.pad = 3, .flip = true}, {7, i});
    Image flipped = crop;
    flip_horizontal(flipped);
    EXPECT_TRUE(both.pixels == crop.pixels || both.pixels == flipped.pixels);
  }
}

TEST(Augment, resized_crop_shows_a_part_of_the_image) {
  Image ramp{40, 30};
  for (int64_t i = 0; i < 40 * 30; ++i)
    ramp.pixels.insert(ramp.pixels.end(), {static_cast<uint8_t>(i % 40 * 6), static_cast<uint8_t>(i / 40 * 8), 0});
  double least = 1, most = 0;
  for (uint64_t i = 0; i < 200; ++i) {
    const Image found = augmented(ramp, {.resized_crop = 0.25f}, {3, i});
    ASSERT_EQ(found.width, 40);
    ASSERT_EQ(found.height, 30);
    const double wide = (at(found, 35, 9, 0) - at(found, 4, 9, 0)) / (31.0 * 6),
                 high = (at(found, 9, 26, 1) - at(found, 9, 3, 1)) / (23.0 * 8);
    least = std::min(least, wide * high);
    most = std::max(most, wide * high);
    EXPECT_LT(wide * 40 / (high * 30), 1.45);
    EXPECT_GT(wide * 40 / (high * 30), 0.68);
  }
  EXPECT_NEAR(least, 0.25, 0.06);
  EXPECT_NEAR(most, 1, 0.1);
}

TEST(Augment, erase_fills_one_rectangle_with_the_given_probability) {
  const Image p{32, 32, std::vector<uint8_t>(32 * 32 * 3, 0)};
  int erased = 0;
  for (uint64_t i = 0; i < 1000; ++i) {
    const Image found = augmented(p, {.erase = 0.3f}, {5, i});
    int64_t left = 32, right = -1, top = 32, bottom = -1, count = 0;
    for (int64_t k = 0; k < 32 * 32; ++k) {
      const int64_t x = k % 32, y = k / 32;
      if (at(found, x, y, 0) + at(found, x, y, 1) + at(found, x, y, 2) == 0) continue;
      ++count, left = std::min(left, x), right = std::max(right, x), top = std::min(top, y), bottom = std::max(bottom, y);
    }
    if (count == 0) continue;
    ++erased;
    EXPECT_EQ(count, (right - left + 1) * (bottom - top + 1));
    EXPECT_LE(count, 32 * 32 * 2 / 5);
  }
  EXPECT_NEAR(erased, 300, 60);
}

TEST(Augment, refuses_invalid_options) {
  const Image p = some_image(4, 4);
  expect_error([&] { augmented(p, {.pad = -1}, {1, 1}); }, "augmented: found pad -1");
  expect_error([&] { augmented(p, {.resized_crop = 0}, {1, 1}); }, "augmented: found resized_crop 0");
  expect_error([&] { augmented(p, {.random_ops = 1, .random_strength = 2}, {1, 1}); }, "augmented: found random_strength 2");
  expect_error([&] { augmented(p, {.erase = 1.5f}, {1, 1}); }, "augmented: found erase 1.5");
  expect_error([&] { augmented({4, 4}, {}, {1, 1}); }, "augmented: found 0 bytes");
}

Tensor batch(int64_t B, int64_t Y, int64_t X) {  // image b holds b + small numbers
  std::vector<float> values;
  for (int64_t i = 0; i < B * 2 * Y * X; ++i) values.push_back(static_cast<float>(i / (2 * Y * X)) + static_cast<float>(i % 97) / 128);
  return Tensor::from(values, {B, 2, Y, X}, kCpu);
}

TEST(MixedBatch, mixup_is_a_weighted_mean) {
  const Tensor x = batch(5, 3, 4);
  const std::vector<float> from = x.to_vector<float>();
  const MixedBatch found = mixed(x, {.mixup = 0.4f}, {2, 11});
  const std::vector<float> to = found.pixels.to_vector<float>();
  ASSERT_EQ(found.pixels.shape(), x.shape());
  EXPECT_EQ(std::set(found.other.begin(), found.other.end()).size(), 5u);  // each once
  for (size_t i = 0; i < to.size(); ++i) {
    const float other = from[static_cast<size_t>(found.other[i / 24]) * 24 + i % 24];
    EXPECT_NEAR(to[i], other + found.share * (from[i] - other), 1e-5f);
  }
  EXPECT_EQ(x.to_vector<float>(), from);
  EXPECT_EQ(to, mixed(x, {.mixup = 0.4f}, {2, 11}).pixels.to_vector<float>());
}

TEST(MixedBatch, cutmix_copies_a_rectangle_of_another_image) {
  const Tensor x = batch(3, 10, 7);
  const std::vector<float> from = x.to_vector<float>();
  std::set<float> shares;
  for (uint64_t stream = 0; stream < 50; ++stream) {
    const MixedBatch found = mixed(x, {.cutmix = 1}, {2, stream});
    const std::vector<float> to = found.pixels.to_vector<float>();
    for (size_t b = 0; b < 3; ++b) {
      if (found.other[b] == static_cast<int64_t>(b)) continue;
      size_t left = 7, right = 0, top = 10, bottom = 0, count = 0;
      for (size_t i = 0; i < 140; ++i) {
        const float own = from[b * 140 + i], other = from[static_cast<size_t>(found.other[b]) * 140 + i];
        ASSERT_TRUE(to[b * 140 + i] == own || to[b * 140 + i] == other);
        if (to[b * 140 + i] == own) continue;
        const size_t px = i % 7, py = i / 7 % 10;
        ++count, left = std::min(left, px), right = std::max(right, px + 1), top = std::min(top, py), bottom = std::max(bottom, py + 1);
      }
      EXPECT_EQ(count, count == 0 ? 0 : 2 * (right - left) * (bottom - top));
      EXPECT_NEAR(found.share, 1 - static_cast<float>(count) / 140, 1e-6f);
    }
    shares.insert(found.share);
  }
  EXPECT_GT(shares.size(), 10u);
}

// Beta(a, a) has mean 1/2 and variance 1 / (4 (2 a + 1)); its fourth moment about the mean is 3 / (16 (2 a + 1) (2 a + 3)).
TEST(MixedBatch, weights_follow_a_beta_distribution) {
  const Tensor x = batch(1, 1, 1);
  for (const float alpha : {0.01f, 0.2f, 1.0f, 4.0f}) {
    constexpr int draws = 40000;
    double mean = 0, square = 0, fourth = 0;
    for (uint64_t i = 0; i < draws; ++i) {
      const float share = mixed(x, {.mixup = alpha}, {9, i}).share;
      ASSERT_TRUE(share >= 0 && share <= 1);
      const double off = static_cast<double>(share) - 0.5;
      mean += off / draws;
      square += off * off / draws;
      fourth += off * off * off * off / draws;
    }
    const double a = static_cast<double>(alpha), variance = 1 / (4 * (2 * a + 1));
    EXPECT_NEAR(mean, 0, 4 * std::sqrt(variance / draws)) << alpha;
    EXPECT_NEAR(square, variance, 0.02 * variance) << alpha;
    EXPECT_NEAR(fourth * 16 * (2 * a + 1) * (2 * a + 3) / 3, 1, 0.04) << alpha;
  }
}

TEST(MixedBatch, uses_each_method_half_of_the_time_and_can_be_off) {
  const Tensor x = batch(4, 8, 8);
  const std::vector<float> from = x.to_vector<float>();
  int cuts = 0;
  for (uint64_t i = 0; i < 400; ++i) {
    const std::vector<float> to = mixed(x, {.mixup = 1, .cutmix = 1}, {4, i}).pixels.to_vector<float>();
    const std::set<float> known(from.begin(), from.end());
    cuts += std::all_of(to.begin(), to.end(), [&](float value) { return known.contains(value); });
  }
  EXPECT_NEAR(cuts, 200, 50);
  const MixedBatch same = mixed(x, {}, {4, 1});
  EXPECT_TRUE(same.other.empty());
  EXPECT_EQ(same.share, 1);
  EXPECT_TRUE(same.pixels.shares_data_with(x));
  expect_error([&] { mixed(Tensor::zeros({2, 3}, kCpu), {.mixup = 1}, {1, 1}); }, "mixed: found pixels of shape (2, 3)");
  expect_error([&] { mixed(x, {.mixup = -1}, {1, 1}); }, "mixed: found alphas -1 and 0");
}

}  // namespace
}  // namespace heed::test
