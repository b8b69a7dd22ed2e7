// Signs that a column of labels holds no classes but, for example, scores or row numbers.
#pragma once

#include <span>
#include <string>

#include "heed/data/text_data.h"

namespace heed {

// What was found and what to do about it; both empty: nothing.
struct LabelDoubts {
  std::string error = {};    // there is nothing to learn: most labels occur once
  std::string warning = {};  // many numbers with fractions
};
LabelDoubts doubts_about_labels(std::span<const LabelledText> rows);

}  // namespace heed
