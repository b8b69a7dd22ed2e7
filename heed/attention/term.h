// What a score term is made of. Each term is a file in terms/ with up to four parts:
//   Args: pointers and numbers that kernels read; optionally with reach, skip and idle (score_block.h)
//   a struct for users, which names the tensors it reads and how their gradients are summed, creates the Args, has a TermInfo, and, if
//   models can use it, a function make(TermInput)
//   HEED_TERM_ELEMENTS: functions of one score, templates over the value: Lanes on the CPU, float in CUDA (scalar_terms.h)
//   HEED_TERM_BLOCKS: functions of a block of scores, if the CPU can be faster than element by element (apply_terms.h)
// term_list.h lists them.
#pragma once

#include "heed/attention/score_block.h"
#include "heed/core/api.h"

#ifndef __CUDACC__
#include <vector>

#include "heed/attention/term_info.h"
#include "heed/core/raw.h"

namespace HEED_API heed {

// How the gradient of a tensor is summed over the scores. Every task has its own sums; they are combined in order.
enum class Sums {
  none,     // not learned
  numbers,  // (H, ...), few numbers: each is summed in kSinkLanes lanes on the CPU
  table,    // (H, ...)
  queries,  // (B, H, N, ...)
  map,      // broadcasts to (B, H, N, M): the sum is the whole map, which takes memory
};

// A tensor that a term reads, and its required shape and dtype.
struct TermTensor {
  const char* name;
  Tensor& tensor;
  Shape shape;
  Sums sums = Sums::none;
  DType dtype = DType::f32;
  bool broadcast = false;  // shapes that broadcast to `shape` are accepted
};

// The last size of a tensor, 0 if it is undefined or has rank 0; `checked` reports these.
inline int64_t last_of(const Tensor& x) { return x.defined() && x.rank() > 0 ? x.size(-1) : 0; }

template <class T>
BroadcastMap<T> broadcast_map(const Tensor& x) {
  const auto step = [&](int axis) { return x.shape()[axis] == 1 ? 0 : x.strides()[axis]; };
  return {raw<T>(x), step(0), step(1), step(2), x.shape()[3]};
}

}  // namespace heed
#endif
