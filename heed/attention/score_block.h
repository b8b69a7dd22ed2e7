// Types shared by attention kernels and score terms: sizes, blocks of scores, rows of tokens. Read by g++ and nvcc.
#pragma once

#include <cstdint>

#include "heed/core/api.h"
#include "heed/core/device.h"

namespace HEED_API heed {

struct AttentionSizes {
  int64_t B, H, G, N, M, D, E;  // items, query heads, key heads, queries, keys, width of q and k, width of v
  int64_t first_query = 0;      // position of the first query: with a cache it is not 0
};

// A block of scores of one head of one item: queries at positions [i0, i1), keys at [j0, j1). `first` is the position of
// the first query of all: i - first is the row of query i in a tensor over queries.
struct ScoreBlock {
  int64_t b, h, i0, i1, j0, j1, first = 0;
  HEED_HOST_DEVICE int64_t rows() const { return i1 - i0; }
  HEED_HOST_DEVICE int64_t keys() const { return j1 - j0; }
};

// The row of a score: item, head and the query's position; first as in ScoreBlock.
struct ScoreRow {
  int64_t b, h, i, first = 0;
};

struct KeyRange {
  int64_t first, end;
};

// (B, heads, tokens, width): the numbers of a token are contiguous, everything else has a stride, in elements.
struct TokenRows {
  void* data = nullptr;
  int64_t item = 0, head = 0, token = 0;

  template <class T = float>
  HEED_HOST_DEVICE T* at(int64_t b, int64_t h, int64_t i) const {
    return static_cast<T*>(data) + b * item + h * head + i * token;
  }
};

// A tensor that broadcasts to (B, H, N, M); the stride of an axis that is repeated is 0.
template <class T>
struct BroadcastMap {
  const T* data;
  int64_t item, head, query;
  int64_t keys;  // M, or 1: the same for all keys

  HEED_HOST_DEVICE const T* row(const ScoreRow& row) const { return data + row.b * item + row.h * head + (row.i - row.first) * query; }
  HEED_HOST_DEVICE bool same_for_all_keys() const { return keys == 1; }
};

inline constexpr int64_t kKeyUnit = 64;    // blocks of keys start at multiples of it
inline constexpr int64_t kSinkLanes = 16;  // as many as the widest register has

HEED_HOST_DEVICE inline int64_t clamp_index(int64_t x, int64_t least, int64_t most) { return x < least ? least : x > most ? most : x; }

// What a term may define for a block (overloads for its Args; these are the defaults):
// reach: all keys of the block outside [first, end) are masked. skip: the whole block is masked. idle: the term does not change the block.
template <class T>
HEED_HOST_DEVICE KeyRange reach(const T&, const ScoreBlock& x) {
  return {x.j0, x.j1};
}
template <class T>
HEED_HOST_DEVICE bool skip(const T&, const ScoreBlock&) {
  return false;
}
template <class T>
HEED_HOST_DEVICE bool idle(const T&, const ScoreBlock&) {
  return false;
}

}  // namespace heed
