// The inner loop of matrix products on the CPU: a tile of c stays in registers while a and b are read. Matrix products and attention share
// it. Included like lanes.h.
#if defined(HEED_OPS_REGISTER_TILE_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEED_OPS_REGISTER_TILE_H_
#undef HEED_OPS_REGISTER_TILE_H_
#else
#define HEED_OPS_REGISTER_TILE_H_
#endif

#include "heed/core/lanes.h"

HWY_BEFORE_NAMESPACE();
namespace heed {
namespace HWY_NAMESPACE {

// The largest tile: rows x vectors accumulators, with room for the operands, fill the register file.
#if HWY_TARGET <= HWY_AVX3
inline constexpr int kTileRows = 6, kTileVectors = 4;
#else
inline constexpr int kTileRows = 6, kTileVectors = 2;
#endif

// Element (row, k) of a at data[row * down + k * along].
struct Broadcast {
  const float* data;
  int64_t down, along;
};

// sums: (rows, vectors of lanes) += a b. a: (rows, depth), b: (depth, vectors of lanes), its rows b_stride apart, f32 or bf16.
// each_step(k) is called before step k, for prefetching.
template <int rows, int vectors, class B, class EachStep>
HWY_INLINE void add_product(Lanes (&sums)[rows][vectors], Broadcast a, const B* b, int64_t b_stride, int64_t depth,
                            const EachStep& each_step) {
  const int64_t step = lane_count();
  for (int64_t k = 0; k < depth; ++k) {
    each_step(k);
    Lanes right[vectors];
    for (int v = 0; v < vectors; ++v) right[v] = Lanes::load(b + k * b_stride + v * step);
    for (int r = 0; r < rows; ++r) {
      const Lanes left = a.data[r * a.down + k * a.along];
      for (int v = 0; v < vectors; ++v) sums[r][v] = fma(left, right[v], sums[r][v]);
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace heed
HWY_AFTER_NAMESPACE();

#endif
