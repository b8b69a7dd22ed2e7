// Tensors: sizes, conversions, views and their bytes.
#include "heed/core/tensor.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "heed/core/copy.h"
#include "heed/ops/ops.h"
#include "tests/expect_error.h"

namespace heed {
namespace {

TEST(Shape, refuses_sizes_that_overflow) {
  const int64_t huge = int64_t{1} << 40;
  expect_error([&] { count(Shape{huge, huge}); }, "is not a size");
  expect_error([&] { count(Shape{0, huge, huge}); }, "is not a size");
  expect_error([&] { count(Shape{2, -1}); }, "is not a size");
  expect_error([&] { (void)Shape{1, 1, 1, 1, 1, 1, 1, 1, 1}; }, "more than 8 axes");
  EXPECT_EQ(count(Shape{}), 1);
  EXPECT_EQ(count(Shape{3, 0, 5}), 0);
}

TEST(Tensor, refuses_sizes_larger_than_memory_before_allocating) {
  const MemoryUse before = memory_use(kCpu);
  expect_error([] { Tensor::empty({int64_t{1} << 45}, kCpu); }, "the machine has");
  expect_error([] { Tensor::empty({int64_t{1} << 62}, kCpu); }, "is not a size");
  EXPECT_EQ(memory_use(kCpu).in_use, before.in_use);
}

TEST(Tensor, refuses_unavailable_devices) {
  expect_error([] { Tensor::empty({1}, {Device::Kind::cuda, 99}); }, "device cuda:99");
}

TEST(Tensor, converts_to_every_dtype_and_back) {
  const std::vector<float> values{0, 1, 2, 3, 200, 7};
  const Tensor x = Tensor::from(values, {2, 3}, kCpu);
  for (DType dtype : kEveryDType) {
    const Tensor back = converted(converted(x, dtype), DType::f32);
    if (dtype == DType::boolean) {
      EXPECT_EQ(back.to_vector<float>(), (std::vector<float>{0, 1, 1, 1, 1, 1}));
    } else {
      EXPECT_EQ(back.to_vector<float>(), values) << name_of(dtype);
    }
    EXPECT_EQ(Tensor::full({2}, 1, dtype, kCpu).to_vector<float>(), (std::vector<float>{1, 1}));
  }
}

// Every 16-bit pattern round-trips through float; floats round to the nearest pattern, ties to even.
TEST(DType, half_formats_round_to_nearest_even) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const F16 half{static_cast<uint16_t>(bits)};
    const Bf16 brain{static_cast<uint16_t>(bits)};
    if (std::isnan(to_float(half))) {
      EXPECT_TRUE(std::isnan(to_float(to_f16(to_float(half)))));
    } else {
      ASSERT_EQ(to_f16(to_float(half)).bits, bits);
    }
    if (std::isnan(to_float(brain))) {
      EXPECT_TRUE(std::isnan(to_float(to_bf16(to_float(brain)))));
    } else {
      ASSERT_EQ(to_bf16(to_float(brain)).bits, bits);
    }
  }
  EXPECT_EQ(to_float(to_f16(1 + 0x1p-11f)), 1.0f);  // ties round to even
  EXPECT_EQ(to_float(to_f16(1 + 3 * 0x1p-11f)), 1 + 0x1p-9f);
  EXPECT_EQ(to_float(to_f16(65519.0f)), 65504.0f);
  EXPECT_TRUE(std::isinf(to_float(to_f16(65520.0f))));
  EXPECT_EQ(to_float(to_f16(0x1p-25f)), 0.0f);  // half of the smallest subnormal: even is zero
  EXPECT_EQ(to_float(to_f16(0x1.8p-25f)), 0x1p-24f);
  EXPECT_EQ(to_float(to_bf16(1 + 0x1p-8f)), 1.0f);
  EXPECT_EQ(to_float(to_bf16(1 + 3 * 0x1p-8f)), 1 + 0x1p-6f);
}

TEST(Tensor, never_owns_borrowed_memory) {
  const auto values = std::make_shared<std::vector<float>>(std::vector<float>{1, 2, 3, 4, 5, 6});
  const auto data = reinterpret_cast<std::byte*>(values->data());
  EXPECT_TRUE(Tensor::zeros({2, 3}, kCpu).owns_data_alone());
  EXPECT_TRUE(Tensor::adopt(values, data, {2, 3}, DType::f32).owns_data_alone());
  Tensor logits = Tensor::borrow(values, data, {2, 3}, DType::f32);
  EXPECT_FALSE(logits.owns_data_alone());
  // The final backward writes the gradient over logits that nothing else uses.
  const Tensor loss = cross_entropy(logits.require_grad(), Tensor::from<int64_t>({0, 2}, {2}, kCpu));
  logits = Tensor();
  backward(loss);
  EXPECT_EQ(*values, (std::vector<float>{1, 2, 3, 4, 5, 6}));
}

