// Weights packed for inference, as floats and as bytes: products of many sizes against linear().
#include "heed/ops/packed_weight.h"

#include <gtest/gtest.h>

#include "heed/core/parallel.h"
#include "tests/expect_error.h"
#include "tests/ops/cases.h"

namespace heed::test {
namespace {

struct LayerSizes {
  int64_t rows, inputs, outputs;
};

const LayerSizes kSizes[] = {{1, 1, 1},   {1, 7, 5},    {5, 64, 64},   {6, 65, 63},   {7, 3, 129}, {2, 33, 257},
                             {97, 16, 1}, {101, 1, 70}, {130, 40, 66}, {3, 1030, 17}, {0, 4, 6},   {193, 2050, 300}};

// The largest difference, as a share of the largest value.
double difference(const Tensor& a, const Tensor& b) {
  EXPECT_EQ(a.shape(), b.shape());
  const std::vector<float> x = a.to_vector<float>(), y = b.to_vector<float>();
  double most = 0, apart = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    most = std::max(most, std::abs(static_cast<double>(y[i])));
    apart = std::max(apart, std::abs(static_cast<double>(x[i]) - y[i]));
  }
  return most == 0 ? apart : apart / most;
}

TEST(PackedWeight, matches_linear_for_all_sizes) {
  const NoGrad quiet;
  for (const auto& [rows, inputs, outputs] : kSizes) {
    SCOPED_TRACE(testing::Message() << rows << " x " << inputs << " x " << outputs);
    const Tensor x = normal_input({rows, inputs}, 1), w = normal_input({outputs, inputs}, 2), b = normal_input({outputs}, 3);
    for (const Activation activation : {Activation::none, Activation::gelu})
      for (const Tensor& bias : {b, Tensor()}) {
        const Tensor expected = linear(x, w, bias, activation);
        EXPECT_LE(difference(PackedWeight({w}, WeightForm::panels)(x, bias, activation), expected),
                  2e-6);  // sums of up to 2050 products, in another order
        EXPECT_LE(difference(PackedWeight({w}, WeightForm::bytes)(x, bias, activation), expected), 0.03);
      }
  }
}

// Inputs are integers up to 127 and weights multiples of one step, so quantization to bytes is exact, with VNNI or without.
TEST(PackedWeight, bytes_are_exact_for_representable_numbers) {
  const NoGrad quiet;
  std::vector<float> x, w;
  for (int i = 0; i < 3 * 31; ++i) x.push_back(static_cast<float>(i % 31 == 0 ? 127 : i * 37 % 255 - 127));
  for (int i = 0; i < 5 * 31; ++i) w.push_back(static_cast<float>(i % 31 == 0 ? 1 : i * 53 % 3 - 1) * 0.75f);
  const Tensor left = Tensor::from(x, {3, 31}, test_device()), right = Tensor::from(w, {5, 31}, test_device());
  EXPECT_LE(difference(PackedWeight({right}, WeightForm::bytes)(left, {}), linear(left, right)), 1e-6);
  const Tensor zeros = Tensor::zeros({2, 31}, test_device());
  EXPECT_EQ(difference(PackedWeight({right}, WeightForm::bytes)(zeros, {}), Tensor::zeros({2, 5}, test_device())), 0);
}

TEST(PackedWeight, joins_layers_and_accepts_batches) {
  const NoGrad quiet;
  const Tensor x = normal_input({2, 3, 20}, 1), a = normal_input({7, 20}, 2), b = normal_input({70, 20}, 3);
  const PackedWeight both({a, b}, WeightForm::panels);
  EXPECT_EQ(both.outputs(), 77);
  EXPECT_EQ(both.inputs(), 20);
  EXPECT_LE(difference(both(x, {}), concat({linear(x, a), linear(x, b)}, -1)), 1e-6);
}

TEST(PackedWeight, has_the_same_bits_for_any_number_of_threads) {
  const NoGrad quiet;
  const Tensor x = normal_input({150, 300}, 1), w = normal_input({600, 300}, 2);
  const int before = thread_count();
  for (const WeightForm form : {WeightForm::panels, WeightForm::bytes}) {
    const PackedWeight packed({w}, form);
    set_thread_count(1);
    const std::vector<float> one = packed(x, {}).to_vector<float>();
    for (const int threads : {2, 7}) {
      set_thread_count(threads);
      EXPECT_EQ(packed(x, {}).to_vector<float>(), one);
    }
  }
  set_thread_count(before);
}

TEST(PackedWeight, bytes_use_a_quarter_of_the_memory) {
  const Tensor w = normal_input({512, 768}, 1);
  EXPECT_EQ(PackedWeight({w}, WeightForm::panels).bytes(), 512 * 768 * 4);
  EXPECT_LE(PackedWeight({w}, WeightForm::bytes).bytes(), 512 * 768 * 11 / 10);
}

TEST(PackedWeight, refuses_invalid_arguments_and_gradients) {
  const PackedWeight packed({normal_input({4, 6}, 1)}, WeightForm::panels);
  expect_error([&] { packed(normal_input({2, 5}, 1), {}); }, "linear: x has 5 columns, the weight 6");
  expect_error([&] { packed(normal_input({2, 6}, 1), normal_input({3}, 1)); }, "linear: the bias has shape (3), the weight 4 rows");
  Tensor x = normal_input({2, 6}, 1);
  x.require_grad();
  expect_error([&] { packed(x, {}); }, "packed weights have no gradients");
}

}  // namespace
}  // namespace heed::test
