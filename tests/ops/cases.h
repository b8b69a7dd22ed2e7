// Test cases of ops: an op, its inputs, and a plain implementation in double.
// Every op in HEED_OPS needs cases<Op::name>(), defined in some tests/ops/*_cases.cc; op_test.cc runs them.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "heed/ops/ops.h"
#include "tests/test_device.h"

namespace heed::test {

// A dense row-major array of doubles.
struct Doubles {
  Shape shape;
  std::vector<double> values;

  explicit Doubles(const Shape& s, double value = 0) : shape(s), values(static_cast<size_t>(count(s)), value) {}
  explicit Doubles(const Tensor& x);
  double& operator[](int64_t i) { return values[static_cast<size_t>(i)]; }
  double operator[](int64_t i) const { return values[static_cast<size_t>(i)]; }
  int64_t size() const { return static_cast<int64_t>(values.size()); }
  int64_t dim(int axis) const { return shape[axis < 0 ? axis + shape.rank() : axis]; }
};

// Calls visit(index) for every multi-index of a shape, in row-major order.
void for_each_index(const Shape& shape, const std::function<void(const Shape& index)>& visit);
int64_t flat(const Shape& shape, const Shape& index);                 // row-major position
double broadcast_at(const Doubles& x, const Shape& index, int rank);  // x at an index of a broadcast result

using Many = std::vector<Doubles>;

struct Case {
  std::string what;
  Tensors inputs;                              // f32; gradients of all of them are checked
  std::function<Tensors(const Tensors&)> run;  // the op
  std::function<Many(const Many&)> reference;  // one result per output of run
  double tolerance = 2e-6;                     // of outputs, relative to the largest
  double gradient_tolerance = 2e-5;            // relative to |gradient| + |weight|
  bool layout_changes_rounding = false;        // whether strided inputs may round differently (numbers of threads never may)
  bool halves = true;                          // whether results for bf16 inputs must be the rounded f32 results
};

enum class Op {
#define HEED_NAME(name) name,
  HEED_OPS(HEED_NAME)
#undef HEED_NAME
};

template <Op op>
std::vector<Case> cases();
#define HEED_CASES(name) \
  template <>            \
  std::vector<Case> cases<Op::name>();
HEED_OPS(HEED_CASES)
#undef HEED_CASES

// Seeded standard-normal input; the same for the same shape and seed.
Tensor normal_input(const Shape& shape, uint64_t seed = 1);
Tensor positive_input(const Shape& shape, uint64_t seed = 1);  // in [0.5, 2.5)
// Normal input whose elements differ by at least 0.01: for functions whose gradient jumps where elements are equal.
Tensor distinct_input(const Shape& shape, uint64_t seed = 1);

// Runs one case: values, gradients, strided inputs, threads, half precision.
void check_case(const std::string& op, const Case& c);

}  // namespace heed::test
