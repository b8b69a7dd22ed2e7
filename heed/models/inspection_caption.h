// Inspection of an image captioning model: which parts of the image each word of the caption attends to.
#pragma once

#include "heed/models/inspection.h"

namespace heed {

// The caption is options.target, or generated. maps: cross-attention of the words to the patches, the encoder's and the decoder's
void inspect_caption(const InspectedModel& inspected, const InspectOptions& options, Inspection& inspection);

}  // namespace heed
