// Compares every case of every op in the list with its reference.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "heed/core/parallel.h"
#include "tests/ops/cases.h"

namespace heed::test {

Doubles::Doubles(const Tensor& x) : Doubles(x.shape()) {
  const std::vector<float> f = x.to_vector<float>();
  values.assign(f.begin(), f.end());
}

void for_each_index(const Shape& shape, const std::function<void(const Shape&)>& visit) {
  Shape index = shape;
  for (int64_t i = 0; i < count(shape); ++i) {
    int64_t rest = i;
    for (int axis = shape.rank() - 1; axis >= 0; --axis) {
      index[axis] = rest % shape[axis];
      rest /= shape[axis];
    }
    visit(index);
  }
}

int64_t flat(const Shape& shape, const Shape& index) {
  int64_t position = 0;
  for (int axis = 0; axis < shape.rank(); ++axis) position = position * shape[axis] + index[axis];
  return position;
}

double broadcast_at(const Doubles& x, const Shape& index, int rank) {
  Shape own = x.shape;
  for (int axis = 0; axis < x.shape.rank(); ++axis) own[axis] = x.shape[axis] == 1 ? 0 : index[axis + rank - x.shape.rank()];
  return x[flat(x.shape, own)];
}

Tensor normal_input(const Shape& shape, uint64_t seed) {
  Rng rng(seed);
  return random_normal(shape, 0, 1, rng, kCpu).to(test_device());
}

Tensor positive_input(const Shape& shape, uint64_t seed) {
  Rng rng(seed);
  return random_uniform(shape, 0.5f, 2.5f, rng, kCpu).to(test_device());
}

Tensor distinct_input(const Shape& shape, uint64_t seed) {
  Rng rng(seed);
  const int64_t n = count(shape);
  std::vector<float> values;
  for (int64_t place : random_permutation(n, rng))
    values.push_back(0.01f * static_cast<float>(place) - 0.005f * static_cast<float>(n) + 0.0025f);
  return Tensor::from(values, shape, test_device());
}

namespace {

// The same values with the axes stored in reverse order and a gap between elements.
Tensor strided_copy(const Tensor& x) {
  Shape padded;
  std::vector<int> reversed;
  for (int axis = x.rank() - 1; axis >= 0; --axis) {
    padded.push_back(x.shape()[axis]);
    reversed.push_back(axis);
  }
  padded.push_back(2);
  const Tensor room = Tensor::full(padded, 77, DType::f32, x.device());
  Shape strides = x.shape();
  for (int axis = 0; axis < x.rank(); ++axis) strides[axis] = room.strides()[x.rank() - 1 - axis];
  const Tensor view = room.view(x.shape(), strides, 1);
  copy_into(x, view);
  return view;
}

Tensors fresh_leaves(const Tensors& inputs) {
  Tensors leaves;
  for (const Tensor& input : inputs) leaves.push_back(input.detach().require_grad());
  return leaves;
}

// Outputs, then the gradients of sum(weight * output) for every input.
struct Result {
  Tensors outputs, gradients;
};

Result evaluate(const Case& c, const Tensors& inputs) {
  const Tensors leaves = fresh_leaves(inputs);
  Result result;
  const Tensors outs = c.run(leaves);
  for (size_t k = 0; k < outs.size(); ++k) {
    result.outputs.push_back(outs[k].detach());
    const Tensor weight = normal_input(outs[k].shape(), 100 + k);
    if (outs[k].needs_grad()) backward(outs[k], converted(weight, outs[k].dtype()), true);
  }
  for (const Tensor& leaf : leaves)
    result.gradients.push_back(leaf.grad().defined() ? leaf.grad() : Tensor::zeros(leaf.shape(), leaf.dtype(), leaf.device()));
  return result;
}

void expect_same_bits(const Result& a, const Result& b, const std::string& why) {
  const auto same = [&](const Tensor& x, const Tensor& y, const std::string& what) {
    const std::vector<float> p = x.to_vector<float>(), q = y.to_vector<float>();
    ASSERT_EQ(p.size(), q.size());
    EXPECT_TRUE(p.empty() || std::memcmp(p.data(), q.data(), p.size() * sizeof(float)) == 0) << what << " differs: " << why;
  };
  for (size_t i = 0; i < a.outputs.size(); ++i) same(a.outputs[i], b.outputs[i], "output " + std::to_string(i));
  for (size_t i = 0; i < a.gradients.size(); ++i) same(a.gradients[i], b.gradients[i], "gradient " + std::to_string(i));
}

double weighted_sum(const Case& c, const Many& inputs, const std::vector<Doubles>& weights) {
  const Many outs = c.reference(inputs);
  double total = 0;
  for (size_t k = 0; k < outs.size(); ++k)
    for (int64_t i = 0; i < outs[k].size(); ++i) total += outs[k][i] * weights[k][i];
  return total;
}

void check_values(const Case& c, const Result& result, const Many& expected) {
  ASSERT_EQ(expected.size(), result.outputs.size());
  for (size_t k = 0; k < expected.size(); ++k) {
    ASSERT_EQ(expected[k].shape, result.outputs[k].shape());
    const Doubles got(result.outputs[k]);
    double largest = 0;
    for (double value : expected[k].values) largest = std::max(largest, std::abs(value));
    for (int64_t i = 0; i < got.size(); ++i)
      ASSERT_LE(std::abs(got[i] - expected[k][i]), c.tolerance * largest + 1e-15)
          << "output " << k << " element " << i << ": " << got[i] << ", expected " << expected[k][i];
  }
}

void check_gradients(const Case& c, const Result& result, Many inputs) {
  std::vector<Doubles> weights;
  double heaviest = 0;
  for (size_t k = 0; k < result.outputs.size(); ++k) {
    weights.emplace_back(normal_input(result.outputs[k].shape(), 100 + k));
    for (double w : weights.back().values) heaviest = std::max(heaviest, std::abs(w));
  }
  for (size_t k = 0; k < inputs.size(); ++k) {
    const Doubles got(result.gradients[k]);
    for (int64_t i = 0; i < inputs[k].size(); ++i) {
      const double x = inputs[k][i], h = 1e-5;
      inputs[k][i] = x + h;
      const double above = weighted_sum(c, inputs, weights);
      inputs[k][i] = x - h;
      const double below = weighted_sum(c, inputs, weights);
      inputs[k][i] = x;
      const double expected = (above - below) / (2 * h);
      ASSERT_LE(std::abs(got[i] - expected), c.gradient_tolerance * (std::abs(expected) + heaviest))
          << "gradient of input " << k << " element " << i << ": " << got[i] << ", by differences " << expected;
    }
  }
}

// On devices that sum in another order than the CPU, bf16 results may differ in their last bit.
void expect_close(const Tensor& expected, const Tensor& found, double tolerance, const std::string& what) {
  const std::vector<float> a = expected.to_vector<float>(), b = found.to_vector<float>();
  double largest = 0;
  for (const float x : a) largest = std::max(largest, std::abs(static_cast<double>(x)));
  for (size_t i = 0; i < a.size(); ++i)
    ASSERT_LE(std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i])), tolerance * largest) << what << " element " << i;
}

