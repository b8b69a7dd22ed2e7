// The config.json key names of a model type.
#pragma once

#include <string>
#include <vector>

namespace heed {

struct ConfigKeys {
  using Names = std::vector<std::string>;

  Names layers = {}, heads = {}, width = {}, feed_forward = {}, activation = {}, dropout = {};  // empty: it has none
  std::string positions = {};                                                                   // maximum number of tokens
  Names more = {};                                                                              // other supported keys: docs/models.md

  Names all() const;  // that config.json may contain
};

}  // namespace heed
