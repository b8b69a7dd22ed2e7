// KV cache: keys and values of the tokens so far, for incremental decoding.
#pragma once

#include <span>

#include "heed/attention/attention.h"
#include "heed/core/api.h"

namespace HEED_API heed {

// Its capacity grows by doubling, so the cost of growing is amortised. Does not record gradients.
class KeyValueCache {
 public:
  // Appends n tokens. k: (B, G, n, D), v: (B, G, n, E). The first call fixes B, G, D and E.
  void append(const Tensor& k, const Tensor& v);

  int64_t length() const { return length_; }       // tokens so far
  Tensor keys() const { return view(keys_); }      // (B, G, length, D): a strided view
  Tensor values() const { return view(values_); }  // (B, G, length, E)

  // Item i becomes the former item items[i], for beam search. The number of items may change.
  void reorder(std::span<const int64_t> items);
  // Keeps the first `length` tokens. Existing views see the tokens that are appended later in place of the others.
  void truncate(int64_t length);

 private:
  Tensor view(const Tensor& stored) const;

  Tensor keys_, values_;  // (B, G, capacity, D), (B, G, capacity, E); undefined before the first append
  int64_t length_ = 0;
};

// Attention of the last N tokens of a cache, whose keys and values have been appended already, to all tokens: first_query is the length of
// the cache - N. q: (B, H, N, D) -> (B, H, N, E)
Tensor attention(const Tensor& q, const KeyValueCache& cache, AttentionOptions options = {});

}  // namespace heed
