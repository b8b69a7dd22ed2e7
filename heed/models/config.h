// A model's config.json, read key by key with the defaults of `transformers`. What cannot be honoured is refused: errors name
// the file, the key, what it holds and what was expected.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "heed/io/json.h"
#include "heed/ops/ops.h"

namespace heed {

inline constexpr int64_t kLargestImageSide = 65536;  // pixels
inline constexpr double kLargestNumber = 1e38;       // fits in f32

class Config {
 public:
  Config(Json json, std::string source);  // source: for messages, a path mostly

  // The value of a key; `otherwise` where it is absent or null.
  int64_t size(std::string_view key, int64_t otherwise, int64_t least = 1) const;
  float number(std::string_view key, float otherwise, double least = -kLargestNumber, double most = kLargestNumber) const;
  float epsilon(std::string_view key, float otherwise) const { return number(key, otherwise, 0, 1); }  // of norms
  float probability(std::string_view key, float otherwise) const;                                      // 0 or more, below 1
  bool flag(std::string_view key, bool otherwise) const;
  std::string word(std::string_view key, std::string_view otherwise) const;
  Activation activation(std::string_view key, std::string_view otherwise) const;
  std::vector<int64_t> sizes(std::string_view key, std::vector<int64_t> otherwise) const;  // a number or a list of them
  Config below(std::string_view key) const;                                                // an object; empty where absent
  int64_t labels() const;                                                                  // from id2label or num_labels, 2 without them

  // The height and width of images or patches: a number or two of them, in pixels.
  std::array<int64_t, 2> sides(std::string_view key, int64_t otherwise) const;

  bool has(std::string_view key) const { return find(key) != nullptr; }
  const Json& json() const { return json_; }
  const std::string& source() const { return source_; }

  // Anything but `value` would change what is computed, in a way that heed does not know.
  void only(std::string_view key, const Json& value) const;
  [[noreturn]] void refuse(std::string_view key, std::string_view expected) const;

 private:
  const Json* find(std::string_view key) const;  // null: absent, or null in the file

  Json json_;
  std::string source_, path_ = {};  // path_: of the object in the file, "rope_scaling." for example
};

}  // namespace heed
