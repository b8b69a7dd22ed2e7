// JSON, read strictly: no duplicate keys, no deep nesting, no text without end. Errors name the source and the byte.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "heed/io/file.h"

namespace heed {

// Keys sorted, not in the order of the text: looking a word up in a vocabulary of 250 000 must not walk a list, and what
// we write comes out the same whatever order it was put together in.
using Json = nlohmann::json;

inline constexpr int kMaxJsonDepth = 64;
inline constexpr size_t kMaxJsonToken = size_t{4} << 20;  // bytes of one string, number or run of spaces
inline constexpr int64_t kMaxJsonValues = 4'000'000;      // in one document; a value costs some 16 to 100 bytes
inline constexpr int64_t kMaxJsonBytes = int64_t{64} << 20;

// A JSON text piece by piece, for readers that keep less than the whole of it.
class JsonEvents {
 public:
  virtual ~JsonEvents() = default;
  virtual void begin(bool object) = 0;  // an object or a list
  virtual void key(std::string& name) = 0;
  virtual void scalar(Json& value) = 0;  // null, a boolean, a number or a string
  virtual void end() = 0;                // of the innermost object or list

  int64_t position = 0;  // bytes read so far
};

// Duplicate keys are the events' business; everything else that is wrong with a text is refused here.
void walk_json(const std::string& source, std::string_view text, JsonEvents& events);

Json parse_json(const std::string& source, std::string_view text, int64_t limit = kMaxJsonBytes);
Json read_json(const Path& path, int64_t limit = kMaxJsonBytes);
void write_json(const Path& path, const Json& json);  // indented, whole or not at all

}  // namespace heed
