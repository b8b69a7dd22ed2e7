// Score terms and dropout on a tile of at most 64 queries and 64 keys, by all threads of a block.
#pragma once

#include "heed/attention/attention_kernels.h"
#include "heed/attention/scalar_terms.h"
#include "heed/attention/tile_product.cuh"

namespace heed::cuda {

// A tile in shared memory: the score of query r and key c is data[r * query_step + c * key_step].
struct ScoreTile {
  float* data;
  int query_step, key_step;

  __device__ float& at(int query, int key) const { return data[query * query_step + key * key_step]; }
};

// The keys of a block that the terms may leave visible. Functions that visit all kinds of terms are not inlined: they are long.
static __noinline__ __device__ KeyRange visible_keys(const TermSequence& terms, const ScoreBlock& x) {
  KeyRange kept{x.j0, x.j1};
  for (const TermArgs& term : terms) {
    const KeyRange range = visit_term(term, [&](const auto& t) { return skip(t, x) ? KeyRange{x.j1, x.j0} : reach(t, x); });
    kept.first = range.first > kept.first ? range.first : kept.first;
    kept.end = range.end < kept.end ? range.end : kept.end;
  }
  return kept;
}
__device__ inline bool is_visible(const TermSequence& terms, const ScoreBlock& x) {
  if (terms.empty()) return true;
  const KeyRange kept = visible_keys(terms, x);
  return kept.first < kept.end;
}

static __noinline__ __device__ bool every_term_idle(const TermSequence& terms, const ScoreBlock& x) {
  for (const TermArgs& term : terms)
    if (!visit_term(term, [&](const auto& t) { return idle(t, x); })) return false;
  return true;
}
// No term changes anything in a block.
__device__ inline bool all_idle(const TermSequence& terms, const ScoreBlock& x) { return terms.empty() || every_term_idle(terms, x); }

// Calls visit(query, key) for this thread's elements of a tile; a thread has the same elements in every call, so that functions of one
// element after another need no barrier. Neighbouring threads have neighbouring keys, which tensors of a term store side by side.
template <class Visit>
__device__ void for_own_elements(const ScoreBlock& x, const Visit& visit) {
  const int key = threadIdx.x % kTile, rows = static_cast<int>(x.rows());
  if (key >= x.keys()) return;
#pragma unroll 2
  for (int query = threadIdx.x / kTile; query < rows; query += kBlockThreads / kTile) visit(query, key);
}

// All terms. One function for every kernel, so that forward and backward round alike.
static __noinline__ __device__ void apply_terms(const TermSequence& terms, const ScoreBlock& x, ScoreTile tile) {
  for (int index = 0; index < terms.count; ++index)
    visit_term(terms[index], [&](const auto& t) {
      if (idle(t, x)) return;
      for_own_elements(x, [&](int query, int key) {
        const ScoreRow row{x.b, x.h, x.i0 + query, x.first};
        float& s = tile.at(query, key);
        s = scalar::score(t, s, row, scalar::Keys<float>{x.j0 + key}, scalar::LoadFloat());
      });
    });
}

// ds becomes the gradient of the scores before term `index`, if that is not linear. raw: the scores before all terms.
static __noinline__ __device__ void multiply_slopes(const TermSequence& terms, int index, const ScoreBlock& x, ScoreTile raw,
                                                    ScoreTile ds) {
  visit_term(terms[index], [&]<class T>(const T& t) {
    if constexpr (kIsNonlinear<T>) {
      for_own_elements(x, [&](int query, int key) {
        const ScoreRow row{x.b, x.h, x.i0 + query, x.first};
        float s = raw.at(query, key);
        for (int before = 0; before <= index; ++before) s = scalar::term_score(terms[before], s, row, x.j0 + key);
        ds.at(query, key) *= scalar::slope(t, s);
      });
    }
  });
}

inline int nonlinear_terms(const TermSequence& terms) {
  int count = 0;
  for (const TermArgs& term : terms) count += visit_term(term, []<class T>(const T&) -> int { return kIsNonlinear<T>; });
  return count;
}

// Dropout of a tile whose keys begin at a multiple of 64: bit c of a row is set where the weight of key c stays. As in blocks.h, 64 keys
// share 16 blocks of 4 random words. first_query: of the tile, counted from the first of all.
__device__ inline void draw_dropout(const ScoreArgs& a, int64_t b, int64_t h, int64_t first_query, int64_t j0, uint64_t* kept) {
  const AttentionSizes& z = a.sizes;
  const int64_t groups = (z.M + 63) / 64;
  const uint32_t limit = static_cast<uint32_t>(static_cast<double>(a.dropout) * 0x1p32);
  const int lane = threadIdx.x % 16;
  for (int row = threadIdx.x / 16; row < kTile; row += kBlockThreads / 16) {
    const int64_t index = (b * z.H + h) * z.N + first_query + row;
    const auto words = philox(a.dropout_key, static_cast<uint64_t>((index * groups + j0 / 64) * 16 + lane));
    uint64_t bits = 0;
#pragma unroll
    for (int word = 0; word < 4; ++word) {
      const uint32_t both = __ballot_sync(0xffffffffu, words[word] >= limit);  // of two rows
      bits |= static_cast<uint64_t>(threadIdx.x % 32 < 16 ? both & 0xffffu : both >> 16) << (16 * word);
    }
    if (lane == 0) kept[row] = bits;
  }
}

__device__ inline float dropout_factor(const uint64_t* kept, int query, int key, float factor) {
  return (kept[query] >> key) & 1 ? factor : 0.0f;
}

// e^x of an x that is not positive.
template <class T>
__device__ float weight_of(float x) {
  if constexpr (sizeof(T) == 2) {
    return __expf(x);
  } else {
    return expf(x);
  }
}

}  // namespace heed::cuda
