// Reductions. Whatever the axes, one pass folds the last run of reduced axes of a dense tensor seen as
// (outer, reduced, inner); further runs take further passes over the smaller result.
#include <bitset>

#include "heed/core/raw.h"
#include "heed/ops/ops.h"
#include "heed/ops/reduce.h"
#include "heed/ops/storage.h"

namespace heed {
namespace {

using AxisSet = std::bitset<kMaxRank>;

// What a reduction of one shape over one set of axes gives.
struct Plan {
  AxisSet axes;
  Shape before, kept, out;  // kept: reduced axes have size 1; out: the same, or without them
  int64_t reduced = 1;      // elements that make one output
};

Plan make_plan(const char* op, const Shape& shape, const Axes& axes, bool keep) {
  Plan plan{.axes = {}, .before = shape, .kept = shape, .out = {}};
  for (int axis : axes) {
    const int a = normal_axis(op, axis, shape.rank());
    check(!plan.axes[static_cast<size_t>(a)], op, ": axis ", axis, " is given twice");
    plan.axes.set(static_cast<size_t>(a));
  }
  if (axes.empty()) plan.axes.set();
  for (int axis = 0; axis < shape.rank(); ++axis) {
    const bool reduced = plan.axes[static_cast<size_t>(axis)];
    if (reduced) {
      plan.kept[axis] = 1;
      plan.reduced = checked_multiply(plan.reduced, shape[axis]);
    }
    if (!reduced || keep) plan.out.push_back(plan.kept[axis]);
  }
  return plan;
}

void check_some(const char* op, const Plan& plan, int64_t least = 1) {
  check(plan.reduced >= least, op, ": found ", plan.reduced, " elements to reduce in shape ", plan.before, ", expected at least ", least);
}

// One pass: x: (outer, reduced, inner) -> y: (outer, inner).
struct Pass {
  int64_t outer = 1, reduced = 1, inner = 1;
};

// How many parts the reduced axis of a pass is cut into.
int64_t blocks_of(const Pass& pass, Device device) {
  return device.kind == Device::Kind::cuda ? 1 : cpu_fold_parts(pass.reduced, pass.inner);  // a GPU makes parts of its own
}

// Takes the last run of reduced axes out of `shape` (their sizes become 1). Axes of size 1 belong to any run.
Pass next_pass(Shape& shape, const AxisSet& axes) {
  Pass pass;
  int axis = shape.rank() - 1;
  const auto reduced = [&] { return axes[static_cast<size_t>(axis)]; };
  for (; axis >= 0 && (!reduced() || shape[axis] == 1); --axis) pass.inner *= shape[axis];
  for (; axis >= 0 && (reduced() || shape[axis] == 1); --axis) {
    pass.reduced *= shape[axis];
    shape[axis] = 1;
  }
  for (; axis >= 0; --axis) pass.outer *= shape[axis];
  return pass;
}

Tensor spread_out(const Tensor& x, const Shape& shape) { return contiguous(expand(x.detach(), shape)); }

// Folds the passes of one shape until one block is left. about: (outer, inner) or undefined -> y of shape (outer, inner), f32
Tensor fold_pass(Fold kind, Tensor x, Pass pass, const Tensor& about, const Shape& shape) {
  for (const Tensor* middle = &about;; middle = nullptr) {
    const int64_t blocks = blocks_of(pass, x.device());
    const Tensor y = Tensor::empty(blocks == 1 ? shape : Shape{pass.outer, blocks, pass.inner}, DType::f32, x.device());
    launch(fold_forward, x.device(),
           {.kind = kind,
            .x = Raw::bytes(x),
            .about = middle ? raw_or_null<float>(*middle) : nullptr,
            .y = raw<float>(y),
            .outer = pass.outer,
            .reduced = pass.reduced,
            .inner = pass.inner,
            .blocks = blocks,
            .dtype = x.dtype()});
    if (blocks == 1) return y;
    x = y;
    pass.reduced = blocks;
    if (kind != Fold::max) kind = Fold::sum;
  }
}

// x: plan.before, dense; about: plan.kept or undefined -> plan.kept, f32
Tensor folded(Fold kind, const Tensor& x, const Plan& plan, const Tensor& about = {}) {
  if (x.count() == 0) return Tensor::zeros(plan.kept, DType::f32, x.device());
  Tensor part = x;
  for (bool first = true; first || part.shape() != plan.kept; first = false) {
    Shape shape = part.shape();
    const Pass pass = next_pass(shape, plan.axes);
    const Tensor middle = first && about.defined() ? spread_out(about, shape) : Tensor();
    part = fold_pass(first || kind == Fold::max ? kind : Fold::sum, part, pass, middle, shape);
  }
  return part;
}

// x: plan.before, dense; about, g: plan.kept, f32 -> plan.before
Tensor spread_back(Fold kind, const Tensor& x, const Plan& plan, const Tensor& about, const Tensor& g) {
  const Tensor dx = Tensor::empty(x.shape(), x.dtype(), x.device());
  if (x.count() == 0) return dx;
  Shape shape = x.shape();
  const Pass pass = next_pass(shape, plan.axes);
  const Tensor middle = spread_out(about, shape), share = spread_out(g, shape);
  launch(fold_backward, x.device(),
         {.kind = kind,
          .x = Raw::bytes(x),
          .about = raw<float>(middle),
          .g = raw<float>(share),
          .dx = Raw::bytes(dx),
          .outer = pass.outer,
          .reduced = pass.reduced,
          .inner = pass.inner,
          .dtype = x.dtype()});
  return dx;
}

// a / b, without history; b of the same shape or one element.
Tensor quotient(const Tensor& a, const Tensor& b) { return divide(a.detach(), b.detach()); }
Tensor quotient(const Tensor& a, int64_t b) { return quotient(a, Tensor::full({}, static_cast<double>(b), DType::f32, a.device())); }

// A result in the dtype of what was reduced.
Tensor result(const Tensor& y, const Plan& plan, DType dtype) { return converted(y.view(plan.out, dense_strides(plan.out)), dtype); }

// The gradient of a result as f32 in the shape with all axes.
Tensor wide_gradient(const Tensor& g, const Plan& plan) { return converted(contiguous(reshape(g, plan.kept)), DType::f32); }

}  // namespace

Tensor sum(const Tensor& input, const Axes& axes, bool keep, std::optional<DType> dtype) {
  if (input.dtype() == DType::f16) return in_f32(input, [&](const Tensor& wide) { return sum(wide, axes, keep, dtype); });
  const Tensor x = dense_storage("sum", input);
  const Plan plan = make_plan("sum", x.shape(), axes, keep);
  return record(op::sum, result(folded(Fold::sum, x, plan), plan, dtype.value_or(x.dtype())), {input},
                [plan, from = x.dtype()](const Tensor& g) { return Grads{expand(converted(reshape(g, plan.kept), from), plan.before)}; });
}

Tensor mean(const Tensor& input, const Axes& axes, bool keep) {
  if (input.dtype() == DType::f16) return in_f32(input, [&](const Tensor& wide) { return mean(wide, axes, keep); });
  const Tensor x = dense_storage("mean", input);
  const Plan plan = make_plan("mean", x.shape(), axes, keep);
  check_some("mean", plan);
  return record(op::mean, result(quotient(folded(Fold::sum, x, plan), plan.reduced), plan, x.dtype()), {input},
                [plan](const Tensor& g) { return Grads{expand(reshape(quotient(g, plan.reduced), plan.kept), plan.before)}; });
}

Tensor max(const Tensor& input, const Axes& axes, bool keep) {
  if (input.dtype() == DType::f16) return in_f32(input, [&](const Tensor& wide) { return max(wide, axes, keep); });
  const Tensor x = dense_storage("max", input);
  const Plan plan = make_plan("max", x.shape(), axes, keep);
  check_some("max", plan);
  const Tensor largest = folded(Fold::max, x, plan);
  return record(op::max, result(largest, plan, x.dtype()), {input}, [x, largest, plan](const Tensor& g) {
    const Tensor share = quotient(wide_gradient(g, plan), folded(Fold::ties, x, plan, largest));
    return Grads{spread_back(Fold::ties, x, plan, largest, share)};
  });
}

Tensor variance(const Tensor& input, const Axes& axes, bool keep, bool unbiased) {
  if (input.dtype() == DType::f16) return in_f32(input, [&](const Tensor& wide) { return variance(wide, axes, keep, unbiased); });
  const Tensor x = dense_storage("variance", input);
  const Plan plan = make_plan("variance", x.shape(), axes, keep);
  check_some("variance", plan, unbiased ? 2 : 1);
  const int64_t freedom = plan.reduced - (unbiased ? 1 : 0);
  const Tensor center = quotient(folded(Fold::sum, x, plan), plan.reduced);
  const Tensor y = quotient(folded(Fold::squared_deviations, x, plan, center), freedom);
  return record(op::variance, result(y, plan, x.dtype()), {input}, [x, center, plan, freedom](const Tensor& g) {
    return Grads{spread_back(Fold::squared_deviations, x, plan, center, quotient(wide_gradient(g, plan), freedom))};
  });
}

Tensor sum_to(const Tensor& x, const Shape& shape) {
  if (x.shape() == shape) return x;
  const int extra = x.rank() - shape.rank();
  check(extra >= 0, "sum_to: shape ", x.shape(), " has fewer axes than ", shape);
  Axes axes;
  for (int axis = 0; axis < x.rank(); ++axis) {
    const int64_t size = axis < extra ? 1 : shape[axis - extra];
    check(size == x.shape()[axis] || size == 1, "sum_to: ", shape, " does not broadcast to ", x.shape());
    if (axis < extra || size != x.shape()[axis]) axes.push_back(axis);
  }
  return reshape(sum(x, axes, true), shape);
}

Tensor argmax(const Tensor& input, int axis) {
  const Tensor x = dense_storage("argmax", input.dtype() == DType::f16 ? converted(input, DType::f32) : input);
  const int at = normal_axis("argmax", axis, x.rank());
  const Plan plan = make_plan("argmax", x.shape(), {at}, false);
  check_some("argmax", plan);
  const Tensor maximum = folded(Fold::max, x, plan), out = Tensor::empty(plan.out, DType::i64, x.device());
  int64_t inner = 1;
  for (int a = at + 1; a < x.rank(); ++a) inner *= x.shape()[a];
  launch(argmax_forward, x.device(),
         {.x = Raw::bytes(x),
          .maximum = raw<float>(maximum),
          .y = raw<int64_t>(out),
          .outer = out.count() / std::max<int64_t>(inner, 1),
          .reduced = plan.reduced,
          .inner = inner,
          .dtype = x.dtype()});
  return out;
}

}  // namespace heed
