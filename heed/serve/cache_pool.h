// The budget of key-value memory of a model, in blocks of tokens. A text takes a block when its tokens reach it, and releases all when it
// ends. The memory itself belongs to the caches (attention/reserved_memory.h), which take it page by page.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "heed/models/model.h"

namespace heed::serve {

class CachePool {
 public:
  // bytes: of all texts together. The size of a block is measured with a text of one token.
  CachePool(const Model& model, int64_t bytes);

  static constexpr int64_t kBlockTokens = 16;

  int64_t total() const { return total_; }  // blocks
  int64_t used() const { return used_; }
  int64_t free() const { return total_ - used_; }
  int64_t blocks_for(int64_t tokens) const { return (tokens + kBlockTokens - 1) / kBlockTokens; }

  std::vector<KeyValueCache> new_caches(int64_t tokens) const;  // empty ones of all layers, with room for that many

  bool take(int64_t blocks);  // false: there are not as many
  void release(int64_t blocks) { used_ -= blocks; }

 private:
  std::vector<std::pair<Tensor, Tensor>> none_;  // of every layer: keys (1, G, 0, D) and values (1, G, 0, E)
  int64_t total_ = 0, used_ = 0;
};

}  // namespace heed::serve
