// Looking up by index. Tensors are seen as (outer, axis, inner). Gradients add up in the order of the positions:
// rows are grouped by index first, or scattered where no two tasks meet, so there is nothing to lock and one order only.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "heed/ops/index.cc"
#include "hwy/foreach_target.h"
// after foreach_target
#include "heed/core/lanes.h"

#include <atomic>
#include <cstring>

#include "heed/core/parallel.h"
#include "heed/core/raw.h"
#include "heed/ops/ops.h"

HWY_BEFORE_NAMESPACE();
namespace heed {
namespace HWY_NAMESPACE {

// y: (width) = the sum of the rows of g, `stride` apart, that `positions` names; eight rows at a time as a tree.
static void add_rows(const float* g, const int64_t* positions, int64_t count, int64_t stride, float* y, int64_t width) {
  for (int64_t first = 0; first < count; first += 8) {
    const int64_t some = std::min<int64_t>(8, count - first);
    for_lanes(width, [&](int64_t i, auto load, auto store) HEED_LANES {
      const auto row = [&](int64_t k) HWY_ATTR { return load(g + positions[first + k] * stride + i); };
      Lanes sum = first > 0 ? load(y + i) : Lanes(0.0f);
      if (some == 8) {
        sum = sum + (((row(0) + row(1)) + (row(2) + row(3))) + ((row(4) + row(5)) + (row(6) + row(7))));
      } else {
        for (int64_t k = 0; k < some; ++k) sum = sum + row(k);
      }
      store(y + i, sum);
    });
  }
}

// The same for any number of rows: every 512 of them start a fresh sum, so that no chain of roundings grows long.
void sum_rows(const float* g, const int64_t* positions, int64_t count, int64_t stride, float* y, int64_t width) {
  constexpr int64_t chain = 512, strip = 256;
  for (int64_t column = 0; column < width; column += strip) {
    const int64_t here = std::min(strip, width - column);
    add_rows(g + column, positions, std::min(chain, count), stride, y + column, here);
    for (int64_t first = chain; first < count; first += chain) {
      float some[strip];
      add_rows(g + column, positions + first, std::min(chain, count - first), stride, some, here);
      for_lanes(here, [&](int64_t i, auto load, auto store) HEED_LANES { store(y + column + i, load(y + column + i) + load(some + i)); });
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace heed
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace heed {

HWY_EXPORT(sum_rows);

namespace {

constexpr int64_t kBlock = 1 << 14;  // elements that make a task worth its while

// A tensor around one axis.
struct Around {
  int64_t outer = 1, size = 1, inner = 1;

  Around(const Shape& shape, int axis) : size(shape[axis]) {
    for (int a = 0; a < axis; ++a) outer *= shape[a];
    for (int a = axis + 1; a < shape.rank(); ++a) inner *= shape[a];
  }
};

// The indices as dense i64, every one in [0, bound): nothing is computed before all of them are known to be good.
Tensor checked_indices(const char* op, const Tensor& indices, int64_t bound) {
  check(indices.defined(), op, ": the indices are not defined");
  check(indices.dtype() == DType::i64 || indices.dtype() == DType::i32, op, ": the indices are ", name_of(indices.dtype()),
        ", expected i64 or i32");
  const Tensor dense = converted(contiguous(indices), DType::i64);
  const int64_t* index = raw<int64_t>(dense);
  std::atomic<int64_t> bad = dense.count();
  parallel_for(dense.count(), kBlock, [&](int64_t begin, int64_t end) {
    int64_t i = begin;
    while (i < end && index[i] >= 0 && index[i] < bound) ++i;
    if (i == end) return;
    for (int64_t first = bad.load(); i < first && !bad.compare_exchange_weak(first, i);) {
    }
  });
  if (bad == dense.count()) return dense;
  Shape position = dense.shape();
  int64_t rest = bad;
  for (int axis = position.rank() - 1; axis >= 0; --axis) {
    position[axis] = rest % dense.shape()[axis];
    rest /= dense.shape()[axis];
  }
  fail(op, ": found index ", index[bad], " at position ", position, ", expected 0 to ", bound - 1);
}

// Positions sorted by index, equal ones in their order: those of index v are order[start[v]] to order[start[v + 1] - 1].
struct Grouped {
  std::vector<int64_t> start, order;

  Grouped(const int64_t* index, int64_t count, int64_t bound) : start(static_cast<size_t>(bound) + 1), order(static_cast<size_t>(count)) {
    for (int64_t i = 0; i < count; ++i) ++start[static_cast<size_t>(index[i]) + 1];
    for (size_t v = 1; v < start.size(); ++v) start[v] += start[v - 1];
    std::vector<int64_t> next(start.begin(), start.end() - 1);
    for (int64_t i = 0; i < count; ++i) order[static_cast<size_t>(next[static_cast<size_t>(index[i])]++)] = i;
  }
};

// x: (outer, size, inner), indices: (K) -> y: (outer, K, inner)
void select_rows(const Tensor& x, const Tensor& indices, const Tensor& y, Around at) {
  const int64_t* index = raw<int64_t>(indices);
  const int64_t rows = indices.count(), row = at.inner * static_cast<int64_t>(bytes_of(x.dtype()));
  if (y.count() == 0) return;
  const std::byte* from = Raw::bytes(x);
  std::byte* to = Raw::bytes(y);
  parallel_for(at.outer * rows, kBlock / at.inner, [&](int64_t begin, int64_t end) {
    int64_t o = begin / rows, k = begin % rows;
    for (int64_t i = begin; i < end; ++i) {
      std::memcpy(to + i * row, from + (o * at.size + index[k]) * row, static_cast<size_t>(row));
      if (++k == rows) {
        k = 0;
        ++o;
      }
    }
  });
}

// Calls visit(o, begin, end) for every outer index and block of inner ones, in parallel. lines: elements along the axis
template <class Visit>
void for_each_column(const Around& at, int64_t lines, const Visit& visit) {
  const int64_t width = std::min<int64_t>(at.inner, 256), strips = (at.inner + width - 1) / width;
  parallel_for(at.outer * strips, kBlock / std::max<int64_t>(1, width * lines), [&](int64_t begin, int64_t end) {
    for (int64_t unit = begin; unit < end; ++unit)
      visit(unit / strips, unit % strips * width, std::min(at.inner, (unit % strips + 1) * width));
  });
}

// x: (outer, size, inner), indices, y: (outer, K, inner)
template <class T>
void gather_elements(const T* x, const int64_t* index, T* y, Around at, int64_t lines) {
  for_each_column(at, lines, [&](int64_t o, int64_t begin, int64_t end) {
    for (int64_t k = 0; k < lines; ++k)
      for (int64_t i = begin; i < end; ++i) {
        const int64_t place = (o * lines + k) * at.inner + i;
        y[place] = x[(o * at.size + index[place]) * at.inner + i];
      }
  });
}

// The gradient of gather_elements: columns never meet, and in a column the elements are added in their order.
Tensor gather_back(const Tensor& gradient, const Tensor& indices, const Shape& shape, Around at, int64_t lines) {
  const Tensor g = converted(contiguous(gradient), DType::f32), dx = Tensor::zeros(shape, DType::f32, g.device());
  const int64_t* index = raw<int64_t>(indices);
  const float* from = raw<float>(g);
  float* to = raw<float>(dx);
  if (g.count() == 0) return converted(dx, gradient.dtype());
  for_each_column(at, lines, [&](int64_t o, int64_t begin, int64_t end) {
    for (int64_t k = 0; k < lines; ++k)
      for (int64_t i = begin; i < end; ++i) {
        const int64_t place = (o * lines + k) * at.inner + i;
        to[(o * at.size + index[place]) * at.inner + i] += from[place];
      }
  });
  return converted(dx, gradient.dtype());
}

// The gradient of select_rows, every row of it written once. g: (outer, K, inner) -> (outer, size, inner) as `shape`
Tensor select_rows_back(const Tensor& gradient, const Tensor& indices, const Shape& shape, Around at) {
  const int64_t rows = indices.count();
  if (at.inner < 8)  // too short to be rows
    return gather_back(gradient, contiguous(indices.view({at.outer, rows, at.inner}, {0, 1, 0})), shape, at, rows);
  const Tensor g = converted(contiguous(gradient), DType::f32), dx = Tensor::empty(shape, DType::f32, g.device());
  const Grouped groups(raw<int64_t>(indices), rows, at.size);
  // A short table takes many rows each: there the columns are cut as well, so that every thread has work.
  const int64_t width = at.size >= 64 ? at.inner : std::min<int64_t>(at.inner, 128), strips = (at.inner + width - 1) / width;
  const int64_t reads = width * (1 + rows / std::max<int64_t>(1, at.size));
  parallel_for(at.outer * at.size * strips, kBlock / reads, [&](int64_t begin, int64_t end) {
    for (int64_t unit = begin; unit < end; ++unit) {
      const int64_t line = unit / strips, column = unit % strips * width, here = std::min(width, at.inner - column);
      const int64_t *start = &groups.start[static_cast<size_t>(line % at.size)], count = start[1] - start[0];
      const float* from = raw<float>(g) + line / at.size * rows * at.inner + column;
      float* to = raw<float>(dx) + line * at.inner + column;
      if (count == 0) {
        std::fill(to, to + here, 0.0f);
      } else {
        HWY_DYNAMIC_DISPATCH(sum_rows)(from, groups.order.data() + start[0], count, at.inner, to, here);
      }
    }
  });
  return converted(dx, gradient.dtype());
}

// The slices of x along an axis that `indices` names; its axes take the place of that one in the result.
Tensor take(OpName op, const Tensor& x, int axis, const Tensor& indices) {
  const Around at(x.shape(), axis);
  const Tensor index = checked_indices(op.text, indices, at.size);
  Shape shape;
  for (int a = 0; a < x.rank(); ++a) {
    if (a != axis) shape.push_back(x.shape()[a]);
    if (a == axis)
      for (int64_t size : index.shape()) shape.push_back(size);
  }
  const Tensor dense = contiguous(x), y = Tensor::empty(shape, x.dtype(), x.device());
  select_rows(dense, index, y, at);
  return record(op, y, {x}, [index, before = x.shape(), at](const Tensor& g) { return Grads{select_rows_back(g, index, before, at)}; });
}

}  // namespace

Tensor embedding(const Tensor& table, const Tensor& indices) {
  check(table.defined() && table.rank() == 2, "embedding: the table has ", table.rank(), " axes, expected 2");
  return take(op::embedding, table, 0, indices);
}

Tensor index_select(const Tensor& x, int axis, const Tensor& indices) {
  check(x.defined(), "index_select: the input is not defined");
  check(indices.rank() == 1, "index_select: the indices have ", indices.rank(), " axes, expected 1");
  return take(op::index_select, x, normal_axis("index_select", axis, x.rank()), indices);
}

Tensor gather(const Tensor& x, int along, const Tensor& indices) {
  check(x.defined() && indices.defined(), "gather: an input is not defined");
  const int axis = normal_axis("gather", along, x.rank());
  Shape expected = x.shape();
  if (indices.rank() == x.rank()) expected[axis] = indices.shape()[axis];
  check(indices.shape() == expected, "gather: the indices have shape ", indices.shape(), ", x ", x.shape(), "; only axis ", axis,
        " may differ");
  const Around at(x.shape(), axis);
  const int64_t lines = expected[axis];
  const Tensor index = checked_indices("gather", indices, at.size);
  const Tensor dense = contiguous(x), y = Tensor::empty(expected, x.dtype(), x.device());
  if (y.count() > 0) with_type(x.dtype(), [&]<class T>(T) { gather_elements(raw<T>(dense), raw<int64_t>(index), raw<T>(y), at, lines); });
  return record(op::gather, y, {x},
                [index, before = x.shape(), at, lines](const Tensor& g) { return Grads{gather_back(g, index, before, at, lines)}; });
}

}  // namespace heed
#endif
