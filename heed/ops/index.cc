// Looking up by index. Tensors are seen as (outer, axis, inner). Gradients add up in the order of the positions:
// rows are grouped by index first, or scattered so that no two tasks write to the same place: no locks and a fixed order.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "heed/ops/index.cc"
#include "hwy/foreach_target.h"
// after foreach_target
#include "heed/core/lanes.h"

#include <atomic>
#include <cstring>

#include "heed/core/parallel.h"
#include "heed/core/raw.h"
#include "heed/ops/index.h"
#include "heed/ops/ops.h"

#ifndef HEED_OPS_INDEX_ONCE
#define HEED_OPS_INDEX_ONCE
namespace heed {
inline constexpr int64_t kBlock = 1 << 14;  // elements that make a task worth its overhead
}
#endif

HWY_BEFORE_NAMESPACE();
namespace heed {
namespace HWY_NAMESPACE {

// y: (width) = the sum of the rows of g, `stride` apart, that `positions` names; eight rows at a time as a tree.
template <class T>
void add_rows(const T* g, const int64_t* positions, int64_t count, int64_t stride, float* y, int64_t width) {
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
template <class T>
void sum_rows(const T* g, const int64_t* positions, int64_t count, int64_t stride, float* y, int64_t width) {
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

// Positions of every index, equal ones in their order: those of index v are order[start[v]] to order[start[v + 1] - 1].
static void group_positions(const SelectRowsBackward& a, int64_t* start, int64_t* order, int64_t* next) {
  std::fill_n(start, a.size + 1, 0);
  for (int64_t i = 0; i < a.rows; ++i) ++start[a.index[i] + 1];
  for (int64_t v = 1; v <= a.size; ++v) start[v] += start[v - 1];
  std::copy_n(start, a.size, next);
  for (int64_t i = 0; i < a.rows; ++i) order[next[a.index[i]]++] = i;
}

template <class T>
void sum_selected(const SelectRowsBackward& a) {
  int64_t *start = static_cast<int64_t*>(a.workspace), *order = start + a.size + 1, *next = order + a.rows;
  group_positions(a, start, order, next);
  // In a short table each row sums many: the columns are split as well, so that every thread has work.
  const int64_t width = a.size >= 64 ? a.inner : std::min<int64_t>(a.inner, 128), strips = (a.inner + width - 1) / width;
  const int64_t reads = width * (1 + a.rows / std::max<int64_t>(1, a.size));
  parallel_for(a.outer * a.size * strips, kBlock / reads, [&](int64_t begin, int64_t end) HWY_ATTR {
    for (int64_t unit = begin; unit < end; ++unit) {
      const int64_t line = unit / strips, column = unit % strips * width, here = std::min(width, a.inner - column);
      const int64_t *mine = start + line % a.size, count = mine[1] - mine[0];
      const T* from = static_cast<const T*>(a.g) + line / a.size * a.rows * a.inner + column;
      float* to = a.dx + line * a.inner + column;
      if (count == 0) {
        std::fill_n(to, here, 0.0f);
      } else {
        sum_rows(from, order + mine[0], count, a.inner, to, here);
      }
    }
  });
}

void select_rows_backward_all(const SelectRowsBackward& a) {
  with_storage(a.dtype, [&]<class T>(T) { sum_selected<T>(a); });
}

}  // namespace HWY_NAMESPACE
}  // namespace heed
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace heed {

HWY_EXPORT(select_rows_backward_all);

void cpu::select_rows_backward(const SelectRowsBackward& args) { HWY_DYNAMIC_DISPATCH(select_rows_backward_all)(args); }

void cpu::check_indices(const CheckIndices& a) {
  const int64_t total = count(Shape(std::span(a.shape, static_cast<size_t>(a.rank))));
  std::atomic<int64_t> bad = total;
  parallel_for(total, kBlock, [&](int64_t begin, int64_t end) {
    int64_t i = begin;
    while (i < end && a.index[i] >= 0 && a.index[i] < a.bound) ++i;
    if (i == end) return;
    for (int64_t first = bad.load(); i < first && !bad.compare_exchange_weak(first, i);) {
    }
  });
  if (bad == total) return;
  Shape position(std::span(a.shape, static_cast<size_t>(a.rank)));
  int64_t rest = bad;
  for (int axis = a.rank - 1; axis >= 0; --axis) {
    position[axis] = rest % a.shape[axis];
    rest /= a.shape[axis];
  }
  fail(a.op, ": found index ", a.index[bad], " at position ", position, ", expected 0 to ", a.bound - 1);
}

void cpu::select_rows(const SelectRows& a) {
  const int64_t row = a.inner * a.element_bytes;
  const auto* from = static_cast<const std::byte*>(a.x);
  auto* to = static_cast<std::byte*>(a.y);
  parallel_for(a.outer * a.rows, kBlock / a.inner, [&](int64_t begin, int64_t end) {
    int64_t o = begin / a.rows, k = begin % a.rows;
    for (int64_t i = begin; i < end; ++i) {
      std::memcpy(to + i * row, from + (o * a.size + a.index[k]) * row, static_cast<size_t>(row));
      if (++k == a.rows) {
        k = 0;
        ++o;
      }
    }
  });
}

void cpu::select_short_rows_backward(const SelectShortRowsBackward& a) {
  with_storage(a.dtype, [&]<class T>(T) {
    const T* g = static_cast<const T*>(a.g);
    parallel_for(a.outer, kBlock / std::max<int64_t>(1, a.inner * a.rows), [&](int64_t begin, int64_t end) {
      for (int64_t o = begin; o < end; ++o)
        for (int64_t k = 0; k < a.rows; ++k)
          for (int64_t i = 0; i < a.inner; ++i)
            a.dx[(o * a.size + a.index[k]) * a.inner + i] += convert<float>(g[(o * a.rows + k) * a.inner + i]);
    });
  });
}

namespace {

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
  CheckIndices args{.op = op, .index = raw<int64_t>(dense), .bound = bound, .rank = dense.rank()};
  std::copy(dense.shape().begin(), dense.shape().end(), args.shape);
  launch(check_indices, dense.device(), args);
  return dense;
}

// A gradient as kernels read it: f32 or bf16, dense.
Tensor readable_gradient(const Tensor& g) { return contiguous(g.dtype() == DType::f16 ? converted(g, DType::f32) : g); }

// The gradient of select_rows. g: (outer, rows, inner) -> (outer, size, inner) as `shape`
Tensor select_rows_back(const Tensor& gradient, const Tensor& indices, const Shape& shape, Around at) {
  const Tensor g = readable_gradient(gradient);
  const auto launch_into = [&]<class Args>(const Kernel<Args>& kernel, const Tensor& dx) {
    launch(kernel, g.device(),
           {.g = Raw::bytes(g),
            .index = raw<int64_t>(indices),
            .dx = raw<float>(dx),
            .outer = at.outer,
            .size = at.size,
            .inner = at.inner,
            .rows = indices.count(),
            .dtype = g.dtype()});
    return converted(dx, gradient.dtype());
  };
  if (at.inner >= 8) return launch_into(select_rows_backward, Tensor::empty(shape, DType::f32, g.device()));
  const Tensor dx = Tensor::zeros(shape, DType::f32, g.device());
  return g.count() > 0 ? launch_into(select_short_rows_backward, dx) : converted(dx, gradient.dtype());
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
  const Device device = common_device(op.text, {&x, &index});
  const Tensor dense = contiguous(x), y = Tensor::empty(shape, x.dtype(), device);
  if (y.count() > 0)
    launch(select_rows, device,
           {.x = Raw::bytes(dense),
            .index = raw<int64_t>(index),
            .y = Raw::bytes(y),
            .outer = at.outer,
            .size = at.size,
            .inner = at.inner,
            .rows = index.count(),
            .element_bytes = static_cast<int64_t>(bytes_of(x.dtype()))});
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

}  // namespace heed
#endif
