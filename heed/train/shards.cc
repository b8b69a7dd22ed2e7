#include "heed/train/shards.h"

#include <bit>

#include "heed/core/parse.h"

namespace heed {

std::span<const int64_t> Shards::of(std::span<const int64_t> batch, int64_t shard) const {
  const auto cut = [&](int64_t s) { return static_cast<size_t>((std::ssize(batch) * s + count - 1) / count); };
  return batch.subspan(cut(shard), cut(shard + 1) - cut(shard));
}

Batches Shards::own_batches(std::span<const std::vector<int64_t>> batches, int64_t accumulate) const {
  Batches out;
  for (size_t first = 0; first < batches.size(); first += static_cast<size_t>(accumulate))
    for (int64_t shard = begin; shard < end; ++shard)
      for (const std::vector<int64_t>& batch : batches.subspan(first, std::min(static_cast<size_t>(accumulate), batches.size() - first)))
        if (const std::span<const int64_t> own = of(batch, shard); !own.empty()) out.emplace_back(own.begin(), own.end());
  return out;
}

std::pair<int64_t, int64_t> shard_range(int64_t count, int rank, int size) { return {count * rank / size, count * (rank + 1) / size}; }

std::string automatic_shards(const Group& group) {
  return std::to_string(group.size() == 1 ? 1 : std::bit_ceil(static_cast<unsigned>(std::max(group.size(), 8))));
}

Shards shards_of(const TrainOptions& options, const Group& group) {
  const std::optional<int64_t> number = parse_number<int64_t>(options.shards == "auto" ? automatic_shards(group) : options.shards);
  check<UsageError>(number && *number >= 0 && *number <= 65536, "train: shards='", options.shards,
                    "', expected auto or a number from 0 to 65536");
  Shards out{.count = *number, .fixed_tree = *number > 0};
  if (!out.fixed_tree) out.count = group.size();
  check<UsageError>(
      out.count >= group.size(), "train: ", group.size(), " processes, but shards=", *number,
      ": expected at least one shard for each process, for example shards=", std::bit_ceil(static_cast<unsigned>(group.size())));
  std::tie(out.begin, out.end) = shard_range(out.count, group.rank(), group.size());
  return out;
}

}  // namespace heed
