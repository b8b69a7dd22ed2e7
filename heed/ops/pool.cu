// Pooling over windows of an image. A thread computes one output; gradients are gathered from the windows over a pixel, in the order in
// which the CPU adds them.
#include "heed/cuda/element.cuh"
#include "heed/cuda/launch.cuh"
#include "heed/ops/pool.h"

namespace heed::cuda {
namespace {

constexpr unsigned kThreads = 256;

// Window2d with the index type in which a kernel divides: 32 bits where all tensors are small enough.
template <class Index>
struct Axis {
  Index image, kernel, stride, padding, places;

  struct Span {
    Index begin, end;
  };
  // The pixels under the window at a place.
  __device__ Span under(Index place) const {
    const Index begin = place * stride - padding, end = begin + kernel;
    return {begin > 0 ? begin : 0, end < image ? end : image};
  }
  // The places whose window covers a pixel.
  __device__ Span over(Index pixel) const {
    const Index last = (pixel + padding) / stride + 1, first = pixel + padding - kernel + 1;
    return {first > 0 ? (first + stride - 1) / stride : 0, last < places ? last : places};
  }
};
template <class Index>
struct Window {
  Axis<Index> y, x;
  float share;  // of a pixel in a mean
};

template <class Index>
Axis<Index> axis_of(const Window2d& w, int k) {
  return {static_cast<Index>(w.image[k]), static_cast<Index>(w.kernel[k]), static_cast<Index>(w.stride[k]),
          static_cast<Index>(w.padding[k]), static_cast<Index>(w.places[k])};
}
template <class Index>
Window<Index> window_of(const Window2d& w) {
  return {axis_of<Index>(w, 0), axis_of<Index>(w, 1), 1.0f / static_cast<float>(w.taps())};
}

// Calls body(element, plane, row, column) for every element of (planes, rows, columns).
template <class Index, class Body>
__device__ void for_places(Index planes, Index rows, Index columns, const Body& body) {
  const int64_t count = int64_t{planes} * rows * columns, step = int64_t{gridDim.x} * blockDim.x;
  for (int64_t at = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; at < count; at += step) {
    const Index i = static_cast<Index>(at), line = i / columns;
    body(at, line / rows, line % rows, i % columns);
  }
}

// Column by column; NaN beats every number, padding is beaten by everything, and of equal maxima the first in row-major order wins.
template <class T, class Index>
__global__ void max_forward(const T* x, T* y, int32_t* where, Index planes, Window<Index> window) {
  for_places(planes, window.y.places, window.x.places, [&](int64_t at, Index plane, Index row, Index column) {
    const auto rows = window.y.under(row), columns = window.x.under(column);
    const T* const from = x + int64_t{plane} * window.y.image * window.x.image;
    float best = -HUGE_VALF;
    Index best_row = rows.end, best_column = 0;
    for (Index j = columns.begin; j < columns.end; ++j)
      for (Index i = rows.begin; i < rows.end; ++i) {
        const float value = load(from + i * window.x.image + j);
        if (value > best || (value != value && best == best) || (value == best && i < best_row)) {
          best = value;
          best_row = i;
          best_column = j;
        }
      }
    store(y + at, best);
    if (where) where[at] = static_cast<int32_t>(best_row * window.x.image + best_column);
  });
}

template <class T, class Index>
__global__ void max_backward(const T* g, const int32_t* where, T* dx, Index planes, Window<Index> window) {
  for_places(planes, window.y.image, window.x.image, [&](int64_t at, Index plane, Index row, Index column) {
    const auto rows = window.y.over(row), columns = window.x.over(column);
    const int64_t first = int64_t{plane} * window.y.places * window.x.places;
    const int32_t pixel = static_cast<int32_t>(row * window.x.image + column);
    float total = 0;
    for (Index i = rows.begin; i < rows.end; ++i)
      for (Index j = columns.begin; j < columns.end; ++j) {
        const int64_t place = first + i * window.x.places + j;
        if (where[place] == pixel) total += load(g + place);
      }
    store(dx + at, total);
  });
}

// visit(T(), Index(), outputs) with the types for these sizes; `count` elements are computed.
template <class Args, class Visit>
void with_types(const Args& a, const Visit& visit) {
  const Window2d& w = a.window;
  // Sums such as pixel + padding stay within the index, too: sizes of windows are at most 2^20.
  const bool small = a.planes * std::max(w.pixels(), w.out_pixels()) < (int64_t{1} << 30) && std::max(w.image[0], w.image[1]) < (1 << 28) &&
                     std::max(w.places[0] * w.stride[0], w.places[1] * w.stride[1]) < (1 << 30);
  with_storage(a.dtype, [&]<class T>(T) { small ? visit(T(), int32_t()) : visit(T(), int64_t()); });
}

}  // namespace

void max_pool_forward(const MaxPoolForward& a) {
  const int64_t count = a.planes * a.window.out_pixels();
  if (count == 0) return;
  with_types(a, [&]<class T, class Index>(T, Index) {
    start(max_forward<T, Index>, block_count(count, kThreads), kThreads, 0, static_cast<const T*>(a.x), static_cast<T*>(a.y), a.where,
          static_cast<Index>(a.planes), window_of<Index>(a.window));
  });
}

void max_pool_backward(const MaxPoolBackward& a) {
  const int64_t count = a.planes * a.window.pixels();
  if (count == 0) return;
  with_types(a, [&]<class T, class Index>(T, Index) {
    start(max_backward<T, Index>, block_count(count, kThreads), kThreads, 0, static_cast<const T*>(a.g), a.where, static_cast<T*>(a.dx),
          static_cast<Index>(a.planes), window_of<Index>(a.window));
  });
}

}  // namespace heed::cuda
