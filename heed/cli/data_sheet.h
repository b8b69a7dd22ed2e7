// A contact sheet: some images of every class next to its name.
#pragma once

#include <optional>

#include "heed/data/augment.h"
#include "heed/data/image_data.h"
#include "heed/io/drawing.h"

namespace heed::cli {

struct SheetOptions {
  int64_t each = 8;                            // images per class, evenly spaced over the class
  std::optional<AugmentOptions> augment = {};  // show one image per class and each - 1 augmented versions of it
  uint64_t seed = 1;                           // of the augmentation
};
Drawing contact_sheet(const ImageData& data, const std::string& title, const SheetOptions& options);

}  // namespace heed::cli
