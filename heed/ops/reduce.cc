// Reductions. Whatever the axes, one pass folds the last run of reduced axes of a dense tensor seen as
// (outer, reduced, inner); further runs take further passes over the smaller result. Sums are blocked: f32 keeps its digits.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "heed/ops/reduce.cc"
#include "hwy/foreach_target.h"
// after foreach_target
#include "heed/core/lanes.h"

#include <bitset>
#include <limits>

#include "heed/core/parallel.h"
#include "heed/core/raw.h"
#include "heed/ops/ops.h"
#include "heed/ops/reduce.h"
#include "heed/ops/storage.h"

#ifndef HEED_OPS_REDUCE_ONCE
#define HEED_OPS_REDUCE_ONCE
namespace heed {

inline constexpr int64_t kBlock = 1 << 15;  // elements of one block: enough work for a task

inline int64_t pieces(int64_t size, int64_t most) { return std::max<int64_t>(1, (size + most - 1) / most); }

}  // namespace heed
#endif

HWY_BEFORE_NAMESPACE();
namespace heed {
namespace HWY_NAMESPACE {

// What a fold does with each element and its output's `about`, how it joins two results, and, where it is used
// backwards, what an element gets of its output's gradient.
struct Sum {
  static constexpr bool has_about = false;
  static HWY_INLINE Lanes start() { return 0.0f; }
  static HWY_INLINE Lanes take(Lanes x, Lanes) { return x; }
  static HWY_INLINE Lanes join(Lanes a, Lanes b) { return a + b; }
  static HWY_INLINE float across(Lanes a) { return sum(a); }
};
struct SquaredDeviations : Sum {
  static constexpr bool has_about = true;
  static HWY_INLINE Lanes take(Lanes x, Lanes mean) { return (x - mean) * (x - mean); }
  static HWY_INLINE Lanes back(Lanes x, Lanes mean, Lanes g) { return 2 * (x - mean) * g; }
};
struct Ties : Sum {  // how many elements are the largest; where that is NaN, how many are NaN
  static constexpr bool has_about = true;
  static HWY_INLINE Lanes take(Lanes x, Lanes largest) { return back(x, largest, 1.0f); }
  static HWY_INLINE Lanes back(Lanes x, Lanes largest, Lanes g) { return select(x == x, select(x == largest, g, 0.0f), g); }
};
struct Max {  // a NaN wins
  static constexpr bool has_about = false;
  static HWY_INLINE Lanes start() { return -HUGE_VALF; }
  static HWY_INLINE Lanes take(Lanes x, Lanes) { return x; }
  static HWY_INLINE Lanes join(Lanes a, Lanes b) { return select(a == a, select(a > b, a, b), a); }
  static HWY_INLINE float across(Lanes a) {
    return hn::AllTrue(FloatTag(), (a == a).m) ? largest(a) : std::numeric_limits<float>::quiet_NaN();
  }
};

// Four registers step through the elements.
template <class F, class T>
HWY_INLINE Lanes fold_chunk(const T* x, Lanes about, int64_t count) {
  const int64_t step = lane_count();
  Lanes a = F::start(), b = a, c = a, d = a;
  int64_t i = 0;
  for (; i + 4 * step <= count; i += 4 * step) {
    a = F::join(a, F::take(Lanes::load(x + i), about));
    b = F::join(b, F::take(Lanes::load(x + i + step), about));
    c = F::join(c, F::take(Lanes::load(x + i + 2 * step), about));
    d = F::join(d, F::take(Lanes::load(x + i + 3 * step), about));
  }
  for (; i + step <= count; i += step) a = F::join(a, F::take(Lanes::load(x + i), about));
  if (i < count) {
    const LaneMask inside{hn::FirstN(FloatTag(), static_cast<size_t>(count - i))};
    b = F::join(b, select(inside, F::take(load_some(x + i, count - i), about), F::start()));
  }
  return F::join(F::join(a, b), F::join(c, d));
}

// The results of chunks are joined as a tree, so that no chain of roundings grows long: level k holds 2^k chunks, as
// the bits of a counter do.
template <class F, class T>
float fold_row(const T* x, float about, int64_t count) {
  const int64_t chunk = 64 * lane_count();
  if (count <= chunk) return F::across(fold_chunk<F>(x, about, count));
  Lanes level[16];  // up to 2^16 chunks: far more than a block has
  int64_t chunks = 0;
  for (int64_t begin = 0; begin < count; begin += chunk, ++chunks) {
    Lanes whole = fold_chunk<F>(x + begin, about, std::min(chunk, count - begin));
    int k = 0;
    for (; chunks >> k & 1; ++k) whole = F::join(level[k], whole);
    level[k] = whole;
  }
  Lanes total = F::start();
  for (int k = 0; chunks >> k; ++k)
    if (chunks >> k & 1) total = F::join(level[k], total);
  return F::across(total);
}

// x: (rows, width) with `stride` elements between rows -> y: (width). Eight rows at a time are joined as a tree.
template <class F, class T>
void fold_columns(const T* x, const float* about, float* y, int64_t rows, int64_t width, int64_t stride) {
  for (int64_t first = 0; first < rows; first += 8) {
    const int64_t some = std::min<int64_t>(8, rows - first);
    const T* from = x + first * stride;
    for_lanes(width, [&](int64_t i, auto load, auto store) HEED_LANES {
      Lanes middle = 0.0f, result = first > 0 ? load(y + i) : F::start();
      if constexpr (F::has_about) middle = load(about + i);
      const auto row = [&](int64_t k) HWY_ATTR { return F::take(load(from + k * stride + i), middle); };
      if (some == 8) {
        const Lanes low = F::join(F::join(row(0), row(1)), F::join(row(2), row(3)));
        const Lanes high = F::join(F::join(row(4), row(5)), F::join(row(6), row(7)));
        result = F::join(result, F::join(low, high));
      } else {
        for (int64_t k = 0; k < some; ++k) result = F::join(result, row(k));
      }
      store(y + i, result);
    });
  }
}

// Blocks, and strips of the inner axis, are folded in parallel.
template <class F, class T>
void fold_blocks(const FoldForward& f) {
  const T* x = static_cast<const T*>(f.x);
  const int64_t reduced = f.reduced, inner = f.inner, blocks = f.blocks;
  const int64_t strips = pieces(inner, 512), width = (inner + strips - 1) / strips, rows = (reduced + blocks - 1) / blocks;
  parallel_for(f.outer * blocks * strips, kBlock / (rows * width), [&](int64_t begin, int64_t end) HWY_ATTR {
    if (inner == 1 && blocks == 1) {  // rows may be short: no divisions for them
      for (int64_t o = begin; o < end; ++o) f.y[o] = fold_row<F>(x + o * reduced, F::has_about ? f.about[o] : 0, reduced);
      return;
    }
    for (int64_t unit = begin; unit < end; ++unit) {
      const int64_t strip = unit % strips, block = unit / strips % blocks, o = unit / strips / blocks;
      const int64_t column = strip * width, row = block * rows;
      const T* from = x + (o * reduced + row) * inner + column;
      const float* middle = F::has_about ? f.about + o * inner + column : nullptr;
      float* result = f.y + (o * blocks + block) * inner + column;
      const int64_t here = std::min(rows, reduced - row);
      if (inner == 1) {
        *result = fold_row<F>(from, F::has_about ? *middle : 0, here);
      } else {
        fold_columns<F>(from, middle, result, here, std::min(width, inner - column), inner);
      }
    }
  });
}

void fold_all(const FoldForward& f) {
  with_storage(f.dtype, [&]<class T>(T) {
    switch (f.kind) {
      case Fold::sum: return fold_blocks<Sum, T>(f);
      case Fold::max: return fold_blocks<Max, T>(f);
      case Fold::squared_deviations: return fold_blocks<SquaredDeviations, T>(f);
      case Fold::ties: return fold_blocks<Ties, T>(f);
    }
  });
}

template <class F, class T>
void spread(const FoldBackward& f) {
  const int64_t outer = f.outer, reduced = f.reduced, inner = f.inner;
  const int64_t length = inner == 1 ? reduced : inner, lines = inner == 1 ? outer : outer * reduced;
  const int64_t strips = pieces(length, kBlock), width = (length + strips - 1) / strips;
  parallel_for(lines * strips, kBlock / width, [&](int64_t begin, int64_t end) HWY_ATTR {
    for (int64_t unit = begin; unit < end; ++unit) {
      const int64_t line = unit / strips, column = unit % strips * width, here = std::min(width, length - column);
      const T* from = static_cast<const T*>(f.x) + line * length + column;
      T* to = static_cast<T*>(f.dx) + line * length + column;
      if (inner == 1) {
        const Lanes middle = f.about[line], share = f.g[line];
        for_lanes(here, [&](int64_t i, auto load, auto store) HEED_LANES { store(to + i, F::back(load(from + i), middle, share)); });
      } else {
        const int64_t output = line / reduced * inner + column;
        for_lanes(here, [&](int64_t i, auto load, auto store)
                            HEED_LANES { store(to + i, F::back(load(from + i), load(f.about + output + i), load(f.g + output + i))); });
      }
    }
  });
}

void spread_all(const FoldBackward& f) {
  with_storage(f.dtype, [&]<class T>(T) { f.kind == Fold::ties ? spread<Ties, T>(f) : spread<SquaredDeviations, T>(f); });
}

}  // namespace HWY_NAMESPACE
}  // namespace heed
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace heed {

HWY_EXPORT(fold_all);
HWY_EXPORT(spread_all);

void cpu::fold_forward(const FoldForward& args) { HWY_DYNAMIC_DISPATCH(fold_all)(args); }
void cpu::fold_backward(const FoldBackward& args) { HWY_DYNAMIC_DISPATCH(spread_all)(args); }

void cpu::argmax_forward(const Argmax& a) {
  with_storage(a.dtype, [&]<class T>(T) {
    parallel_for(a.outer * a.inner, (1 << 15) / a.reduced, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const T* element = static_cast<const T*>(a.x) + i / a.inner * a.reduced * a.inner + i % a.inner;
        a.y[i] = 0;
        for (float value = convert<float>(*element); value == value && value != a.maximum[i]; value = convert<float>(*element)) {
          element += a.inner;
          ++a.y[i];
        }
      }
    });
  });
}

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
int64_t blocks_of(const Pass& pass) {
  const int64_t strips = pieces(pass.inner, 512), width = (pass.inner + strips - 1) / strips;
  return pieces(pass.reduced, pass.inner == 1 ? kBlock : std::min<int64_t>(512, kBlock / width));
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
    const int64_t blocks = blocks_of(pass);
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
Tensor result(const Tensor& y, const Plan& plan, const Tensor& x) {
  return converted(y.view(plan.out, dense_strides(plan.out)), x.dtype());
}

// The gradient of a result as f32 in the shape with all axes.
Tensor wide_gradient(const Tensor& g, const Plan& plan) { return converted(contiguous(reshape(g, plan.kept)), DType::f32); }

}  // namespace

