// Filling, copying and adding elements, and transfers between host and device.
#include "heed/core/copy_kernels.h"
#include "heed/cuda/driver.h"
#include "heed/cuda/early_launch.cuh"
#include "heed/cuda/failure.cuh"
#include "heed/cuda/row.cuh"
#include "heed/cuda/strides.cuh"

namespace heed::cuda {
namespace {

constexpr int kUnitBytes = 16;

// 16 bytes of repeated elements at a time, single ones before and after.
template <class T>
__global__ void fill(T* to, int64_t count, Group<T, kUnitBytes / sizeof(T)> unit) {
  constexpr int width = kUnitBytes / sizeof(T);
  const int64_t head = unaligned_head(count, to), units = (count - head) / width, tail = head + units * width;
  for_grid(units, [&](int64_t i) { *reinterpret_cast<Group<T, width>*>(to + head + i * width) = unit; });
  for_grid(head, [&](int64_t i) { to[i] = unit.values[0]; });
  for_grid(count - tail, [&](int64_t i) { to[tail + i] = unit.values[0]; });
}

// An element as bits: Bf16 as uint16_t, double as uint64_t.
template <size_t bytes>
using Bits =
    std::conditional_t<bytes == 1, uint8_t, std::conditional_t<bytes == 2, uint16_t, std::conditional_t<bytes == 4, uint32_t, uint64_t>>>;

template <class To, class From>
__device__ To converted(From x) {
  constexpr bool from_half = std::is_same_v<From, Bf16> || std::is_same_v<From, F16>;
  constexpr bool to_half = std::is_same_v<To, Bf16> || std::is_same_v<To, F16>;
  if constexpr (std::is_same_v<From, To>) {
    return x;
  } else if constexpr ((from_half || std::is_same_v<From, float>)&&(to_half || std::is_same_v<To, float>)) {  // one instruction
    To y;
    store(&y, load(&x));
    return y;
  } else {
    return convert<To>(x);
  }
}

// Units of `width` elements, in the order of the destination.
template <int width, class From, class To>
__global__ void copy_units(const From* __restrict__ from, To* __restrict__ to, Strides<2> strides, int64_t units) {
  for_grid(units, [&](int64_t unit) {
    int64_t at[2];
    strides.offsets(unit, at);
    const auto x = *reinterpret_cast<const Group<From, width>*>(from + at[0]);
    Group<To, width> y;
#pragma unroll
    for (int k = 0; k < width; ++k) y.values[k] = converted<To>(x.values[k]);
    *reinterpret_cast<Group<To, width>*>(to + at[1]) = y;
  });
}

// Planes of two axes: the source is dense along `columns`, the destination along `rows`. Tiles go through shared memory, so that both are
// read and written along their dense axis.
struct Planes {
  int64_t rows, columns, count;
  int64_t from_stride, to_stride;  // of a row in the source, of a column in the destination
  Divider row_tiles, column_tiles;
  Strides<2> strides;  // of the planes
};
constexpr int kTile = 64;

template <class From, class To>
__global__ void copy_tiles(const From* __restrict__ from, To* __restrict__ to, Planes planes, int64_t tiles) {
  constexpr int pad = sizeof(From) < 4 ? 4 / sizeof(From) : 1;  // a column meets all banks
  __shared__ From tile[kTile][kTile + pad];
  for (int64_t index = blockIdx.x; index < tiles; index += gridDim.x) {
    int64_t plane = index, at[2];
    const int64_t column = planes.column_tiles.split(plane) * kTile, row = planes.row_tiles.split(plane) * kTile;
    planes.strides.offsets(plane, at);
    const From* const source = from + at[0] + row * planes.from_stride + column;
    To* const target = to + at[1] + column * planes.to_stride + row;
    const int64_t rows = planes.rows - row, columns = planes.columns - column;  // from here on
#pragma unroll 4
    for (int r = threadIdx.y; r < kTile; r += blockDim.y)
#pragma unroll
      for (int c = threadIdx.x; c < kTile; c += 32)
        if (r < rows && c < columns) tile[r][c] = source[r * planes.from_stride + c];
    __syncthreads();
#pragma unroll 4
    for (int c = threadIdx.y; c < kTile; c += blockDim.y)
#pragma unroll
      for (int r = threadIdx.x; r < kTile; r += 32)
        if (r < rows && c < columns) target[c * planes.to_stride + r] = converted<To>(tile[r][c]);
    __syncthreads();
  }
}

// The axes by the destination's strides, the largest first, and merged where both sides allow it.
StridedCopy ordered(const StridedCopy& copy) {
  StridedCopy sorted = copy;
  for (int axis = 1; axis < copy.rank; ++axis)
    for (int i = axis; i > 0 && sorted.to_stride[i - 1] < sorted.to_stride[i]; --i) {
      std::swap(sorted.size[i - 1], sorted.size[i]);
      std::swap(sorted.from_stride[i - 1], sorted.from_stride[i]);
      std::swap(sorted.to_stride[i - 1], sorted.to_stride[i]);
    }
  StridedCopy merged = sorted;
  merged.rank = 0;
  for (int axis = 0; axis < sorted.rank; ++axis) {
    const int64_t size = sorted.size[axis], from = sorted.from_stride[axis], to = sorted.to_stride[axis];
    const int last = merged.rank - 1;
    const bool joins = last >= 0 && merged.from_stride[last] == from * size && merged.to_stride[last] == to * size;
    const int place = joins ? last : merged.rank++;
    merged.size[place] = joins ? merged.size[place] * size : size;
    merged.from_stride[place] = from;
    merged.to_stride[place] = to;
  }
  return merged;
}

template <int width, class From, class To>
void start_units(const StridedCopy& copy) {
  Strides<2> strides;
  int64_t units = 1;
  for (int axis = 0; axis < copy.rank; ++axis) {
    const int64_t scale = axis == copy.rank - 1 ? width : 1, size = copy.size[axis] / scale;
    strides.push_back(size, {copy.from_stride[axis] * scale, copy.to_stride[axis] * scale});
    units *= size;
  }
  start(copy_units<width, From, To>, block_count(units, 256, 8), 256, 0, static_cast<const From*>(copy.from), static_cast<To*>(copy.to),
        strides, units);
}

// Whether both sides can be moved `width` elements at a time.
bool has_units(const StridedCopy& copy, int64_t width) {
  const int inner = copy.rank - 1;
  if (copy.from_stride[inner] != 1 || copy.to_stride[inner] != 1 || copy.size[inner] % width != 0) return false;
  for (int axis = 0; axis < inner; ++axis)
    if (copy.from_stride[axis] % width != 0 || copy.to_stride[axis] % width != 0) return false;
  const auto aligned = [&](const void* p, DType dtype) {
    return reinterpret_cast<uintptr_t>(p) % (static_cast<size_t>(width) * bytes_of(dtype)) == 0;
  };
  return aligned(copy.from, copy.from_dtype) && aligned(copy.to, copy.to_dtype);
}

// The axis along which the source is dense, if it is another one than the destination's and both are long enough for tiles; or -1.
int tiled_axis(const StridedCopy& copy) {
  constexpr int64_t least = 8;
  const int inner = copy.rank - 1;
  if (copy.to_stride[inner] != 1 || copy.from_stride[inner] == 1 || copy.size[inner] < least) return -1;
  for (int axis = 0; axis < inner; ++axis)
    if (copy.from_stride[axis] == 1 && copy.size[axis] >= least) return axis;
  return -1;
}

template <class From, class To>
void start_tiles(const StridedCopy& copy, int axis) {
  const int inner = copy.rank - 1;
  Planes planes{.rows = copy.size[inner],
                .columns = copy.size[axis],
                .count = 1,
                .from_stride = copy.from_stride[inner],
                .to_stride = copy.to_stride[axis],
                .row_tiles = Divider(divide_up<int64_t>(copy.size[inner], kTile)),
                .column_tiles = Divider(divide_up<int64_t>(copy.size[axis], kTile)),
                .strides = {}};
  for (int other = 0; other < inner; ++other) {
    if (other == axis) continue;
    planes.strides.push_back(copy.size[other], {copy.from_stride[other], copy.to_stride[other]});
    planes.count *= copy.size[other];
  }
  const int64_t tiles = planes.count * divide_up<int64_t>(planes.rows, kTile) * divide_up<int64_t>(planes.columns, kTile);
  start(copy_tiles<From, To>, block_count(tiles, 1), dim3(32, 8), 0, static_cast<const From*>(copy.from), static_cast<To*>(copy.to), planes,
        tiles);
}

// Elements of one dtype move as bits, 16 bytes at a time where they can.
template <class T>
void copy_bits(const StridedCopy& copy) {
  constexpr int width = kUnitBytes / sizeof(T);
  if (has_units(copy, width)) return start_units<width, T, T>(copy);
  if (const int axis = tiled_axis(copy); axis >= 0) return start_tiles<T, T>(copy, axis);
  start_units<1, T, T>(copy);
}

template <class From, class To>
void copy_converted(const StridedCopy& copy) {
  constexpr bool floating = !std::is_integral_v<From> && !std::is_integral_v<To>;
  if constexpr (floating) {
    if (has_units(copy, 4)) return start_units<4, From, To>(copy);
    if (const int axis = tiled_axis(copy); axis >= 0) return start_tiles<From, To>(copy, axis);
  }
  start_units<1, From, To>(copy);
}

template <class T>
__global__ void add_all(T* sum, const T* __restrict__ x, int64_t count) {
  wait_for_previous();
  allow_next();
  for_grid_elements<T>(count, unaligned_head(count, sum, x), [&](int64_t i, auto some) {
    auto value = load_some<some.value>(sum + i);
    const auto other = load_some<some.value>(x + i);
#pragma unroll
    for (int k = 0; k < some.value; ++k) value.values[k] += other.values[k];
    store_some(sum + i, value);
  });
}

void copy_between(void* to, const void* from, int64_t bytes) {
  check_cuda(cudaMemcpyAsync(to, from, static_cast<size_t>(bytes), cudaMemcpyDefault, stream()), "copy");
}

}  // namespace

void fill_elements(const Fill& f) {
  if (f.count == 0) return;
  with_type(f.dtype, [&]<class T>(T) {
    const T value = convert<T>(f.value);
    using B = Bits<sizeof(T)>;
    const B bits = std::bit_cast<B>(value);
    if (bits == 0) {
      check_cuda(cudaMemsetAsync(f.to, 0, static_cast<size_t>(f.count) * sizeof(T), stream()), "memset");
      return;
    }
    Group<B, kUnitBytes / sizeof(B)> unit;
    for (B& element : unit.values) element = bits;
    start(fill<B>, block_count(f.count, 256 * kUnitBytes / sizeof(B), 8), 256, 0, static_cast<B*>(f.to), f.count, unit);
  });
}

void copy_elements(const StridedCopy& unordered) {
  for (int axis = 0; axis < unordered.rank; ++axis)
    if (unordered.size[axis] == 0) return;
  const StridedCopy copy = ordered(unordered);
  with_type(copy.from_dtype, [&]<class From>(From) {
    if (copy.from_dtype == copy.to_dtype) {
      if (copy.rank == 1 && copy.from_stride[0] == 1 && copy.to_stride[0] == 1)
        return copy_between(copy.to, copy.from, copy.size[0] * static_cast<int64_t>(sizeof(From)));
      return copy_bits<Bits<sizeof(From)>>(copy);
    }
    with_type(copy.to_dtype, [&]<class To>(To) {
      if constexpr (!std::is_same_v<From, To>) copy_converted<From, To>(copy);
    });
  });
}

void add_elements(const AddElements& a) {
  if (a.count == 0) return;
  with_storage(a.dtype, [&]<class T>(T) {
    start_early(add_all<T>, element_blocks<T>(a.count), 256, 0, static_cast<T*>(a.sum), static_cast<const T*>(a.x), a.count);
  });
}

// From pageable memory the call returns when the source has been read. To the host it waits, as the caller reads the result immediately, and
// throws the errors that kernels detected.
void transfer_bytes(const Transfer& t) {
  const bool to_host = t.to_device.kind == Device::Kind::cpu, from_host = t.from_device.kind == Device::Kind::cpu;
  if (!to_host && !from_host) {  // the other device's work must be done before, and its memory may be reused after
    driver::use_device(t.from_device.index);
    driver::synchronize();
    driver::use_device(t.to_device.index);
  }
  if (t.bytes > 0) copy_between(t.to, t.from, t.bytes);
  if (from_host) return;
  driver::synchronize();
  throw_failure();
}

}  // namespace heed::cuda
