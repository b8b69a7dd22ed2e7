// Choosing by masks, with every kind of broadcasting.
#include <gtest/gtest.h>

#include "heed/core/parallel.h"
#include "tests/ops/cases.h"

namespace heed::test {
namespace {

Tensor coin_flips(const Shape& shape, uint64_t seed = 9) {
  std::vector<uint8_t> flips;
  for (float value : normal_input(shape, seed).to_vector<float>()) flips.push_back(value > 0);
  return converted(Tensor::from(flips, shape, test_device()), DType::boolean);
}

Case where_case(const std::string& what, const Tensor& condition, const Shape& a, const Shape& b) {
  Case c;
  c.what = what;
  c.inputs = {normal_input(a, 1), normal_input(b, 2)};
  c.run = [=](const Tensors& x) { return Tensors{where(condition, x[0], x[1])}; };
  c.reference = [=, mask = Doubles(condition)](const Many& x) {
    const Shape shape = broadcast_shape("where", mask.shape, broadcast_shape("where", a, b));
    Doubles out(shape);
    for_each_index(shape, [&](const Shape& index) {
      const int rank = shape.rank();
      out[flat(shape, index)] = broadcast_at(broadcast_at(mask, index, rank) != 0 ? x[0] : x[1], index, rank);
    });
    return Many{out};
  };
  return c;
}

Case fill_case(const std::string& what, const Tensor& mask, const Shape& shape, float value) {
  Case c = where_case(what, mask, shape, shape);
  c.inputs.pop_back();
  c.run = [=](const Tensors& x) { return Tensors{masked_fill(x[0], mask, value)}; };
  c.reference = [=, flags = Doubles(mask)](const Many& x) {
    Doubles out = x[0];
    for_each_index(shape, [&](const Shape& index) {
      if (broadcast_at(flags, index, shape.rank()) != 0) out[flat(shape, index)] = value;
    });
    return Many{out};
  };
  return c;
}

}  // namespace

template <>
std::vector<Case> cases<Op::where>() {
  return {where_case("alike", coin_flips({3, 5}), {3, 5}, {3, 5}),
          where_case("scalars", coin_flips({}), {}, {}),
          where_case("one side a scalar", coin_flips({4, 19}), {4, 19}, {}),
          where_case("the other a scalar", coin_flips({4, 19}), {1, 1}, {4, 19}),
          where_case("mask per row", coin_flips({4, 1}), {4, 6}, {4, 6}),
          where_case("mask per column", coin_flips({6}), {4, 6}, {4, 1}),
          where_case("everything broadcast", coin_flips({2, 1, 1}), {3, 1}, {1, 4}),
          where_case("transposed mask", transpose(coin_flips({5, 3}), 0, 1), {3, 5}, {5}),
          where_case("key mask", coin_flips({2, 1, 1, 5}), {2, 3, 4, 5}, {1}),
          where_case("empty", coin_flips({0, 3}), {1, 3}, {3})};
}

template <>
std::vector<Case> cases<Op::masked_fill>() {
  return {fill_case("alike", coin_flips({3, 5}), {3, 5}, -2),
          fill_case("scalar", coin_flips({}), {}, 1),
          fill_case("key mask", coin_flips({2, 1, 1, 5}), {2, 3, 4, 5}, 0.5f),
          fill_case("causal", coin_flips({6, 6}), {3, 6, 6}, 0),
          fill_case("one flag", coin_flips({1, 1}), {2, 7}, 3),
          fill_case("empty", coin_flips({0}), {2, 0}, 3)};
}

namespace {

TEST(Choose, handles_long_rows_and_many_rows) {
  for (const Shape& shape : {Shape{3, 40000}, Shape{700, 101}}) {
    const Tensor mask = coin_flips(shape), x = normal_input(shape);
    const std::vector<uint8_t> flags = mask.to_vector<uint8_t>();
    std::vector<float> expected = x.to_vector<float>();
    for (size_t i = 0; i < expected.size(); ++i)
      if (flags[i]) expected[i] = -1;
    const int before = thread_count();
    for (int threads : {1, 2, 7}) {
      set_thread_count(threads);
      EXPECT_EQ(masked_fill(x, mask, -1).to_vector<float>(), expected);
      EXPECT_EQ(where(transpose(mask, 0, 1), Tensor::full({}, -1, test_device()), transpose(x, 0, 1)).to_vector<float>(),
                transpose(Tensor::from(expected, shape, test_device()), 0, 1).to_vector<float>());
    }
    set_thread_count(before);
  }
}

TEST(Choose, supports_every_dtype) {
  const Tensor mask = Tensor::from<uint8_t>({1, 0}, {2}, test_device());
  const Tensor flags = converted(mask, DType::boolean);
  for (DType dtype : kEveryDType) {
    const Tensor a = Tensor::ones({2}, dtype, test_device()), b = Tensor::zeros({2}, dtype, test_device());
    EXPECT_EQ(where(flags, a, b).dtype(), dtype);
    EXPECT_EQ(where(flags, a, b).to_vector<float>(), (std::vector<float>{1, 0}));
  }
  const Tensor narrow = Tensor::ones({2}, DType::bf16, test_device()).require_grad(),
               wide = Tensor::full({}, 2, test_device()).require_grad();
  const Tensor mixed = where(flags, narrow, wide);
  EXPECT_EQ(mixed.dtype(), DType::bf16);
  backward(mixed, Tensor::ones({2}, DType::bf16, test_device()));
  EXPECT_EQ(wide.grad().item(), 1);
}

TEST(Choose, reports_invalid_arguments) {
  const Tensor x = Tensor::zeros({2, 3}, test_device()), mask = coin_flips({2, 3});
  EXPECT_THROW(masked_fill(x, coin_flips({4, 2, 3}), 0), Error);
  EXPECT_THROW(masked_fill(Tensor::zeros({1, 3}, test_device()), mask, 0), Error);
  EXPECT_THROW(masked_fill(x, coin_flips({2}), 0), Error);
  EXPECT_THROW(masked_fill(x, x, 0), Error);
  EXPECT_THROW(where(x, x, x), Error);
  EXPECT_THROW(where(mask, x, Tensor::zeros({3, 2}, test_device())), Error);
  EXPECT_THROW(where(mask, x, Tensor::zeros({2, 3}, DType::i64, test_device())), Error);
  EXPECT_THROW(where(mask, x, Tensor()), Error);
}

}  // namespace
}  // namespace heed::test
