// Arithmetic on two tensors with broadcasting, and scaling.
#include "heed/ops/binary.h"

#include "heed/cuda/map.cuh"
#include "heed/cuda/strides.cuh"

namespace heed::cuda {
namespace {

struct Subtract {
  __device__ float operator()(float a, float b) const { return a - b; }
};
struct Multiply {
  __device__ float operator()(float a, float b) const { return a * b; }
};
struct Divide {
  __device__ float operator()(float a, float b) const { return a / b; }
};

template <class Visit>
void with_arithmetic(Arithmetic what, const Visit& visit) {
  switch (what) {
    case Arithmetic::add: return visit(Add());
    case Arithmetic::subtract: return visit(Subtract());
    case Arithmetic::multiply: return visit(Multiply());
    case Arithmetic::divide: return visit(Divide());
  }
}

// `width` elements, or one of them repeated.
template <int width, class T>
__device__ Floats<width> load_operand(const T* from, bool repeat) {
  if (!repeat) return load_some<width>(from);
  Floats<width> all;
  const float value = load(from);
#pragma unroll
  for (float& v : all.values) v = value;
  return all;
}

// Units of `width` elements of the innermost axis, 1 or a pack.
template <int width, class T, class F>
__global__ void combine_units(F f, const T* __restrict__ a, const T* __restrict__ b, T* __restrict__ out, Strides<2> strides, bool repeat_a,
                              bool repeat_b, int64_t units) {
  for_grid(units, [&](int64_t unit) {
    int64_t at[2];
    strides.offsets(unit, at);
    Floats<width> x = load_operand<width>(a + at[0], repeat_a);
    const Floats<width> y = load_operand<width>(b + at[1], repeat_b);
#pragma unroll
    for (int k = 0; k < width; ++k) x.values[k] = f(x.values[k], y.values[k]);
    store_some(out + unit * width, x);
  });
}

// Whether an operand can be read in packs of `width`: its rows start at aligned addresses, or one number is repeated along them.
bool has_packs(const void* data, const int64_t* stride, int rank, int64_t width) {
  if (stride[rank - 1] == 0) return true;
  for (int axis = 0; axis < rank - 1; ++axis)
    if (stride[axis] % width != 0) return false;
  return is_aligned(data);
}

template <int width, class T, class F>
void combine(const BinaryForward& f, F combination) {
  const int inner = f.rank - 1;
  Strides<2> strides;
  int64_t units = 1;
  for (int axis = 0; axis < f.rank; ++axis) {
    const int64_t scale = axis == inner ? width : 1, size = f.size[axis] / scale;
    strides.push_back(size, {f.a_stride[axis] * scale, f.b_stride[axis] * scale});
    units *= size;
  }
  start(combine_units<width, T, F>, block_count(units, 256, 8), 256, 0, combination, static_cast<const T*>(f.a), static_cast<const T*>(f.b),
        static_cast<T*>(f.out), strides, f.a_stride[inner] == 0, f.b_stride[inner] == 0, units);
}

struct FactorAndShift {
  float factor, shift;
  __device__ float operator()(float x) const { return fmaf(x, factor, shift); }
};

}  // namespace

void binary_forward(const BinaryForward& f) {
  for (int axis = 0; axis < f.rank; ++axis)
    if (f.size[axis] == 0) return;
  with_storage(f.dtype, [&]<class T>(T) {
    constexpr int width = Pack<T>::kCount;
    const bool packs = f.size[f.rank - 1] % width == 0 && is_aligned(f.out) && has_packs(f.a, f.a_stride, f.rank, width) &&
                       has_packs(f.b, f.b_stride, f.rank, width);
    with_arithmetic(f.what, [&](auto combination) { packs ? combine<width, T>(f, combination) : combine<1, T>(f, combination); });
  });
}

void scale_forward(const ScaleForward& f) {
  with_storage(f.dtype, [&]<class T>(T) { map_elements<T>(FactorAndShift{f.factor, f.shift}, f.x, f.out, f.count); });
}

}  // namespace heed::cuda
