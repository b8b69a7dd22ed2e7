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
#include "heed/ops/half.h"
#include "heed/ops/ops.h"

#ifndef HEED_OPS_REDUCE_ONCE
#define HEED_OPS_REDUCE_ONCE
namespace heed {

enum class Fold { sum, max, squared_deviations, ties };

// One pass: x: (outer, reduced, inner) -> y: (outer, inner).
struct Pass {
  int64_t outer = 1, reduced = 1, inner = 1;
};

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

inline constexpr int64_t kBlock = 1 << 15;  // elements of one block: enough work for a task

// Four registers walk the elements.
template <class F>
HWY_INLINE Lanes fold_chunk(const float* x, Lanes about, int64_t count) {
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
template <class F>
float fold_row(const float* x, float about, int64_t count) {
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
template <class F>
void fold_columns(const float* x, const float* about, float* y, int64_t rows, int64_t width, int64_t stride) {
  for (int64_t first = 0; first < rows; first += 8) {
    const int64_t some = std::min<int64_t>(8, rows - first);
    const float* from = x + first * stride;
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

// Blocks of the shape are folded in parallel; where several make one output, a second pass folds their results.
template <class F, class Again>
void fold_pass(const float* x, const float* about, float* y, Pass pass) {
  const int64_t outer = pass.outer, reduced = pass.reduced, inner = pass.inner;
  const int64_t strips = pieces(inner, 512), width = (inner + strips - 1) / strips;
  const int64_t blocks = pieces(reduced, inner == 1 ? kBlock : std::min<int64_t>(512, kBlock / width));
  const int64_t rows = (reduced + blocks - 1) / blocks;
  Tensor partial;
  if (blocks > 1) partial = Tensor::empty({outer, blocks, inner});
  float* to = blocks > 1 ? raw<float>(partial) : y;
  parallel_for(outer * blocks * strips, kBlock / (rows * width), [&](int64_t begin, int64_t end) HWY_ATTR {
    if (inner == 1 && blocks == 1) {  // rows may be short: no divisions for them
      for (int64_t o = begin; o < end; ++o) y[o] = fold_row<F>(x + o * reduced, F::has_about ? about[o] : 0, reduced);
      return;
    }
    for (int64_t unit = begin; unit < end; ++unit) {
      const int64_t strip = unit % strips, block = unit / strips % blocks, o = unit / strips / blocks;
      const int64_t column = strip * width, row = block * rows;
      const float* from = x + (o * reduced + row) * inner + column;
      const float* middle = F::has_about ? about + o * inner + column : nullptr;
      float* result = to + (o * blocks + block) * inner + column;
      const int64_t here = std::min(rows, reduced - row);
      if (inner == 1) {
        *result = fold_row<F>(from, F::has_about ? *middle : 0, here);
      } else {
        fold_columns<F>(from, middle, result, here, std::min(width, inner - column), inner);
      }
    }
  });
  if (blocks > 1) fold_pass<Again, Again>(to, nullptr, y, {outer, blocks, inner});
}

// x: (outer, reduced, inner), about: (outer, inner) or null -> y: (outer, inner)
void fold(Fold kind, const float* x, const float* about, float* y, Pass pass) {
  switch (kind) {
    case Fold::sum: return fold_pass<Sum, Sum>(x, about, y, pass);
    case Fold::max: return fold_pass<Max, Max>(x, about, y, pass);
    case Fold::squared_deviations: return fold_pass<SquaredDeviations, Sum>(x, about, y, pass);
    case Fold::ties: return fold_pass<Ties, Sum>(x, about, y, pass);
  }
}

template <class F>
void spread_pass(const float* x, const float* about, const float* g, float* dx, Pass pass) {
  const int64_t outer = pass.outer, reduced = pass.reduced, inner = pass.inner;
  const int64_t length = inner == 1 ? reduced : inner, lines = inner == 1 ? outer : outer * reduced;
  const int64_t strips = pieces(length, kBlock), width = (length + strips - 1) / strips;
  parallel_for(lines * strips, kBlock / width, [&](int64_t begin, int64_t end) HWY_ATTR {
    for (int64_t unit = begin; unit < end; ++unit) {
      const int64_t line = unit / strips, column = unit % strips * width, here = std::min(width, length - column);
      const float* from = x + line * length + column;
      float* to = dx + line * length + column;
      if (inner == 1) {
        const Lanes middle = about[line], share = g[line];
        for_lanes(here, [&](int64_t i, auto load, auto store) HEED_LANES { store(to + i, F::back(load(from + i), middle, share)); });
      } else {
        const int64_t output = line / reduced * inner + column;
        for_lanes(here, [&](int64_t i, auto load, auto store)
                            HEED_LANES { store(to + i, F::back(load(from + i), load(about + output + i), load(g + output + i))); });
      }
    }
  });
}

// The gradient of a fold. x, dx: (outer, reduced, inner), about, g: (outer, inner)
void spread(Fold kind, const float* x, const float* about, const float* g, float* dx, Pass pass) {
  if (kind == Fold::ties) return spread_pass<Ties>(x, about, g, dx, pass);
  spread_pass<SquaredDeviations>(x, about, g, dx, pass);
}

}  // namespace HWY_NAMESPACE
}  // namespace heed
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace heed {

HWY_EXPORT(fold);
HWY_EXPORT(spread);

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

// x: plan.before, dense; about: plan.kept or undefined -> plan.kept
Tensor folded(Fold kind, const Tensor& x, const Plan& plan, const Tensor& about = {}) {
  if (x.count() == 0) return Tensor::zeros(plan.kept, DType::f32, x.device());
  Tensor part = x;
  for (bool first = true; first || part.shape() != plan.kept; first = false) {
    Shape shape = part.shape();
    const Pass pass = next_pass(shape, plan.axes);
    const Tensor y = Tensor::empty(shape, DType::f32, x.device());
    const bool with_about = first && about.defined();
    const Tensor middle = with_about ? spread_out(about, shape) : Tensor();
    const Fold now = first || kind == Fold::max ? kind : Fold::sum;
    HWY_DYNAMIC_DISPATCH(fold)(now, raw<float>(part), with_about ? raw<float>(middle) : nullptr, raw<float>(y), pass);
    part = y;
  }
  return part;
}

// x: plan.before, dense; about, g: plan.kept -> plan.before
Tensor spread_back(Fold kind, const Tensor& x, const Plan& plan, const Tensor& about, const Tensor& g) {
  const Tensor dx = Tensor::empty(x.shape(), DType::f32, x.device());
  if (x.count() == 0) return dx;
  Shape shape = x.shape();
  const Pass pass = next_pass(shape, plan.axes);
  const Tensor middle = spread_out(about, shape), share = spread_out(g, shape);
  HWY_DYNAMIC_DISPATCH(spread)(kind, raw<float>(x), raw<float>(middle), raw<float>(share), raw<float>(dx), pass);
  return dx;
}

// a / b, b of the same shape or of one element.
Tensor quotient(const Tensor& a, const Tensor& b) {
  const Tensor dense = contiguous(a), y = Tensor::empty(a.shape(), DType::f32, a.device());
  const float *top = raw<float>(dense), *bottom = raw<float>(b);
  float* to = raw<float>(y);
  const int64_t step = b.count() == 1 ? 0 : 1;
  parallel_for(a.count(), 1 << 14, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) to[i] = top[i] / bottom[i * step];
  });
  return y;
}

Tensor quotient(const Tensor& a, int64_t b) { return quotient(a, Tensor::full({}, static_cast<double>(b))); }

}  // namespace

Tensor sum(const Tensor& input, const Axes& axes, bool keep) {
  if (is_half(input)) return in_f32(input, [&](const Tensor& wide) { return sum(wide, axes, keep); });
  const Tensor x = dense_f32("sum", input);
  const Plan plan = make_plan("sum", x.shape(), axes, keep);
  return record(op::sum, reshape(folded(Fold::sum, x, plan), plan.out), {input},
                [plan](const Tensor& g) { return Grads{expand(reshape(g, plan.kept), plan.before)}; });
}

Tensor mean(const Tensor& input, const Axes& axes, bool keep) {
  if (is_half(input)) return in_f32(input, [&](const Tensor& wide) { return mean(wide, axes, keep); });
  const Tensor x = dense_f32("mean", input);
  const Plan plan = make_plan("mean", x.shape(), axes, keep);
  check_some("mean", plan);
  return record(op::mean, reshape(quotient(folded(Fold::sum, x, plan), plan.reduced), plan.out), {input},
                [plan](const Tensor& g) { return Grads{expand(reshape(quotient(g, plan.reduced), plan.kept), plan.before)}; });
}

Tensor max(const Tensor& input, const Axes& axes, bool keep) {
  if (is_half(input)) return in_f32(input, [&](const Tensor& wide) { return max(wide, axes, keep); });
  const Tensor x = dense_f32("max", input);
  const Plan plan = make_plan("max", x.shape(), axes, keep);
  check_some("max", plan);
  const Tensor largest = folded(Fold::max, x, plan);
  return record(op::max, reshape(largest, plan.out), {input}, [x, largest, plan](const Tensor& g) {
    const Tensor share = quotient(reshape(g, plan.kept), folded(Fold::ties, x, plan, largest));
    return Grads{spread_back(Fold::ties, x, plan, largest, share)};
  });
}

Tensor variance(const Tensor& input, const Axes& axes, bool keep, bool unbiased) {
  if (is_half(input)) return in_f32(input, [&](const Tensor& wide) { return variance(wide, axes, keep, unbiased); });
  const Tensor x = dense_f32("variance", input);
  const Plan plan = make_plan("variance", x.shape(), axes, keep);
  check_some("variance", plan, unbiased ? 2 : 1);
  const int64_t freedom = plan.reduced - (unbiased ? 1 : 0);
  const Tensor center = quotient(folded(Fold::sum, x, plan), plan.reduced);
  const Tensor y = quotient(folded(Fold::squared_deviations, x, plan, center), freedom);
  return record(op::variance, reshape(y, plan.out), {input}, [x, center, plan, freedom](const Tensor& g) {
    return Grads{spread_back(Fold::squared_deviations, x, plan, center, quotient(reshape(g, plan.kept), freedom))};
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
  const Tensor x = dense_f32("argmax", widen(input.detach()));
  const int at = normal_axis("argmax", axis, x.rank());
  const Plan plan = make_plan("argmax", x.shape(), {at}, false);
  check_some("argmax", plan);
  const Tensor largest = folded(Fold::max, x, plan), out = Tensor::empty(plan.out, DType::i64, x.device());
  const int64_t reduced = plan.reduced;
  int64_t inner = 1;
  for (int a = at + 1; a < x.rank(); ++a) inner *= x.shape()[a];
  const float *from = raw<float>(x), *best = raw<float>(largest);
  int64_t* to = raw<int64_t>(out);
  // The first element that is the largest; a NaN there is the first NaN, which equals nothing.
  parallel_for(out.count(), (1 << 15) / reduced, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const float* element = from + i / inner * reduced * inner + i % inner;
      to[i] = 0;
      while (*element == *element && *element != best[i]) {
        element += inner;
        ++to[i];
      }
    }
  });
  return out;
}

}  // namespace heed
#endif
