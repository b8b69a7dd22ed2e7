// Loops over dense elements: 16-byte packs from the first aligned address to the last, single elements before and after. And the threads
// that share a row: a warp for short rows, a block for long ones.
#pragma once

#include <type_traits>

#include "heed/cuda/block_reduce.cuh"
#include "heed/cuda/element.cuh"
#include "heed/cuda/launch.cuh"

namespace heed::cuda {

template <int count>
struct Floats {
  float values[count];
};
template <int count>
using Count = std::integral_constant<int, count>;

// One element, or whole packs at an aligned address.
template <int count, class T>
__device__ Floats<count> load_some(const T* from) {
  Floats<count> all;
  if constexpr (count == 1) {
    all.values[0] = load(from);
  } else {
    constexpr int size = Pack<T>::kCount;
#pragma unroll
    for (int k = 0; k < count / size; ++k) {
      const Pack<T> pack = load_pack(from + k * size);
#pragma unroll
      for (int i = 0; i < size; ++i) all.values[k * size + i] = pack.values[i];
    }
  }
  return all;
}
template <int count, class T>
__device__ void store_some(T* to, const Floats<count>& all) {
  if constexpr (count == 1) {
    store(to, all.values[0]);
  } else {
    constexpr int size = Pack<T>::kCount;
#pragma unroll
    for (int k = 0; k < count / size; ++k) {
      Pack<T> pack;
#pragma unroll
      for (int i = 0; i < size; ++i) pack.values[i] = all.values[k * size + i];
      store_pack(to + k * size, pack);
    }
  }
}

// The number of elements before the first aligned address; all `count` if the addresses are not equally far from one. Null pointers among
// `more` are ignored.
template <class T, class... More>
__device__ int64_t unaligned_head(int64_t count, const T* first, const More*... more) {
  static_assert(((sizeof(T) == sizeof(More)) && ...));
  const uintptr_t offset = reinterpret_cast<uintptr_t>(first) % 16;
  if (((more != nullptr && reinterpret_cast<uintptr_t>(more) % 16 != offset) || ...)) return count;
  const int64_t head = static_cast<int64_t>((16 - offset) % 16 / sizeof(T));
  return head < count ? head : count;
}

// body(i, Count<n>()) for elements i to i + n - 1, n = 1 or a pack, of [0, count). The same thread gets the same elements in every call.
template <class T, class Body>
__device__ void for_elements(int64_t count, int64_t head, int64_t thread, int64_t threads, const Body& body) {
  constexpr int size = Pack<T>::kCount;
  const int64_t packs = (count - head) / size;
  for (int64_t i = thread; i < head; i += threads) body(i, Count<1>());
#pragma unroll 4
  for (int64_t i = thread; i < packs; i += threads) body(head + i * size, Count<size>());
  for (int64_t i = head + packs * size + thread; i < count; i += threads) body(i, Count<1>());
}

// The same over the whole grid.
template <class T, class Body>
__device__ void for_grid_elements(int64_t count, int64_t head, const Body& body) {
  for_elements<T>(count, head, int64_t{blockIdx.x} * blockDim.x + threadIdx.x, int64_t{gridDim.x} * blockDim.x, body);
}
template <class T>
unsigned element_blocks(int64_t count) {  // of 256 threads
  return block_count(count, 256 * Pack<T>::kCount, 8);
}

// The threads that share a row. Every one of them gets the sums and maxima.
struct WarpGroup {
  int thread = static_cast<int>(threadIdx.x) % 32;
  static constexpr int threads = 32;

  __device__ explicit WarpGroup(float*) {}
  __device__ int64_t first_row() const { return int64_t{blockIdx.x} * (blockDim.x / 32) + threadIdx.x / 32; }
  __device__ int64_t row_step() const { return int64_t{gridDim.x} * (blockDim.x / 32); }
  template <class Combine>
  __device__ float reduce(float x, Combine combine, float) const {
    return warp_reduce(x, combine);
  }
  __device__ float sum(float x) const { return warp_sum(x); }
  __device__ float max(float x) const { return warp_max(x); }
};
struct BlockGroup {
  int thread = static_cast<int>(threadIdx.x), threads = static_cast<int>(blockDim.x);
  float* scratch;

  __device__ explicit BlockGroup(float* shared) : scratch(shared) {}
  __device__ int64_t first_row() const { return blockIdx.x; }
  __device__ int64_t row_step() const { return gridDim.x; }
  template <class Combine>
  __device__ float reduce(float x, Combine combine, float neutral) const {
    return block_reduce(x, scratch, combine, neutral);
  }
  __device__ float sum(float x) const { return block_sum(x, scratch); }
  __device__ float max(float x) const { return block_reduce(x, scratch, Max(), -HUGE_VALF); }
};

// visit(group type, blocks, threads) for rows of some width.
template <class Visit>
void with_group(int64_t rows, int64_t width, const Visit& visit) {
  if (width <= 1024) return visit(std::type_identity<WarpGroup>(), block_count(rows, 4, 64), 128u);
  return visit(std::type_identity<BlockGroup>(), block_count(rows, 1, 32), width <= 8192 ? 256u : 512u);
}

}  // namespace heed::cuda
