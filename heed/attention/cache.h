// Keys and values of the tokens so far, for decoding step by step: a step costs what its tokens cost.
#pragma once

#include <span>

#include "heed/attention/attention.h"
#include "heed/core/api.h"

namespace HEED_API heed {

// Storage grows by doubling, so a token is copied a few times at most, however long the text gets. Nothing is recorded.
class KeyValueCache {
 public:
  // k: (B, G, n, D), v: (B, G, n, E): n more tokens, in order. The first call fixes B, G, D and E.
  void append(const Tensor& k, const Tensor& v);

  int64_t length() const { return length_; }       // tokens so far
  Tensor keys() const { return view(keys_); }      // (B, G, length, D): strided, a view of what is stored
  Tensor values() const { return view(values_); }  // (B, G, length, E)

  // Item i becomes what item items[i] was: beams that go on, fork or end. The number of items may change.
  void reorder(std::span<const int64_t> items);
  // Only the first `length` tokens stay. Views that were handed out see what is appended in the place of the others.
  void truncate(int64_t length);

 private:
  Tensor view(const Tensor& stored) const;

  Tensor keys_, values_;  // (B, G, capacity, D), (B, G, capacity, E); undefined before the first append
  int64_t length_ = 0;
};

// Attention of the last N tokens of a cache, whose keys and values are appended already, to all of them: first_query is
// the cache's length - N. q: (B, H, N, D) -> (B, H, N, E)
Tensor attention(const Tensor& q, const KeyValueCache& cache, AttentionOptions options = {});

}  // namespace heed
