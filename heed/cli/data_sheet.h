// A contact sheet: some pictures of every class beside its name.
#pragma once

#include <optional>

#include "heed/data/augment.h"
#include "heed/data/picture_data.h"
#include "heed/io/drawing.h"

namespace heed::cli {

struct SheetOptions {
  int64_t each = 8;                            // pictures of every class, spread over all it has
  std::optional<AugmentOptions> augment = {};  // each - 1 changed forms of one picture of every class, behind it
  uint64_t seed = 1;                           // of the changes
};
Drawing contact_sheet(const PictureData& data, const std::string& title, const SheetOptions& options);

}  // namespace heed::cli
