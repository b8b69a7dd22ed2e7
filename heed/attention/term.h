// What a score term is made of. Each term is a file in terms/: a struct for users, which names the tensors it reads and
// how their gradients are summed, and its formulas for lanes. terms.h lists them.
#pragma once

#include <vector>

#include "heed/core/tensor.h"

namespace heed {

struct AttentionSizes {
  int64_t B, H, G, N, M, D, E;  // items, query heads, key heads, queries, keys, width of q and k, width of v
  int64_t first_query = 0;      // its position: queries behind a cache do not begin at 0
};

// A block of scores of one head of one item: queries at positions [i0, i1), keys at [j0, j1). `first` is the position of
// the first query of all: i - first is the row of query i in a tensor over queries.
struct ScoreBlock {
  int64_t b, h, i0, i1, j0, j1, first = 0;
  int64_t rows() const { return i1 - i0; }
  int64_t keys() const { return j1 - j0; }
};

inline constexpr int64_t kKeyUnit = 64;  // blocks of keys begin at multiples of it

// How the gradient of a tensor is summed over the scores. Every task has sums of its own; they are joined in order.
enum class Sums {
  none,     // not learned
  numbers,  // (H, ...), few numbers: each is summed in kSinkLanes lanes
  table,    // (H, ...)
  queries,  // (B, H, N, ...)
  map,      // whatever broadcasts to (B, H, N, M): the sum is the whole map, so this costs memory
};
inline constexpr int64_t kSinkLanes = 16;  // as many as the widest register has

// A tensor that a term reads, and what it must be like.
struct TermTensor {
  const char* name;
  Tensor& tensor;
  Shape shape;
  Sums sums = Sums::none;
  DType dtype = DType::f32;
  bool broadcast = false;  // shapes that broadcast to `shape` will do
};

// The last size of a tensor that may be missing: `checked` will say so.
inline int64_t last_of(const Tensor& x) { return x.defined() && x.rank() > 0 ? x.size(-1) : 0; }

}  // namespace heed
