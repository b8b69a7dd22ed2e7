// Parts of an inspection that its views show.
#include "heed/cli/inspection.h"

namespace heed::cli {

int64_t default_query(const Inspection& inspection) { return inspection.kind == InputKind::image && inspection.first == 0 ? -1 : 0; }

std::vector<float> patch_weights(const Inspection& inspection, std::span<const float> map, int64_t query) {
  const int64_t N = inspection.maps[0].N, M = inspection.maps[0].M;
  std::vector<float> out(static_cast<size_t>(M - inspection.first));
  for (int64_t i = query < 0 ? 0 : query; i < (query < 0 ? N : query + 1); ++i)
    for (int64_t j = inspection.first; j < M; ++j)
      out[static_cast<size_t>(j - inspection.first)] += map[static_cast<size_t>(i * M + j)] / static_cast<float>(query < 0 ? N : 1);
  return out;
}

}  // namespace heed::cli