void check_halves(const Case& c) {
  Tensors narrow, rounded;
  for (const Tensor& input : c.inputs) {
    narrow.push_back(converted(input, DType::bf16));
    rounded.push_back(converted(narrow.back(), DType::f32));
  }
  const NoGrad quiet;
  const Tensors got = c.run(narrow), wide = c.run(rounded);
  for (size_t k = 0; k < got.size(); ++k) {
    EXPECT_EQ(got[k].dtype(), DType::bf16);
    if (cuda::computing_device(test_device()) != kCpu) {
      expect_close(converted(wide[k], DType::bf16), got[k], 1.6e-2, "bf16 output " + std::to_string(k));
      continue;
    }
    EXPECT_EQ(got[k].to_vector<float>(), converted(wide[k], DType::bf16).to_vector<float>()) << "bf16 output " << k;
  }
}

}  // namespace

void check_case(const std::string& op, const Case& c) {
  SCOPED_TRACE(op + ": " + c.what);
  Many inputs;
  Tensors strided;
  for (const Tensor& input : c.inputs) {
    inputs.emplace_back(input);
    strided.push_back(strided_copy(input));
  }
  const Result result = evaluate(c, c.inputs);
  check_values(c, result, c.reference(inputs));
  check_gradients(c, result, inputs);
  if (c.layout_changes_rounding || cuda::computing_device(test_device()) != kCpu) {
    const Result other = evaluate(c, strided);
    check_values(c, other, c.reference(inputs));
    check_gradients(c, other, inputs);
  } else {
    expect_same_bits(result, evaluate(c, strided), "strided inputs");
  }
  const int threads = thread_count();
  for (int other : {1, 2, 7}) {
    set_thread_count(other);
    expect_same_bits(result, evaluate(c, c.inputs), std::to_string(other) + " threads");
  }
  set_thread_count(threads);
  if (c.halves) check_halves(c);
}

namespace {

struct Listed {
  std::string name;
  std::vector<Case> (*cases)();
};

std::vector<Listed> every_op() {
  return {
#define HEED_LISTED(name) {#name, &cases<Op::name>},
      HEED_OPS(HEED_LISTED)
#undef HEED_LISTED
  };
}

class EveryOp : public testing::TestWithParam<Listed> {};

TEST_P(EveryOp, matches_its_reference) {
  const std::vector<Case> found = GetParam().cases();
  ASSERT_FALSE(found.empty()) << GetParam().name << " has no case";
  for (const Case& c : found) check_case(GetParam().name, c);
}

INSTANTIATE_TEST_SUITE_P(ops, EveryOp, testing::ValuesIn(every_op()), [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace heed::test
