// A model's config.json, read key by key with the defaults of `transformers`. Values that heed does not support are errors,
// which name the file, the key, its value and what was expected.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "heed/core/api.h"
#include "heed/io/json_reader.h"
#include "heed/ops/ops.h"

namespace HEED_API heed {

inline constexpr int64_t kLargestImageSide = 65536;  // pixels
inline constexpr double kLargestNumber = 1e38;       // fits in f32

class Config {
 public:
  Config(Json json, std::string source);  // source: the path, for messages

  // The value of a key, or `fallback` if it is absent or null.
  int64_t size(std::string_view key, int64_t fallback, int64_t least = 1) const;
  float number(std::string_view key, float fallback, double least = -kLargestNumber, double most = kLargestNumber) const;
  float epsilon(std::string_view key, float fallback) const { return number(key, fallback, 0, 1); }  // of norms
  float probability(std::string_view key, float fallback) const;                                     // 0 or more, below 1
  bool flag(std::string_view key, bool fallback) const { return reader().flag_or(key, fallback); }
  std::string string(std::string_view key, std::string_view fallback) const { return reader().text_or(key, fallback); }
  Activation activation(std::string_view key, std::string_view fallback) const;
  std::vector<int64_t> sizes(std::string_view key, std::vector<int64_t> fallback) const;  // a number or a list of numbers
  Config below(std::string_view key) const;                                               // a nested object; empty if absent
  // below(key), or of older files KEY_dict: as in `transformers` it replaces the object KEY, except what "heed" has there.
  Config below_or_dict(std::string_view key) const;
  int64_t labels() const;  // from id2label or num_labels; default 2

  // Height and width of images or patches in pixels: one number or two.
  std::array<int64_t, 2> sides(std::string_view key, int64_t fallback) const;

  std::string architecture() const;  // the first of "architectures"; empty if there is none
  bool has(std::string_view key) const { return reader().has(key); }
  JsonReader at(std::string_view key) const { return reader()[key]; }  // must exist
  const Json& json() const { return json_; }
  const std::string& source() const { return source_; }

  // An error if the key has any other value: heed does not support it.
  void only(std::string_view key, const Json& value) const;
  [[noreturn]] void refuse(std::string_view key, std::string_view expected) const;

 private:
  JsonReader reader() const { return {json_, source_, path_}; }

  Json json_;
  std::string source_, path_ = {};  // path_: of a nested object, for example "rope_scaling"
};

}  // namespace heed
