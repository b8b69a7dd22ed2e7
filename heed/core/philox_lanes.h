// Philox4x32-7 (random.h) for as many blocks at a time as there are lanes. Included like lanes.h.
#if defined(HEED_CORE_PHILOX_LANES_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEED_CORE_PHILOX_LANES_H_
#undef HEED_CORE_PHILOX_LANES_H_
#else
#define HEED_CORE_PHILOX_LANES_H_
#endif

#include "heed/core/lanes.h"
#include "heed/core/philox.h"

HWY_BEFORE_NAMESPACE();
namespace heed {
namespace HWY_NAMESPACE {

using WordTag = hn::ScalableTag<uint32_t>;
using Words = hn::Vec<WordTag>;

struct WordPair {
  Words high, low;
};

// Both halves of the 64-bit products of every lane with one factor.
static HWY_INLINE WordPair wide_product(Words a, Words factor) {
  const WordTag words;
#if HWY_TARGET == HWY_SCALAR
  const uint64_t product = uint64_t{hn::GetLane(a)} * hn::GetLane(factor);
  return {hn::Set(words, static_cast<uint32_t>(product >> 32)), hn::Set(words, static_cast<uint32_t>(product))};
#else
  const hn::ScalableTag<uint64_t> pairs;
  const auto even = hn::MulEven(a, factor);
  const auto odd = hn::MulEven(hn::BitCast(words, hn::ShiftRight<32>(hn::BitCast(pairs, a))), factor);
  return {hn::OddEven(hn::BitCast(words, odd), hn::BitCast(words, hn::ShiftRight<32>(even))),
          hn::OddEven(hn::BitCast(words, hn::ShiftLeft<32>(odd)), hn::BitCast(words, even))};
#endif
}

// Word `word` of blocks first, first + 1, ... is lane 0, 1, ... of out[word]. The lanes' blocks must not cross a multiple of 2^32.
static HWY_INLINE void philox_lanes(RandomKey key, uint64_t first, Words out[4]) {
  const WordTag words;
  const auto set = [&](uint64_t x) HEED_LANES { return hn::Set(words, static_cast<uint32_t>(x)); };
  Words c0 = hn::Add(set(first), hn::Iota(words, 0)), c1 = set(first >> 32), c2 = set(key.stream), c3 = set(key.stream >> 32);
  Words k0 = set(key.seed), k1 = set(key.seed >> 32);
  for (int round = 0; round < 7; ++round) {
    const WordPair a = wide_product(c0, set(0xD2511F53)), b = wide_product(c2, set(0xCD9E8D57));
    c0 = hn::Xor(hn::Xor(b.high, c1), k0);
    c2 = hn::Xor(hn::Xor(a.high, c3), k1);
    c1 = b.low;
    c3 = a.low;
    k0 = hn::Add(k0, set(0x9E3779B9));
    k1 = hn::Add(k1, set(0xBB67AE85));
  }
  out[0] = c0;
  out[1] = c1;
  out[2] = c2;
  out[3] = c3;
}

}  // namespace HWY_NAMESPACE
}  // namespace heed
HWY_AFTER_NAMESPACE();

#endif
