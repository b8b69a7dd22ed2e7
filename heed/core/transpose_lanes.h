// Transposition, one square of registers at a time. Included like lanes.h.
#if defined(HEED_CORE_TRANSPOSE_LANES_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEED_CORE_TRANSPOSE_LANES_H_
#undef HEED_CORE_TRANSPOSE_LANES_H_
#else
#define HEED_CORE_TRANSPOSE_LANES_H_
#endif

#include "heed/core/lanes.h"

HWY_BEFORE_NAMESPACE();
namespace heed {
namespace HWY_NAMESPACE {

#if HWY_TARGET != HWY_SCALAR
// x: as many registers as one has lanes, transposed as a square matrix. First in squares of 4 x 4 within blocks of 128 bits,
// then the blocks themselves.
static HWY_INLINE void transpose_square(Lanes* x) {
  const FloatTag floats;
  const hn::Repartition<double, FloatTag> pairs;
  constexpr int64_t blocks = kLanes / 4;
  Lanes t[kLanes];  // t[4 c + g]: column c of every block, of the g-th four rows
  for (int64_t g = 0; g < blocks; ++g) {
    const Lanes* row = x + 4 * g;
    const auto low = [&](int64_t r) HEED_LANES { return hn::BitCast(pairs, hn::InterleaveLower(floats, row[r].v, row[r + 1].v)); };
    const auto high = [&](int64_t r) HEED_LANES { return hn::BitCast(pairs, hn::InterleaveUpper(floats, row[r].v, row[r + 1].v)); };
    const auto put = [&](int64_t c, auto pair) HEED_LANES { t[c * blocks + g] = Lanes(hn::BitCast(floats, pair)); };
    put(0, hn::InterleaveLower(pairs, low(0), low(2)));
    put(1, hn::InterleaveUpper(pairs, low(0), low(2)));
    put(2, hn::InterleaveLower(pairs, high(0), high(2)));
    put(3, hn::InterleaveUpper(pairs, high(0), high(2)));
  }
  for (int64_t c = 0; c < 4; ++c) {
    const Lanes* block = t + c * blocks;
    if constexpr (blocks == 1) {
      x[c] = block[0];
    } else {
      const auto even = [&](int64_t g) HEED_LANES { return hn::OddEvenBlocks(hn::SwapAdjacentBlocks(block[g + 1].v), block[g].v); };
      const auto odd = [&](int64_t g) HEED_LANES { return hn::OddEvenBlocks(block[g + 1].v, hn::SwapAdjacentBlocks(block[g].v)); };
      if constexpr (blocks == 2) {
        x[c] = even(0);
        x[4 + c] = odd(0);
      } else {
        x[c] = hn::ConcatLowerLower(floats, even(2), even(0));
        x[4 + c] = hn::ConcatLowerLower(floats, odd(2), odd(0));
        x[8 + c] = hn::ConcatUpperUpper(floats, even(2), even(0));
        x[12 + c] = hn::ConcatUpperUpper(floats, odd(2), odd(0));
      }
    }
  }
}
#endif

// rows: (count, depth), `stride` apart, f32 or bf16 -> to: (depth, count), its rows `wide` apart, times factor.
template <class T>
HWY_ATTR void transpose_rows(const T* rows, int64_t stride, int64_t count, int64_t depth, float factor, float* to, int64_t wide) {
  int64_t j = 0;
#if HWY_TARGET != HWY_SCALAR
  for (; j + kLanes <= count; j += kLanes) {
    int64_t d = 0;
    for (; d + kLanes <= depth; d += kLanes) {
      Lanes square[kLanes];
      for (int64_t r = 0; r < kLanes; ++r) square[r] = Lanes::load(rows + (j + r) * stride + d) * factor;
      transpose_square(square);
      for (int64_t r = 0; r < kLanes; ++r) square[r].store(to + (d + r) * wide + j);
    }
    for (; d < depth; ++d)
      for (int64_t r = j; r < j + kLanes; ++r) to[d * wide + r] = convert<float>(rows[r * stride + d]) * factor;
  }
#endif
  for (; j < count; ++j)
    for (int64_t d = 0; d < depth; ++d) to[d * wide + j] = convert<float>(rows[j * stride + d]) * factor;
}

}  // namespace HWY_NAMESPACE
}  // namespace heed
HWY_AFTER_NAMESPACE();

#endif
