// What each architecture calls the sizes and parts of a model in config.json, and which of heed's own keys make sense for it.
#pragma once

#include <string>
#include <vector>

#include "heed/io/json.h"

namespace heed {

struct Dialect {
  using Words = std::vector<std::string>;

  std::string begins;  // the names of its architectures
  // Convolutional networks have no heads, and none of the others.
  Words layers = {}, heads = {}, width = {}, feed_forward = {}, activation = {}, dropout = {};
  std::string own = {};                                                // the word for the positions that it has by itself
  Words positions = {}, attention = {}, patterns = {}, poolings = {};  // those that are possible
  Words more = {};                                                     // other keys that are honoured: docs/models.md
  std::string norm = "before";                                         // where its norms stand unless config.json says otherwise

  Words keys() const;  // all that config.json may hold
};

const std::vector<Dialect>& dialects();
const Dialect& dialect_of(const Json& config);

}  // namespace heed
