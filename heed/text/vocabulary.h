// Tokens and their numbers.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "heed/text/json_part.h"
#include "heed/text/string_table.h"
#include "heed/text/unicode.h"

namespace heed::text {

inline constexpr int64_t kMaxTokenId = int64_t{1} << 24;

class Vocabulary {
 public:
  // False, and nothing changes, when the token or the id is taken.
  bool add(std::string_view token, int64_t id);
  int32_t find(std::string_view token) const { return table_.find(token); }  // -1: unknown
  bool has(int64_t id) const { return id >= 0 && id < std::ssize(place_) && place_[static_cast<size_t>(id)] >= 0; }
  const std::string& token(int64_t id) const { return tokens_[static_cast<size_t>(place_[static_cast<size_t>(id)])]; }
  int64_t count() const { return std::ssize(tokens_); }
  int64_t id_limit() const { return std::ssize(place_); }  // one more than the largest id

  static Vocabulary from_json(const JsonPart& json);  // {token: id}
  static Vocabulary from_lines(const Path& path);     // vocab.txt: the token of line i has id i
  Json to_json() const;

 private:
  std::vector<std::string> tokens_;
  std::vector<int32_t> place_;  // of an id in tokens_; -1: none
  StringTable table_;
};

}  // namespace heed::text
