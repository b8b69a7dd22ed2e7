// Reading and writing of TOML settings files.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "heed/io/json.h"

namespace heed {

struct TomlValue {
  std::string key;  // tables are joined by dots: [a] b = 1 is a.b
  Json value;
  int64_t line;
};
// Tables inside an open table are returned as values, others are flattened. Syntax errors are FileErrors with file and line.
std::vector<TomlValue> read_toml(const Path& path, const std::function<bool(const std::string& table)>& open);

std::string toml_key(const std::string& name);  // quoted if needed
std::string toml_line(const std::string& key, const Json& value);

}  // namespace heed
