// Choosing between two tensors by a mask.
#include "heed/ops/choose.h"

#include "heed/cuda/element.cuh"
#include "heed/cuda/launch.cuh"
#include "heed/cuda/strides.cuh"

namespace heed::cuda {
namespace {

constexpr int kOperands = Choose::kOperands;

// Which operands have one element for the whole innermost axis.
struct Repeats {
  bool operand[kOperands];
};

template <int width, class T>
__device__ Group<T, width> load_operand(const T* from, bool repeat) {
  if (!repeat) return *reinterpret_cast<const Group<T, width>*>(from);
  Group<T, width> all;
#pragma unroll
  for (T& v : all.values) v = *from;
  return all;
}

// Units of `width` elements of the innermost axis.
template <int width, class T>
__global__ void choose_units(const uint8_t* __restrict__ condition, const T* __restrict__ a, const T* __restrict__ b, T* __restrict__ y,
                             Strides<kOperands> strides, Repeats repeats, int64_t units) {
  for_grid(units, [&](int64_t unit) {
    int64_t at[kOperands];
    strides.offsets(unit, at);
    const auto flags = load_operand<width>(condition + at[0], repeats.operand[0]);
    auto x = load_operand<width>(a + at[1], repeats.operand[1]);
    const auto other = load_operand<width>(b + at[2], repeats.operand[2]);
#pragma unroll
    for (int k = 0; k < width; ++k) x.values[k] = flags.values[k] ? x.values[k] : other.values[k];
    *reinterpret_cast<Group<T, width>*>(y + unit * width) = x;
  });
}

template <int width, class T>
void choose(const Choose& c) {
  const int inner = c.rank - 1;
  Strides<kOperands> strides;
  Repeats repeats;
  for (int k = 0; k < kOperands; ++k) repeats.operand[k] = c.stride[inner][k] == 0;
  int64_t units = 1;
  for (int axis = 0; axis < c.rank; ++axis) {
    const int64_t scale = axis == inner ? width : 1, size = c.size[axis] / scale;
    strides.push_back(size, {c.stride[axis][0] * scale, c.stride[axis][1] * scale, c.stride[axis][2] * scale});
    units *= size;
  }
  start(choose_units<width, T>, block_count(units, 256, 8), 256, 0, reinterpret_cast<const uint8_t*>(c.condition),
        static_cast<const T*>(c.a), static_cast<const T*>(c.b), static_cast<T*>(c.y), strides, repeats, units);
}

// Whether all operands can be read `width` elements at a time: dense or repeated along the innermost axis, and their rows aligned.
bool has_units(const Choose& c, int64_t width) {
  const int inner = c.rank - 1;
  const void* const data[kOperands] = {c.condition, c.a, c.b};
  const int64_t bytes[kOperands] = {1, c.element_bytes, c.element_bytes};
  if (c.size[inner] % width != 0 || !is_aligned(c.y)) return false;
  for (int k = 0; k < kOperands; ++k) {
    if (c.stride[inner][k] == 0) continue;
    if (c.stride[inner][k] != 1 || reinterpret_cast<uintptr_t>(data[k]) % static_cast<uintptr_t>(width * bytes[k]) != 0) return false;
    for (int axis = 0; axis < inner; ++axis)
      if (c.stride[axis][k] % width != 0) return false;
  }
  return true;
}

template <class T>
void choose_sized(const Choose& c) {
  constexpr int width = 16 / sizeof(T);
  has_units(c, width) ? choose<width, T>(c) : choose<1, T>(c);
}

}  // namespace

void choose_forward(const Choose& c) {
  for (int axis = 0; axis < c.rank; ++axis)
    if (c.size[axis] == 0) return;
  switch (c.element_bytes) {
    case 1: return choose_sized<uint8_t>(c);
    case 2: return choose_sized<uint16_t>(c);
    case 4: return choose_sized<uint32_t>(c);
    default: return choose_sized<uint64_t>(c);
  }
}

}  // namespace heed::cuda