TEST(View, shares_the_data) {
  const Tensor x = Tensor::zeros({2, 3, 4}, kCpu);
  EXPECT_TRUE(reshape(x, {6, 4}).shares_data_with(x));
  EXPECT_TRUE(permute(x, {2, 0, 1}).shares_data_with(x));
  EXPECT_TRUE(slice(x, 1, 1, 3).shares_data_with(x));
  EXPECT_TRUE(expand(reshape(x, {2, 3, 4, 1}), {2, 3, 4, 5}).shares_data_with(x));
  EXPECT_TRUE(reshape(permute(x, {1, 0, 2}), {3, 2, 2, 2}).shares_data_with(x));  // splitting an axis needs no copy
  EXPECT_FALSE(reshape(permute(x, {1, 0, 2}), {6, 4}).shares_data_with(x));       // joining these two does
}

TEST(View, reshapes_expanded_axes) {
  const Tensor x = Tensor::from(std::vector<float>{1, 2}, {2, 1}, kCpu);
  EXPECT_EQ(reshape(expand(x, {2, 3}), {6}).to_vector<float>(), (std::vector<float>{1, 1, 1, 2, 2, 2}));
  EXPECT_EQ(reshape(expand(reshape(x, {1, 2, 1}), {2, 2, 2}), {4, 2}).to_vector<float>(), (std::vector<float>{1, 1, 2, 2, 1, 1, 2, 2}));
  const Tensor y =
      Tensor::from(std::vector<float>{1, 2, 3, 4, 5, 6, 7, 8}, {8}, kCpu).require_grad();  // the mean's gradient is such a view
  backward(sum(mean(reshape(y, {2, 2, 2}), {1}) * Tensor::from(std::vector<float>{1, 2, 3, 4}, {2, 2}, kCpu)));
  EXPECT_EQ(y.grad().to_vector<float>(), (std::vector<float>{0.5f, 1, 0.5f, 1, 1.5f, 2, 1.5f, 2}));
}

TEST(View, reports_invalid_arguments) {
  const Tensor x = Tensor::zeros({2, 3}, kCpu);
  expect_error([&] { reshape(x, {4, 2}); }, "reshape: (2, 3) has 6 elements, (4, 2) has 8");
  expect_error([&] { reshape(x, {-1, -1}); }, "two sizes are -1");
  expect_error([&] { permute(x, {0, 0}); }, "given twice");
  expect_error([&] { slice(x, 1, 2, 5); }, "slice: [2, 5) of an axis of size 3");
  expect_error([&] { slice(x, 2, 0, 1); }, "axis 2 of a tensor with 2 axes");
  expect_error([&] { expand(x, {2, 5}); }, "expand: (2, 3) to (2, 5)");
  expect_error([&] { x.item(); }, "expected one element");
  expect_error([&] { add(x, Tensor::zeros({4}, kCpu)); }, "do not broadcast");
  expect_error([&] { matmul(x, x); }, "the rows of a have 3 numbers, the columns of b 2");
  expect_error([&] { linear(x, Tensor::zeros({5, 4}, kCpu)); }, "linear: x has 3 columns, the weight 4");
}

TEST(Memory, is_reused_and_its_peak_is_measured) {
  release_cached_memory(kCpu);  // cached blocks of other tests could be reused, and have other sizes
  { const Tensor warm = Tensor::empty({1 << 20}, kCpu); }
  const MemoryUse start = memory_use(kCpu);
  EXPECT_GE(start.cached, 4 << 20);
  reset_peak_memory(kCpu);
  {
    const Tensor again = Tensor::empty({1 << 20}, kCpu);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(again.to_vector<float>().data()) % alignof(float), 0u);
    EXPECT_EQ(memory_use(kCpu).cached, start.cached - (4 << 20));
    const Tensor other = Tensor::empty({1 << 20}, kCpu);
  }
  EXPECT_EQ(memory_use(kCpu).peak, start.in_use + (8 << 20));
  EXPECT_EQ(memory_use(kCpu).in_use, start.in_use);
  release_cached_memory(kCpu);
  EXPECT_EQ(memory_use(kCpu).cached, 0);
}

TEST(Memory, refuses_sizes_that_cannot_be_rounded_up) {
  expect_error([] { Tensor::empty({INT64_MAX}, DType::u8, kCpu); }, "9223372036854775807 bytes");
}

}  // namespace
}  // namespace heed
