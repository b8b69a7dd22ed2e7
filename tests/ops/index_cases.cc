// Looking up by index; repeated indices must add their gradients.
#include <gtest/gtest.h>

#include <cmath>

#include "heed/core/parallel.h"
#include "tests/ops/cases.h"

namespace heed::test {
namespace {

Tensor random_indices(const Shape& shape, int64_t bound, uint64_t seed = 3) {
  Rng rng(seed);
  std::vector<int64_t> values;
  for (int64_t i = 0; i < count(shape); ++i) values.push_back(static_cast<int64_t>(rng.below(static_cast<uint64_t>(bound))));
  return Tensor::from(values, shape, test_device());
}

Case select_case(const std::string& what, const Shape& shape, int axis, const Tensor& indices) {
  Case c;
  c.what = what;
  c.inputs = {normal_input(shape)};
  c.run = [=](const Tensors& x) { return Tensors{index_select(x[0], axis, indices)}; };
  c.reference = [=, index = indices.to_vector<int64_t>()](const Many& x) {
    const int at = axis < 0 ? axis + shape.rank() : axis;
    Shape out_shape = shape;
    out_shape[at] = indices.count();
    Doubles out(out_shape);
    for_each_index(out_shape, [&](const Shape& place) {
      Shape from = place;
      from[at] = index[static_cast<size_t>(place[at])];
      out[flat(out_shape, place)] = x[0][flat(shape, from)];
    });
    return Many{out};
  };
  return c;
}

Case embedding_case(const std::string& what, const Shape& table, const Tensor& indices) {
  Case c;
  c.what = what;
  c.inputs = {normal_input(table)};
  c.run = [=](const Tensors& x) { return Tensors{embedding(x[0], indices)}; };
  c.reference = [=, index = indices.to_vector<int64_t>()](const Many& x) {
    Shape shape = indices.shape();
    shape.push_back(table[1]);
    Doubles out(shape);
    for (int64_t i = 0; i < out.size(); ++i) out[i] = x[0][index[static_cast<size_t>(i / table[1])] * table[1] + i % table[1]];
    return Many{out};
  };
  return c;
}

}  // namespace

template <>
std::vector<Case> cases<Op::embedding>() {
  return {embedding_case("a sentence", {7, 5}, random_indices({6}, 7)),
          embedding_case("a batch", {5, 9}, random_indices({3, 4}, 5)),
          embedding_case("one index", {4, 3}, random_indices({}, 4)),
          embedding_case("i32", {4, 8}, converted(random_indices({2, 3}, 4), DType::i32)),
          embedding_case("strided indices", {6, 8}, transpose(random_indices({4, 3}, 6), 0, 1)),
          embedding_case("many of one", {2, 17}, random_indices({40}, 2)),
          embedding_case("no index", {3, 8}, random_indices({0}, 3))};
}

template <>
std::vector<Case> cases<Op::index_select>() {
  return {select_case("first axis", {4, 3, 4}, 0, random_indices({7}, 4)),
          select_case("last axis", {3, 5}, -1, random_indices({8}, 5)),
          select_case("middle axis", {2, 6, 3}, 1, random_indices({4}, 6)),
          select_case("wide rows", {2, 4, 9}, 1, random_indices({11}, 4)),
          select_case("vector", {6}, 0, random_indices({6}, 6)),
          select_case("empty rows", {3, 0}, 0, random_indices({5}, 3))};
}

namespace {

// The gradient of a table against a sum in double, with 1, 2 and 7 threads.
void check_table_gradient(const Shape& table, const Tensor& indices) {
  const std::vector<int64_t> index = indices.to_vector<int64_t>();
  const Tensor weight = normal_input({indices.count(), table[1]}, 4);
  const std::vector<float> w = weight.to_vector<float>();
  Doubles expected(table), magnitude(table);  // rounding errors grow with the sum of absolute values, even if the sum cancels
  for (int64_t i = 0; i < weight.count(); ++i) {
    const int64_t place = index[static_cast<size_t>(i / table[1])] * table[1] + i % table[1];
    const double value = w[static_cast<size_t>(i)];
    expected[place] += value;
    magnitude[place] += std::abs(value);
  }
  const int before = thread_count();
  std::vector<float> first;
  for (int threads : {1, 2, 7}) {
    set_thread_count(threads);
    const Tensor x = normal_input(table).require_grad();
    backward(embedding(x, indices), weight);
    const std::vector<float> got = x.grad().to_vector<float>();
    if (first.empty()) first = got;
    EXPECT_EQ(got, first) << threads << " threads";
    for (int64_t i = 0; i < expected.size(); ++i)
      ASSERT_NEAR(got[static_cast<size_t>(i)], expected[i], 5e-7 * magnitude[i]) << "element " << i;
  }
  set_thread_count(before);
}

TEST(Index, gradients_of_large_tables_and_of_repeated_indices) {
  check_table_gradient({3000, 96}, random_indices({200}, 3000));
  check_table_gradient({2, 300}, random_indices({3000}, 2));
  check_table_gradient({70, 40}, random_indices({5000}, 70));
  check_table_gradient({900, 3}, random_indices({9000}, 900));
}

TEST(Index, gradients_of_half_precision_tables_accumulate_in_f32) {
  const Tensor x = Tensor::ones({2, 16}, DType::bf16, test_device()).require_grad();
  const Tensor y = embedding(x, Tensor::zeros({1000}, DType::i64, test_device()));
  EXPECT_EQ(y.dtype(), DType::bf16);
  backward(y, Tensor::ones(y.shape(), DType::bf16, test_device()));
  EXPECT_EQ(x.grad().dtype(), DType::bf16);
  EXPECT_EQ(x.grad().to_vector<float>()[0], 1000);
}

TEST(Index, reports_the_invalid_index) {
  const Tensor x = Tensor::zeros({4, 9}, test_device());
  const auto message = [](const auto& call) -> std::string {
    try {
      call();
    } catch (const Error& error) {
      return error.what();
    }
    return "nothing";
  };
  const Tensor high = Tensor::from<int64_t>({0, 1, 2, 3, 3, 4}, {2, 3}, test_device()),
               low = Tensor::from<int32_t>({0, -1, 7}, {3}, test_device());
  EXPECT_EQ(message([&] { embedding(x, high).to_vector<float>(); }), "embedding: found index 4 at position (1, 2), expected 0 to 3");
  EXPECT_EQ(message([&] { index_select(x, 0, low).to_vector<float>(); }), "index_select: found index -1 at position (1), expected 0 to 3");
  std::vector<int64_t> many(100'000, 0);
  many[40'000] = many[90'000] = 5;
  EXPECT_EQ(message([&] { embedding(x, Tensor::from(many, {100'000}, test_device())).to_vector<float>(); }),
            "embedding: found index 5 at position (40000), expected 0 to 3");
  EXPECT_THROW(embedding(x, Tensor::zeros({2}, test_device())), Error);
  EXPECT_THROW(embedding(Tensor::zeros({4}, test_device()), low), Error);
  EXPECT_THROW(embedding(Tensor::zeros({0, 4}, test_device()), Tensor::zeros({1}, DType::i64, test_device())).to_vector<float>(), Error);
  EXPECT_THROW(index_select(x, 2, Tensor::zeros({1}, DType::i64, test_device())), Error);
  EXPECT_THROW(index_select(x, 0, high), Error);
}

}  // namespace
}  // namespace heed::test
