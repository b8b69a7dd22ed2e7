// Strided copies. Axes that lie behind one another in both tensors are merged first, so most copies become long rows.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "heed/core/copy.cc"
#include "hwy/foreach_target.h"
// after foreach_target
#include "heed/core/lanes.h"

#include <cstring>

#include "heed/core/copy.h"
#include "heed/core/parallel.h"
#include "heed/core/raw.h"

HWY_BEFORE_NAMESPACE();
namespace heed {
namespace HWY_NAMESPACE {

void add_into(float* sum, const float* g, int64_t count) {
  parallel_for(count, 1 << 15, [&](int64_t begin, int64_t end) HWY_ATTR {
    for_lanes(end - begin,
              [&](int64_t i, auto load, auto store) HEED_LANES { store(sum + begin + i, load(sum + begin + i) + load(g + begin + i)); });
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace heed
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace heed {

HWY_EXPORT(add_into);

namespace {

// The axes of a copy after merging, outermost first.
struct Walk {
  int rank = 0;
  int64_t size[kMaxRank], from[kMaxRank], to[kMaxRank];
};

Walk merge_axes(const Tensor& from, const Tensor& to) {
  Walk walk;
  for (int axis = 0; axis < from.rank(); ++axis) {
    const int64_t size = from.shape()[axis], a = from.strides()[axis], b = to.strides()[axis];
    if (size == 1) continue;
    const int last = walk.rank - 1;
    if (last >= 0 && walk.from[last] == a * size && walk.to[last] == b * size) {
      walk.size[last] *= size;
      walk.from[last] = a;
      walk.to[last] = b;
    } else {
      walk.size[walk.rank] = size;
      walk.from[walk.rank] = a;
      walk.to[walk.rank++] = b;
    }
  }
  if (walk.rank == 0) walk = {1, {1}, {1}, {1}};
  return walk;
}

template <class From, class To>
void copy_row(const From* from, int64_t from_step, To* to, int64_t to_step, int64_t count) {
  if constexpr (std::is_same_v<From, To>) {
    if (from_step == 1 && to_step == 1) {
      std::memcpy(to, from, static_cast<size_t>(count) * sizeof(To));
      return;
    }
  }
  if (from_step == 1 && to_step == 1) {
    for (int64_t i = 0; i < count; ++i) to[i] = convert<To>(from[i]);
  } else {
    for (int64_t i = 0; i < count; ++i) to[i * to_step] = convert<To>(from[i * from_step]);
  }
}

// The last two axes of the walk, in blocks that fit the cache when the source runs down columns.
template <class From, class To>
void copy_plane(const From* from, To* to, const Walk& walk, int64_t row_begin, int64_t row_end) {
  const int inner = walk.rank - 1, outer = walk.rank - 2;
  constexpr int64_t block = 32;
  const bool columns = walk.from[inner] != 1 && walk.from[outer] == 1;
  const int64_t width = columns ? block : walk.size[inner];
  for (int64_t column = 0; column < walk.size[inner]; column += width) {
    const int64_t count = std::min(width, walk.size[inner] - column);
    for (int64_t row = row_begin; row < row_end; ++row)
      copy_row(from + row * walk.from[outer] + column * walk.from[inner], walk.from[inner],
               to + row * walk.to[outer] + column * walk.to[inner], walk.to[inner], count);
  }
}

template <class From, class To>
void copy_typed(const From* from, To* to, const Walk& walk) {
  const int inner = walk.rank - 1;
  if (walk.rank == 1) {
    parallel_for(walk.size[0], 1 << 15, [&](int64_t begin, int64_t end) {
      copy_row(from + begin * walk.from[0], walk.from[0], to + begin * walk.to[0], walk.to[0], end - begin);
    });
    return;
  }
  int64_t planes = 1;
  for (int axis = 0; axis < walk.rank - 2; ++axis) planes *= walk.size[axis];
  const int64_t rows = walk.size[inner - 1];
  const int64_t rows_per_task = std::clamp<int64_t>((1 << 15) / walk.size[inner], 32, std::max<int64_t>(rows, 32));
  const int64_t tasks_per_plane = (rows + rows_per_task - 1) / rows_per_task;
  const int64_t planes_per_task = tasks_per_plane > 1 ? 1 : std::max<int64_t>(1, (1 << 15) / (rows * walk.size[inner]));
  parallel_tasks((planes + planes_per_task - 1) / planes_per_task * tasks_per_plane, [&](int64_t task) {
    const int64_t first = task / tasks_per_plane * planes_per_task, row = task % tasks_per_plane * rows_per_task;
    for (int64_t plane = first; plane < std::min(planes, first + planes_per_task); ++plane) {
      int64_t rest = plane, from_offset = 0, to_offset = 0;
      for (int axis = walk.rank - 3; axis >= 0; --axis) {
        from_offset += rest % walk.size[axis] * walk.from[axis];
        to_offset += rest % walk.size[axis] * walk.to[axis];
        rest /= walk.size[axis];
      }
      copy_plane(from + from_offset, to + to_offset, walk, row, std::min(rows, row + rows_per_task));
    }
  });
}

}  // namespace

void copy_into(const Tensor& from, const Tensor& to) {
  check(from.shape() == to.shape(), "copy: from shape ", from.shape(), " to shape ", to.shape());
  if (from.count() == 0) return;
  const Walk walk = merge_axes(from, to);
  with_type(from.dtype(),
            [&]<class From>(From) { with_type(to.dtype(), [&]<class To>(To) { copy_typed(raw<From>(from), raw<To>(to), walk); }); });
}

Tensor contiguous(const Tensor& x) {
  if (x.is_contiguous()) return x.detach();
  Tensor out = Tensor::empty(x.shape(), x.dtype(), x.device());
  copy_into(x, out);
  return out;
}

Tensor converted(const Tensor& x, DType dtype) {
  if (x.dtype() == dtype) return x.detach();
  Tensor out = Tensor::empty(x.shape(), dtype, x.device());
  copy_into(x, out);
  return out;
}

void accumulate(Tensor& sum, const Tensor& g) {
  if (!sum.defined()) {
    sum = g.detach();
    return;
  }
  check(sum.shape() == g.shape() && sum.dtype() == g.dtype(), "accumulate: gradients of shapes ", sum.shape(), " and ", g.shape());
  if (!sum.owns_data_alone() || !sum.is_contiguous() || sum.dtype() != DType::f32) {
    Tensor fresh = Tensor::empty(sum.shape(), DType::f32, sum.device());
    copy_into(sum, fresh);
    sum = fresh;
  }
  const Tensor dense = converted(contiguous(g), DType::f32);
  HWY_DYNAMIC_DISPATCH(add_into)(raw<float>(sum), raw<float>(dense), sum.count());
  if (g.dtype() != DType::f32) sum = converted(sum, g.dtype());
}

}  // namespace heed
#endif
