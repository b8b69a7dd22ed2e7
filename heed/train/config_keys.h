// The config.json key names of each architecture, and which of heed's own keys it supports.
#pragma once

#include <string>
#include <vector>

#include "heed/models/choices.h"

namespace heed {

struct ConfigKeys {
  using Names = std::vector<std::string>;

  std::string prefix;  // of the names in "architectures"
  // Convolutional networks leave all of these empty except the activation.
  Names layers = {}, heads = {}, width = {}, feed_forward = {}, activation = {}, dropout = {};
  std::string default_position = {};                                    // the position encoding it has by default
  enum class Reads { image, text, written_text } reads = Reads::image;  // written_text: token by token, with a cache
  Names more = {};                                                      // other supported keys: docs/models.md
  std::string norm = "before";                                          // norm placement unless config.json says otherwise

  Names keys() const;                          // all keys that config.json may contain
  Names supported(const Choices& list) const;  // choices of the architecture
};

const std::vector<ConfigKeys>& all_config_keys();
const ConfigKeys& config_keys_of(const Json& config);

}  // namespace heed
