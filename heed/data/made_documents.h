// Documents made by rule: several opinions about one thing each, so that what stands together belongs together.
#pragma once

#include "heed/data/text_data.h"

namespace heed {

// From the first `opinions` of made_opinions with this seed and part; those that do not tell what they are about are left out.
// -> sentences of each document
std::vector<std::vector<std::string>> made_documents(int64_t opinions, uint64_t seed, DataPart part = DataPart::train);

}  // namespace heed
