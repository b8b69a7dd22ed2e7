// Vision transformers at another image size than they were trained with (Dosovitskiy et al. 2021, section 3.2): learned positions are
// interpolated over the grid of patches, everything else is kept.
#pragma once

#include <array>

#include "heed/core/api.h"
#include "heed/models/model.h"

namespace HEED_API heed {

// A model for images of this height and width. Class tokens keep their positions. A FileError says why a model cannot be changed: a flatten
// head has weights for every patch.
Model at_image_size(const Model& model, std::array<int64_t, 2> size);

// The same for a folder: writes model, config.json and preprocessor_config.json of the new size to another folder.
void save_at_image_size(const Path& from, const Path& to, std::array<int64_t, 2> size, const LoadOptions& names = {});

}  // namespace heed
