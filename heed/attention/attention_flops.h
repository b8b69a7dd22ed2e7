// Counts the pairs of query and key that masks keep.
#pragma once

#include "heed/attention/terms.h"
#include "heed/core/api.h"

namespace HEED_API heed {

// Of N queries and N keys. The masks must be made from settings alone (TermUse::pattern).
int64_t visible_pairs(const std::vector<Term>& masks, int64_t N);

}  // namespace heed
