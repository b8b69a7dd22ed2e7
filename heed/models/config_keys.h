// The config.json key names of a model type.
#pragma once

#include <string>
#include <vector>

#include "heed/core/api.h"

namespace HEED_API heed {

// By what they mean; several if a model has several, for example of encoder and decoder.
struct ConfigKeys {
  using Names = std::vector<std::string>;

  Names layers = {}, heads = {}, width = {}, feed_forward = {}, activation = {}, dropout = {};  // empty: it has none
  std::string positions = {};                                                                   // maximum number of tokens
  Names more = {};                                                                              // other supported keys: docs/models.md

  Names all() const;  // that config.json may contain
};

}  // namespace heed
