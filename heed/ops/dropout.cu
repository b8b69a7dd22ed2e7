// Dropout with the mask that the CPU makes: 64 elements share 16 blocks of 4 words, and element e takes word e / 16 of block e % 16.
#include "heed/ops/dropout.h"

#include "heed/cuda/row.cuh"

namespace heed::cuda {
namespace {

constexpr int kGroup = 64, kRow = 16;  // elements of a group, and of those that take the same word

// A thread makes the random words of `width` neighbours of a row, and with them four packs, one of every row of the group.
// Unless `aligned`, packs are loaded and stored element by element.
template <class T>
__global__ void drop(const T* __restrict__ x, T* __restrict__ y, int64_t count, RandomKey key, uint32_t threshold, float scale,
                     bool aligned) {
  constexpr int width = Pack<T>::kCount, parts = kRow / width, rows = kGroup / kRow;
  const int64_t units = divide_up<int64_t>(count, kGroup) * parts, step = int64_t{gridDim.x} * blockDim.x;
  for (int64_t unit = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; unit < units; unit += step) {
    const int64_t group = unit / parts, lane = unit % parts * width, first = group * kGroup + lane;
    const bool whole = aligned && first + (rows - 1) * kRow + width <= count;
    Floats<width> value[rows];
    if (whole) {  // before the words, which take longer to make than to load these
#pragma unroll
      for (int row = 0; row < rows; ++row) value[row] = load_some<width>(x + first + row * kRow);
    }
    uint32_t keep[rows] = {};  // a bit for every element of a pack
#pragma unroll
    for (int k = 0; k < width; ++k) {
      const std::array<uint32_t, rows> words = philox(key, static_cast<uint64_t>(group * kRow + lane + k));
#pragma unroll
      for (int row = 0; row < rows; ++row) keep[row] |= static_cast<uint32_t>(words[row] >= threshold) << k;
    }
#pragma unroll
    for (int row = 0; row < rows; ++row) {
      const int64_t i = first + row * kRow;
      if (whole) {
#pragma unroll
        for (int k = 0; k < width; ++k) value[row].values[k] = keep[row] >> k & 1 ? value[row].values[k] * scale : 0.0f;
        store_some(y + i, value[row]);
      } else {
        for (int k = 0; k < width && i + k < count; ++k) store(y + i + k, keep[row] >> k & 1 ? load(x + i + k) * scale : 0.0f);
      }
    }
  }
}

}  // namespace

void dropout_forward(const DropoutForward& f) {
  if (f.count == 0) return;
  with_storage(f.dtype, [&]<class T>(T) {
    start(drop<T>, block_count(f.count, 256 * 4 * Pack<T>::kCount, 8), 256, 0, static_cast<const T*>(f.x), static_cast<T*>(f.y), f.count,
          f.key, f.threshold, f.scale, is_aligned(f.x) && is_aligned(f.y));
  });
}

}  // namespace heed::cuda
