#include "heed/train/padded_rows.h"

#include <algorithm>
#include <numeric>

namespace heed {

Tensor padded_rows(const std::vector<std::vector<int64_t>>& rows, std::span<const int64_t> which, int64_t filler) {
  size_t longest = 0;
  for (const int64_t i : which) longest = std::max(longest, rows[static_cast<size_t>(i)].size());
  std::vector<int64_t> out;
  for (const int64_t i : which) {
    const std::vector<int64_t>& row = rows[static_cast<size_t>(i)];
    out.insert(out.end(), row.begin(), row.end());
    out.insert(out.end(), longest - row.size(), filler);
  }
  return Tensor::from(out, {std::ssize(which), static_cast<int64_t>(longest)}, kCpu);
}

Tensor padding_mask(const std::vector<std::vector<int64_t>>& rows, std::span<const int64_t> which) {
  std::vector<std::vector<int64_t>> ones;
  for (const int64_t i : which) ones.emplace_back(rows[static_cast<size_t>(i)].size(), 1);
  std::vector<int64_t> all(ones.size());
  std::iota(all.begin(), all.end(), 0);
  return padded_rows(ones, all, 0);
}

}  // namespace heed
