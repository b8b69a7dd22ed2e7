// Strict JSON: no duplicate keys, bounded nesting and size. Errors name the source and the byte.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "heed/core/api.h"
#include "heed/io/file.h"

namespace HEED_API heed {

// Sorted keys, not in file order: lookups in a vocabulary of 250 000 words are fast, and output does not depend on insertion order.
using Json = nlohmann::json;

inline constexpr int kMaxJsonDepth = 64;                     // of nested objects and lists
inline constexpr size_t kMaxJsonToken = size_t{4} << 20;     // bytes of one string, number or run of whitespace
inline constexpr int64_t kMaxJsonValues = 4'000'000;         // in one document; a value costs 16 to 100 bytes
inline constexpr int64_t kMaxJsonBytes = int64_t{64} << 20;  // of one document

// Event (SAX) interface, for readers that do not keep the whole document.
class JsonEvents {
 public:
  virtual ~JsonEvents() = default;
  virtual void begin(bool object) = 0;  // object or list
  virtual void key(std::string& name) = 0;
  virtual void scalar(Json& value) = 0;  // null, a boolean, a number or a string
  virtual void end() = 0;                // of the innermost object or list

  int64_t position = 0;  // bytes read so far
};

// Checks everything except duplicate keys, which are left to the events.
void walk_json(const std::string& source, std::string_view text, JsonEvents& events);

// A whole document of at most `limit` bytes. source: names it in messages
Json parse_json(const std::string& source, std::string_view text, int64_t limit = kMaxJsonBytes);
Json read_json(const Path& path, int64_t limit = kMaxJsonBytes);
void write_json(const Path& path, const Json& json);  // indented, atomically

}  // namespace heed
