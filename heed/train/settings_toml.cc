// The only file that includes toml++, which is slow to compile.
#include "heed/train/settings_toml.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

#define TOML_HEADER_ONLY 0
#define TOML_SHARED_LIB 1
#include <toml++/toml.h>

namespace heed {
namespace {

constexpr int64_t kMaxTomlBytes = int64_t{1} << 20;

Json as_json(const std::string& file, const toml::node& node) {
  if (const auto* text = node.as_string()) return text->get();
  if (const auto* whole = node.as_integer()) return whole->get();
  if (const auto* flag = node.as_boolean()) return flag->get();
  if (const auto* number = node.as_floating_point(); number && std::isfinite(number->get())) return number->get();
  const auto* list = node.as_array();
  const auto* table = node.as_table();
  check<FileError>(list || table, file, ":", node.source().begin.line,
                   ": found a date, a time, inf or nan, expected another type of value");
  Json out = list ? Json::array() : Json::object();
  if (list)
    for (const toml::node& each : *list) out.push_back(as_json(file, each));
  else
    for (const auto& [name, each] : *table) out[std::string(name.str())] = as_json(file, each);
  return out;
}

struct Walk {
  const std::string& file;
  const std::function<bool(const std::string& table)>& open;
  std::vector<TomlValue> out = {};

  void table(const toml::table& values, const std::string& path) {
    const bool keeps = open(path);
    for (const auto& [name, node] : values) {
      const std::string key = path.empty() ? std::string(name.str()) : path + "." + std::string(name.str());
      if (const toml::table* inner = node.as_table(); inner && !keeps)
        table(*inner, key);
      else
        out.push_back({key, as_json(file, node), static_cast<int64_t>(name.source().begin.line)});
    }
  }
};

std::string toml_value(const Json& value) {
  if (value.is_number_unsigned() && value.get<uint64_t>() >> 63) return '"' + value.dump() + '"';  // TOML integers are signed
  if (value.is_array() || value.is_object()) {
    std::string inside;
    for (const auto& [name, each] : value.items())
      inside += (inside.empty() ? "" : ", ") + (value.is_object() ? toml_line(toml_key(name), each) : toml_value(each));
    return value.is_array() ? "[" + inside + "]" : "{" + inside + "}";
  }
  std::string text = value.dump();  // JSON escapes are valid TOML, except that TOML requires U+007F to be escaped
  for (size_t at = text.find('\x7f'); at != std::string::npos; at = text.find('\x7f', at)) text.replace(at, 1, "\\u007F");
  return text;
}

}  // namespace

std::vector<TomlValue> read_toml(const Path& path, const std::function<bool(const std::string& table)>& open) {
  const std::string file = path.string(), text = read_text(path, kMaxTomlBytes);
  Walk walk{file, open};
  try {
    walk.table(toml::parse(text), "");
  } catch (const toml::parse_error& error) {
    fail<FileError>(file, ":", error.source().begin.line, ": found invalid TOML: ", in_quotes(error.description(), 300));
  }
  // In file order, so that the first mistake is reported first.
  std::stable_sort(walk.out.begin(), walk.out.end(), [](const TomlValue& a, const TomlValue& b) { return a.line < b.line; });
  return walk.out;
}

std::string toml_key(const std::string& name) {
  const bool bare =
      !name.empty() && name.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-") == name.npos;
  return bare ? name : toml_value(name);
}

std::string toml_line(const std::string& key, const Json& value) { return key + " = " + toml_value(value); }

}  // namespace heed
