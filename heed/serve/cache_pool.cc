#include "heed/serve/cache_pool.h"

#include <algorithm>
#include <limits>

#include "heed/attention/reserved_memory.h"
#include "heed/core/autograd.h"
#include "heed/ops/ops.h"

namespace heed::serve {

CachePool::CachePool(const Model& model, int64_t bytes) {
  const NoGrad no_grad;
  const Tensor token = Tensor::zeros({1, 1}, DType::i64, kCpu);
  DecodeState state = model.decoder().start({{"input_ids", token}});
  model.decoder().step(state, token);
  int64_t block_bytes = 0;
  for (const KeyValueCache& layer : state.past) {
    for (const Tensor& stored : {layer.keys(), layer.values()}) {
      const auto row = kBlockTokens * stored.size(3) * static_cast<int64_t>(sizeof(float));
      block_bytes += stored.size(1) * std::max(row, page_bytes());  // every head has pages of its own
    }
    none_.emplace_back(slice(layer.keys(), 2, 0, 0), slice(layer.values(), 2, 0, 0));
  }
  total_ = block_bytes > 0 ? bytes / block_bytes : std::numeric_limits<int64_t>::max() / (2 * kBlockTokens);
}

std::vector<KeyValueCache> CachePool::new_caches(int64_t tokens) const {
  std::vector<KeyValueCache> out;
  for (const auto& [keys, values] : none_) out.push_back(reserved_cache(keys, values, blocks_for(tokens) * kBlockTokens));
  return out;
}

bool CachePool::take(int64_t blocks) {
  if (blocks > free()) return false;
  used_ += blocks;
  return true;
}

}  // namespace heed::serve
