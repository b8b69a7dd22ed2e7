// Concatenating, splitting, stacking and padding: the index of every element is known.
#include <gtest/gtest.h>

#include "tests/expect_error.h"
#include "tests/ops/cases.h"

namespace heed::test {
namespace {

Doubles concat_reference(const Many& parts, int axis) {
  Shape shape = parts[0].shape;
  shape[axis] = 0;
  for (const Doubles& part : parts) shape[axis] += part.shape[axis];
  Doubles out(shape);
  int64_t begin = 0;
  for (const Doubles& part : parts) {
    for_each_index(part.shape, [&](const Shape& index) {
      Shape place = index;
      place[axis] += begin;
      out[flat(shape, place)] = part[flat(part.shape, index)];
    });
    begin += part.shape[axis];
  }
  return out;
}

Case concat_case(const std::string& what, const std::vector<Shape>& shapes, int axis) {
  Case c;
  c.what = what;
  for (size_t k = 0; k < shapes.size(); ++k) c.inputs.push_back(normal_input(shapes[k], k + 1));
  c.run = [=](const Tensors& parts) { return Tensors{concat(parts, axis)}; };
  c.reference = [=, rank = shapes[0].rank()](const Many& parts) { return Many{concat_reference(parts, axis < 0 ? axis + rank : axis)}; };
  return c;
}

Case split_case(const std::string& what, const Shape& shape, const std::vector<int64_t>& sizes, int axis) {
  Case c;
  c.what = what;
  c.inputs = {normal_input(shape)};
  c.run = [=](const Tensors& x) { return split(x[0], sizes, axis); };
  c.reference = [=](const Many& x) {
    const int at = axis < 0 ? axis + shape.rank() : axis;
    Many outs;
    int64_t begin = 0;
    for (int64_t size : sizes) {
      Shape piece = shape;
      piece[at] = size;
      outs.emplace_back(piece);
      for_each_index(piece, [&](const Shape& index) {
        Shape place = index;
        place[at] += begin;
        outs.back()[flat(piece, index)] = x[0][flat(shape, place)];
      });
      begin += size;
    }
    return outs;
  };
  return c;
}

Case stack_case(const std::string& what, const Shape& shape, int parts, int axis) {
  Case c;
  c.what = what;
  for (int k = 0; k < parts; ++k) c.inputs.push_back(normal_input(shape, static_cast<uint64_t>(k) + 1));
  c.run = [=](const Tensors& x) { return Tensors{stack(x, axis)}; };
  c.reference = [=](const Many& x) {
    const int at = axis < 0 ? axis + shape.rank() + 1 : axis;
    Shape out_shape;
    for (int a = 0; a <= shape.rank(); ++a) {
      if (a == at) out_shape.push_back(parts);
      if (a < shape.rank()) out_shape.push_back(shape[a]);
    }
    Doubles out(out_shape);
    for_each_index(out_shape, [&](const Shape& index) {
      Shape inside;
      for (int a = 0; a < index.rank(); ++a)
        if (a != at) inside.push_back(index[a]);
      out[flat(out_shape, index)] = x[static_cast<size_t>(index[at])][flat(shape, inside)];
    });
    return Many{out};
  };
  return c;
}

Case pad_case(const std::string& what, const Shape& shape, const std::vector<std::array<int64_t, 2>>& around, float value) {
  Case c;
  c.what = what;
  c.inputs = {normal_input(shape)};
  c.run = [=](const Tensors& x) { return Tensors{pad(x[0], around, value)}; };
  c.reference = [=](const Many& x) {
    Shape out_shape = shape;
    for (int a = 0; a < shape.rank(); ++a) out_shape[a] += around[static_cast<size_t>(a)][0] + around[static_cast<size_t>(a)][1];
    Doubles out(out_shape, value);
    for_each_index(shape, [&](const Shape& index) {
      Shape place = index;
      for (int a = 0; a < shape.rank(); ++a) place[a] += around[static_cast<size_t>(a)][0];
      out[flat(out_shape, place)] = x[0][flat(shape, index)];
    });
    return Many{out};
  };
  return c;
}

}  // namespace

template <>
std::vector<Case> cases<Op::concat>() {
  return {concat_case("first axis", {{2, 3}, {1, 3}, {4, 3}}, 0), concat_case("last axis", {{2, 3}, {2, 5}}, -1),
          concat_case("middle axis", {{2, 1, 3}, {2, 4, 3}}, 1), concat_case("one part", {{3}}, 0),
          concat_case("an empty part", {{2, 3}, {2, 0}, {2, 1}}, 1)};
}

template <>
std::vector<Case> cases<Op::split>() {
  return {split_case("first axis", {6, 3}, {1, 3, 2}, 0), split_case("last axis", {4, 9}, {3, 3, 3}, -1),
          split_case("middle axis", {2, 5, 3}, {4, 1}, 1), split_case("an empty piece", {4}, {0, 4}, 0),
          split_case("one piece", {2, 2}, {2}, 0)};
}

template <>
std::vector<Case> cases<Op::stack>() {
  return {stack_case("scalars", {}, 3, 0), stack_case("first axis", {2, 3}, 2, 0), stack_case("middle axis", {2, 3}, 4, 1),
          stack_case("last axis", {2, 3}, 2, -1), stack_case("one part", {5}, 1, 1)};
}

template <>
std::vector<Case> cases<Op::pad>() {
  return {pad_case("vector", {5}, {{{2, 3}}}, 0),
          pad_case("matrix", {3, 4}, {{{1, 0}}, {{0, 2}}}, -1.5f),
          pad_case("nothing", {2, 3}, {{{0, 0}}, {{0, 0}}}, 1),
          pad_case("scalar", {}, {}, 1),
          pad_case("image", {1, 2, 3, 3}, {{{0, 0}}, {{0, 0}}, {{1, 1}}, {{1, 1}}}, 0),
          pad_case("empty", {0, 2}, {{{1, 1}}, {{0, 1}}}, 4)};
}

namespace {

TEST(Join, split_combines_the_gradients_of_its_pieces) {
  const Tensor x = normal_input({4, 6}).require_grad();
  const std::vector<int64_t> sizes = {1, 2, 3};
  const Tensors pieces = split(x, sizes, 1);
  for (const Tensor& piece : pieces) EXPECT_TRUE(piece.shares_data_with(x));
  const Tensor y = concat({pieces[2], pieces[0], pieces[2]}, 1);  // piece 1 is unused, piece 2 is used twice
  const Tensor weight = normal_input({4, 7}, 5);
  backward(y, weight);
  const std::vector<float> w = weight.to_vector<float>(), got = x.grad().to_vector<float>();
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(got[i * 6], w[i * 7 + 3]);
    for (size_t j = 1; j < 3; ++j) EXPECT_EQ(got[i * 6 + j], 0);
    for (size_t j = 0; j < 3; ++j) EXPECT_EQ(got[i * 6 + 3 + j], w[i * 7 + j] + w[i * 7 + 4 + j]);
  }
}

TEST(Join, supports_integers) {
  const Tensor a = Tensor::from<int64_t>({1, 2}, {2}, test_device()), b = Tensor::from<int64_t>({1'000'000'000'007}, {1}, test_device());
  EXPECT_EQ(concat({a, b}, 0).to_vector<int64_t>(), (std::vector<int64_t>{1, 2, 1'000'000'000'007}));
  EXPECT_EQ(stack({a, a}, 1).to_vector<int64_t>(), (std::vector<int64_t>{1, 1, 2, 2}));
  const std::vector<std::array<int64_t, 2>> around = {{{0, 1}}};
  EXPECT_EQ(pad(b, around, -100).to_vector<int64_t>(), (std::vector<int64_t>{1'000'000'000'007, -100}));
}

TEST(Join, refuses_tensors_of_different_devices) {
  if (test_device() == kCpu) GTEST_SKIP() << "there is one device";
  const Tensor a = Tensor::zeros({2, 3}, kCpu), b = Tensor::zeros({2, 3}, test_device());
  expect_error([&] { concat({a, b}, 0); }, "concat: tensors on cpu and on cuda");
  expect_error([&] { stack({b, a}, 0); }, "stack: tensors on cuda");
}

TEST(Join, reports_invalid_arguments) {
  const Tensor a = Tensor::zeros({2, 3}, test_device()), b = Tensor::zeros({2, 4}, test_device()), c = Tensor::zeros({2}, test_device());
  EXPECT_THROW(concat({}, 0), Error);
  EXPECT_THROW(concat({a, b}, 0), Error);
  EXPECT_THROW(concat({a, c}, 0), Error);
  EXPECT_THROW(concat({a, a}, 2), Error);
  EXPECT_THROW(concat({a, Tensor()}, 0), Error);
  EXPECT_THROW(concat({Tensor::zeros({}, test_device()), Tensor::zeros({}, test_device())}, 0), Error);
  EXPECT_THROW(concat({a, Tensor::zeros({2, 3}, DType::i64, test_device())}, 0), Error);
  EXPECT_THROW(stack({a, b}, 0), Error);
  EXPECT_THROW(stack({a, a}, 3), Error);
  const std::vector<int64_t> few = {1, 1}, many = {2, 2}, negative = {-1, 4};
  EXPECT_THROW(split(a, few, 1), Error);
  EXPECT_THROW(split(a, many, 1), Error);
  EXPECT_THROW(split(a, negative, 1), Error);
  const std::vector<std::array<int64_t, 2>> one = {{{0, 1}}}, below = {{{0, 1}}, {{-1, 0}}};
  EXPECT_THROW(pad(a, one), Error);
  EXPECT_THROW(pad(a, below), Error);
}

}  // namespace
}  // namespace heed::test
