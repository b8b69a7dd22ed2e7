// A value of a JSON file, with its place there. Errors name the file, the path of the key, the value and what was expected.
#pragma once

#include <limits>
#include <string>
#include <vector>

#include "heed/core/api.h"
#include "heed/io/json.h"

namespace HEED_API heed {

class JsonReader {
 public:
  JsonReader(const Json& json, std::string file, std::string path = "") : json_(&json), file_(std::move(file)), path_(std::move(path)) {}

  const Json& json() const { return *json_; }
  std::string place() const { return path_.empty() ? file_ : file_ + ": " + path_; }  // "config.json: rope_scaling.factor"
  template <class... Parts>
  [[noreturn]] void refuse(const Parts&... parts) const {
    fail<FileError>(place(), ": ", parts...);
  }
  [[noreturn]] void expected(std::string_view what) const;  // fails: the value is something else

  bool has(std::string_view key) const { return json_->is_object() && json_->contains(key) && !(*json_)[key].is_null(); }
  JsonReader operator[](std::string_view key) const;  // must exist
  JsonReader operator[](size_t i) const;              // must exist
  size_t size() const;                                // must be a list
  std::vector<JsonReader> list() const;
  const Json& object() const;

  std::string text() const;
  std::string text(std::string_view key) const { return (*this)[key].text(); }
  std::string text_or(std::string_view key, std::string_view fallback) const { return has(key) ? text(key) : std::string(fallback); }
  bool flag() const;
  bool flag_or(std::string_view key, bool fallback) const { return has(key) ? (*this)[key].flag() : fallback; }
  int64_t whole(int64_t least = -kAnyWhole, int64_t most = kAnyWhole) const;
  int64_t whole_or(std::string_view key, int64_t fallback) const { return has(key) ? (*this)[key].whole() : fallback; }
  double number(double least = -kAnyNumber, double most = kAnyNumber) const;

 private:
  static constexpr int64_t kAnyWhole = (int64_t{1} << 40) - 1;
  static constexpr double kAnyNumber = std::numeric_limits<double>::max();

  const Json* json_;
  std::string file_, path_;
};

}  // namespace heed
