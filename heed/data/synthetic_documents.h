// Synthetic documents: each collects opinions about one topic, so that its sentences belong together.
#pragma once

#include "heed/core/api.h"
#include "heed/data/text_data.h"

namespace HEED_API heed {

// Built from the first `opinions` items of synthetic_opinions with this seed and part; opinions without a recognizable topic are
// dropped. Returns the sentences of each document.
std::vector<std::vector<std::string>> synthetic_documents(int64_t opinions, uint64_t seed, DataPart part = DataPart::train);

}  // namespace heed
