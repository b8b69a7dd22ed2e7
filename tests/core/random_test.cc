// The generator against published test vectors, and the statistics of its samples.
#include "heed/core/random.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "heed/ops/ops.h"

namespace heed {
namespace {

// Known answers for philox4x32-7 from the Random123 distribution (kat_vectors).
TEST(Philox, matches_the_published_test_vectors) {
  EXPECT_EQ(philox({0, 0}, 0), (std::array<uint32_t, 4>{0x5f6fb709, 0x0d893f64, 0x4f121f81, 0x4f730a48}));
  EXPECT_EQ(philox({UINT64_MAX, UINT64_MAX}, UINT64_MAX), (std::array<uint32_t, 4>{0x5207ddc2, 0x45165e59, 0x4d8ee751, 0x8c52f662}));
}

TEST(Random, samples_have_the_expected_moments) {
  Rng rng(1);
  const Tensor u = random_uniform({200001}, -1, 3, rng, kCpu), n = random_normal({200001}, 2, 3, rng, kCpu);
  EXPECT_NEAR(mean(u).item(), 1, 0.01);
  EXPECT_NEAR(variance(u).item(), 16.0 / 12, 0.02);
  EXPECT_NEAR(mean(n).item(), 2, 0.03);
  EXPECT_NEAR(variance(n).item(), 9, 0.1);
}

// Element i depends only on the key and on i, also with several tasks.
TEST(Random, matches_the_scalar_generator) {
  const RandomKey key = Rng(11).next();
  Rng rng(11), again(11);
  const std::vector<float> uniform = random_uniform({40003}, 2, 5, rng, kCpu).to_vector<float>();
  const std::vector<float> normal = random_normal({40003}, 1, 2, again, kCpu).to_vector<float>();
  for (size_t i = 0; i < uniform.size(); ++i) {
    const auto words = philox(key, i / 4);
    ASSERT_EQ(uniform[i], 2 + 3 * unit_float(words[i % 4])) << i;
    const double radius = std::sqrt(-2 * std::log(1 - double{unit_float(words[i % 4 / 2 * 2])}));
    const double angle = 6.283185307179586 * double{unit_float(words[i % 4 / 2 * 2 + 1])};
    ASSERT_NEAR(normal[i], 1 + 2 * radius * (i % 2 == 0 ? std::cos(angle) : std::sin(angle)), 1e-5) << i;
  }
}

TEST(Random, repeats_from_a_saved_state) {
  Rng a(5);
  random_normal({3}, 0, 1, a, kCpu);
  Rng b(a.seed(), a.next_stream());
  EXPECT_EQ(random_normal({7}, 0, 1, a, kCpu).to_vector<float>(), random_normal({7}, 0, 1, b, kCpu).to_vector<float>());
}

TEST(Random, permutations_are_complete_and_integers_within_bounds) {
  Rng rng(9);
  std::vector<int64_t> order = random_permutation(1000, rng);
  EXPECT_FALSE(std::is_sorted(order.begin(), order.end()));
  std::sort(order.begin(), order.end());
  for (int64_t i = 0; i < 1000; ++i) EXPECT_EQ(order[static_cast<size_t>(i)], i);
  for (int i = 0; i < 100; ++i) EXPECT_LT(rng.below(7), 7u);
}

TEST(Dropout, drops_the_given_fraction_and_matches_the_scalar_generator) {
  Rng rng(3);
  const RandomKey key = Rng(3).next();
  const std::vector<float> y = dropout(Tensor::ones({100003}, kCpu), 0.25f, rng).to_vector<float>();
  int64_t dropped = 0;
  for (size_t i = 0; i < y.size(); ++i) {
    const size_t group = i / 64, word = i % 64 / 16, block = group * 16 + i % 16;
    const bool keep = philox(key, block)[word] >= 0x40000000u;
    ASSERT_EQ(y[i], keep ? 1 / 0.75f : 0.0f) << i;
    dropped += !keep;
  }
  EXPECT_NEAR(static_cast<double>(dropped) / static_cast<double>(y.size()), 0.25, 0.005);
}

}  // namespace
}  // namespace heed
