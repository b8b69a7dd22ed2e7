// Block-sparse mask: a boolean per square of scores (Zaheer et al., BigBird, 2020).
#ifndef HEED_ATTENTION_TERMS_BLOCK_SPARSE_H_
#define HEED_ATTENTION_TERMS_BLOCK_SPARSE_H_

#include "heed/attention/term.h"
#include "heed/core/api.h"

namespace HEED_API heed {

struct BlockSparseArgs {
  static constexpr bool is_mask = true, reads_mask = true;
  const bool* pattern;          // (heads, rows, columns)
  int64_t head, rows, columns;  // stride of a head, 0: the same for all; rows and columns, 1: the same for all
  int64_t size;

  HEED_HOST_DEVICE bool kept(int64_t h, int64_t i, int64_t j) const {
    return pattern[h * head + (rows == 1 ? 0 : i / size) * columns + (columns == 1 ? 0 : j / size)];
  }
};

#ifndef __CUDACC__
struct BlockSparse {  // keep pattern[h, i / size, j / size]
  static constexpr const char* name = "BlockSparse";
  Tensor pattern;  // bool, (H or 1, N / size, M / size), both rounded up; N counts from position 0
  int64_t size = 64;
  std::vector<TermTensor> tensors(const AttentionSizes& z) {
    const auto blocks = [&](int64_t tokens) { return size > 0 ? (tokens + size - 1) / size : 0; };
    return {{"pattern", pattern, {z.H, blocks(z.first_query + z.N), blocks(z.M)}, Sums::none, DType::boolean, true}};
  }
  void check_sizes(const AttentionSizes&) const { check(size >= 1, "attention: BlockSparse in blocks of ", size, ", expected 1 or more"); }
  static TermInfo info() {
    return {.name = "block_sparse", .summary = "keeps blocks of scores: pattern[h, i / size, j / size], rounded down", .masks = true};
  }
  BlockSparseArgs args() const {
    const Shape& shape = pattern.shape();
    return {raw<bool>(pattern), shape[0] == 1 ? 0 : shape[1] * shape[2], shape[1], shape[2], size};
  }
};
#endif

}  // namespace heed
#endif

#ifdef HEED_TERM_ELEMENTS
template <class V>
HEED_ELEMENT auto keep(const BlockSparseArgs& t, const ScoreRow& row, Keys<V> j) {
  return from_each(j, [&](int64_t key) { return t.kept(row.h, row.i, key) ? 1.0f : 0.0f; }) == V(1.0f);
}
#endif

#ifdef HEED_TERM_BLOCKS
// visit(first query, their end, first key, their end, kept) for every square of the pattern that overlaps a block, until it returns false.
template <class Visit>
bool for_squares(const BlockSparseArgs& t, const ScoreBlock& x, const Visit& visit) {
  for (int64_t i = x.i0; i < x.i1;) {
    const int64_t below = std::min(x.i1, (i / t.size + 1) * t.size);
    for (int64_t j = x.j0; j < x.j1;) {
      const int64_t right = std::min(x.j1, (j / t.size + 1) * t.size);
      if (!visit(i, below, j, right, t.kept(x.h, i, j))) return false;
      j = right;
    }
    i = below;
  }
  return true;
}
inline bool skip(const BlockSparseArgs& t, const ScoreBlock& x) {
  return for_squares(t, x, [](int64_t, int64_t, int64_t, int64_t, bool kept) { return !kept; });
}
inline bool idle(const BlockSparseArgs& t, const ScoreBlock& x) {
  return for_squares(t, x, [](int64_t, int64_t, int64_t, int64_t, bool kept) { return kept; });
}
inline void block_score(const BlockSparseArgs& t, const ScoreBlock& x, float* s, int64_t stride) {
  for_squares(t, x, [&](int64_t i, int64_t below, int64_t j, int64_t right, bool kept) {
    for (; i < below && !kept; ++i) std::fill_n(s + (i - x.i0) * stride + j - x.j0, right - j, -HUGE_VALF);
    return true;
  });
}
#endif