Tensor sum(const Tensor& input, const Axes& axes, bool keep) {
  if (input.dtype() == DType::f16) return in_f32(input, [&](const Tensor& wide) { return sum(wide, axes, keep); });
  const Tensor x = dense_storage("sum", input);
  const Plan plan = make_plan("sum", x.shape(), axes, keep);
  return record(op::sum, result(folded(Fold::sum, x, plan), plan, x), {input},
                [plan](const Tensor& g) { return Grads{expand(reshape(g, plan.kept), plan.before)}; });
}

Tensor mean(const Tensor& input, const Axes& axes, bool keep) {
  if (input.dtype() == DType::f16) return in_f32(input, [&](const Tensor& wide) { return mean(wide, axes, keep); });
  const Tensor x = dense_storage("mean", input);
  const Plan plan = make_plan("mean", x.shape(), axes, keep);
  check_some("mean", plan);
  return record(op::mean, result(quotient(folded(Fold::sum, x, plan), plan.reduced), plan, x), {input},
                [plan](const Tensor& g) { return Grads{expand(reshape(quotient(g, plan.reduced), plan.kept), plan.before)}; });
}

Tensor max(const Tensor& input, const Axes& axes, bool keep) {
  if (input.dtype() == DType::f16) return in_f32(input, [&](const Tensor& wide) { return max(wide, axes, keep); });
  const Tensor x = dense_storage("max", input);
  const Plan plan = make_plan("max", x.shape(), axes, keep);
  check_some("max", plan);
  const Tensor largest = folded(Fold::max, x, plan);
  return record(op::max, result(largest, plan, x), {input}, [x, largest, plan](const Tensor& g) {
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
  return record(op::variance, result(y, plan, x), {input}, [x, center, plan, freedom](const Tensor& g) {
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
#endif
