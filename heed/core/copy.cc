// Strided copies. Axes that are adjacent in both tensors are merged first, so that most copies become long rows.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "heed/core/copy.cc"
#include "hwy/foreach_target.h"
// after foreach_target
#include "heed/core/lanes.h"

#include <cstring>

#include "heed/core/bf16_copy.h"
#include "heed/core/copy.h"
#include "heed/core/copy_kernels.h"
#include "heed/core/merge_axes.h"
#include "heed/core/parallel.h"
#include "heed/core/raw.h"
#include "heed/cuda/graph.h"

HWY_BEFORE_NAMESPACE();
namespace heed {
namespace HWY_NAMESPACE {

template <class T>
void add_typed(T* sum, const T* x, int64_t count) {
  parallel_for(count, 1 << 15, [&](int64_t begin, int64_t end) HWY_ATTR {
    for_lanes(end - begin,
              [&](int64_t i, auto load, auto store) HEED_LANES { store(sum + begin + i, load(sum + begin + i) + load(x + begin + i)); });
  });
}

void add_all(const AddElements& a) {
  with_storage(a.dtype, [&]<class T>(T) { add_typed(static_cast<T*>(a.sum), static_cast<const T*>(a.x), a.count); });
}

}  // namespace HWY_NAMESPACE
}  // namespace heed
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace heed {

HWY_EXPORT(add_all);

namespace {

StridedCopy merge_axes(const Tensor& from, const Tensor& to) {
  StridedCopy copy{.from = Raw::bytes(from), .to = Raw::bytes(to), .from_dtype = from.dtype(), .to_dtype = to.dtype()};
  for (int axis = 0; axis < from.rank(); ++axis)
    append_axis(copy.rank, copy.size, copy.from_stride, copy.to_stride, from.shape()[axis], from.strides()[axis], to.strides()[axis]);
  if (copy.rank == 0) copy.rank = 1, copy.size[0] = copy.from_stride[0] = copy.to_stride[0] = 1;
  return copy;
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

// The last two axes of the copy, in blocks that fit the cache when the source runs down columns.
template <class From, class To>
void copy_plane(const From* from, To* to, const StridedCopy& copy, int64_t row_begin, int64_t row_end) {
  const int inner = copy.rank - 1, outer = copy.rank - 2;
  constexpr int64_t block = 32;
  const bool columns = copy.from_stride[inner] != 1 && copy.from_stride[outer] == 1;
  const int64_t width = columns ? block : copy.size[inner];
  for (int64_t column = 0; column < copy.size[inner]; column += width) {
    const int64_t count = std::min(width, copy.size[inner] - column);
    for (int64_t row = row_begin; row < row_end; ++row)
      copy_row(from + row * copy.from_stride[outer] + column * copy.from_stride[inner], copy.from_stride[inner],
               to + row * copy.to_stride[outer] + column * copy.to_stride[inner], copy.to_stride[inner], count);
  }
}

template <class From, class To>
void copy_typed(const From* from, To* to, const StridedCopy& copy) {
  const int inner = copy.rank - 1;
  if (copy.rank == 1) {
    parallel_for(copy.size[0], 1 << 15, [&](int64_t begin, int64_t end) {
      copy_row(from + begin * copy.from_stride[0], copy.from_stride[0], to + begin * copy.to_stride[0], copy.to_stride[0], end - begin);
    });
    return;
  }
  int64_t planes = 1;
  for (int axis = 0; axis < copy.rank - 2; ++axis) planes *= copy.size[axis];
  const int64_t rows = copy.size[inner - 1];
  const int64_t rows_per_task = std::clamp<int64_t>((1 << 15) / copy.size[inner], 32, std::max<int64_t>(rows, 32));
  const int64_t tasks_per_plane = (rows + rows_per_task - 1) / rows_per_task;
  const int64_t planes_per_task = tasks_per_plane > 1 ? 1 : std::max<int64_t>(1, (1 << 15) / (rows * copy.size[inner]));
  parallel_tasks((planes + planes_per_task - 1) / planes_per_task * tasks_per_plane, [&](int64_t task) {
    const int64_t first = task / tasks_per_plane * planes_per_task, row = task % tasks_per_plane * rows_per_task;
    for (int64_t plane = first; plane < std::min(planes, first + planes_per_task); ++plane) {
      int64_t rest = plane, from_offset = 0, to_offset = 0;
      for (int axis = copy.rank - 3; axis >= 0; --axis) {
        from_offset += rest % copy.size[axis] * copy.from_stride[axis];
        to_offset += rest % copy.size[axis] * copy.to_stride[axis];
        rest /= copy.size[axis];
      }
      copy_plane(from + from_offset, to + to_offset, copy, row, std::min(rows, row + rows_per_task));
    }
  });
}

}  // namespace

void cpu::fill_elements(const Fill& fill) {
  with_type(fill.dtype, [&]<class T>(T) {
    T* to = static_cast<T*>(fill.to);
    const T element = convert<T>(fill.value);
    parallel_for(fill.count, 1 << 16, [&](int64_t begin, int64_t end) { std::fill(to + begin, to + end, element); });
  });
}

void cpu::copy_elements(const StridedCopy& copy) {
  with_type(copy.from_dtype, [&]<class From>(From) {
    with_type(copy.to_dtype, [&]<class To>(To) { copy_typed(static_cast<const From*>(copy.from), static_cast<To*>(copy.to), copy); });
  });
}

void cpu::add_elements(const AddElements& add) { HWY_DYNAMIC_DISPATCH(add_all)(add); }

void cpu::transfer_bytes(const Transfer& transfer) { std::memcpy(transfer.to, transfer.from, static_cast<size_t>(transfer.bytes)); }

void transfer(const Tensor& from, const Tensor& to) {
  if (from.device() == kCpu && cuda::Graph::is_recording()) cuda::Graph::keep(std::make_shared<Tensor>(from.detach()));
  launch(transfer_bytes, to.device() == kCpu ? from.device() : to.device(),
         {.from = Raw::bytes(from),
          .to = Raw::bytes(to),
          .bytes = from.count() * static_cast<int64_t>(bytes_of(from.dtype())),
          .from_device = from.device(),
          .to_device = to.device()});
  refresh_bf16_copy(to);
}

void copy_into(const Tensor& from, const Tensor& to) {
  check(from.shape() == to.shape(), "copy: from shape ", from.shape(), " to shape ", to.shape());
  if (from.count() == 0) return;
  if (from.device() == to.device()) {
    launch(copy_elements, from.device(), merge_axes(from, to));
    return refresh_bf16_copy(to);
  }
  if (!to.is_contiguous() || from.dtype() != to.dtype()) return copy_into(from.to(to.device()), to);
  transfer(contiguous(from), to);
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
  const Device device = common_device("accumulate", {&sum, &g});
  const DType dtype = g.dtype() == DType::f16 ? DType::f32 : g.dtype();  // there is no kernel for f16
  if (!sum.owns_data_alone() || !sum.is_contiguous() || sum.dtype() != dtype) {
    Tensor fresh = Tensor::empty(sum.shape(), dtype, device);
    copy_into(sum, fresh);
    sum = fresh;
  }
  const Tensor dense = contiguous(converted(g, dtype));
  launch(add_elements, device, {.sum = Raw::bytes(sum), .x = Raw::bytes(dense), .count = sum.count(), .dtype = dtype});
  refresh_bf16_copy(sum);
  if (g.dtype() != dtype) sum = converted(sum, g.dtype());
}

}  // namespace heed
#endif
