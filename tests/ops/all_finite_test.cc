// Finding NaN and infinity in any place, layout and type.
#include "heed/ops/all_finite.h"

#include <gtest/gtest.h>

#include <cmath>

#include "heed/core/copy.h"

namespace heed::test {
namespace {

TEST(AllFinite, finds_one_nonfinite_element_at_any_position) {
  for (const size_t count : {1, 5, 33, 200001})
    for (const float bad : {NAN, HUGE_VALF, -HUGE_VALF})
      for (const size_t place : {size_t{0}, count / 2, count - 1})
        for (const DType dtype : {DType::f32, DType::bf16, DType::f16}) {
          std::vector<float> values(count, 3e4f);
          const Shape shape{static_cast<int64_t>(count)};
          EXPECT_TRUE(all_finite(converted(Tensor::from(values, shape, kCpu), dtype)));
          values[place] = bad;
          EXPECT_FALSE(all_finite(converted(Tensor::from(values, shape, kCpu), dtype))) << count << ' ' << place << ' ' << bad;
        }
}

TEST(AllFinite, accepts_large_numbers_and_checks_only_elements_of_views) {
  EXPECT_TRUE(all_finite(Tensor::full({1000}, 3e38, DType::f32, kCpu)));  // their sum is not
  EXPECT_TRUE(all_finite(Tensor::empty({0}, DType::f32, kCpu)));
  EXPECT_TRUE(all_finite(Tensor::ones({3}, DType::i64, kCpu)));
  const Tensor x = Tensor::from(std::vector<float>{1, NAN, 2, NAN, 3, NAN}, {6}, kCpu);
  EXPECT_TRUE(all_finite(x.view({3}, {2})));
  EXPECT_FALSE(all_finite(x.view({3}, {2}, 1)));
}

}  // namespace
}  // namespace heed::test
