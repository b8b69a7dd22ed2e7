#include "heed/ops/batch_shards.h"

namespace heed {
namespace {

thread_local BatchShards* newest_shards = nullptr;

}  // namespace

ShardScope::ShardScope(BatchShards* shards) : before_(newest_shards) { newest_shards = shards; }
ShardScope::~ShardScope() { newest_shards = before_; }
BatchShards* ShardScope::newest() { return newest_shards; }

}  // namespace heed
