// Tokens and their ids.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "heed/core/api.h"
#include "heed/io/json_reader.h"
#include "heed/text/string_table.h"
#include "heed/text/unicode.h"

namespace HEED_API heed {
namespace text {

inline constexpr int64_t kMaxTokenId = int64_t{1} << 24;

class Vocabulary {
 public:
  // False if the token or the id is taken; nothing changes.
  bool add(std::string_view token, int64_t id);
  int32_t find(std::string_view token) const { return table_.find(token); }  // -1: unknown
  bool has(int64_t id) const { return id >= 0 && id < std::ssize(index_) && index_[static_cast<size_t>(id)] >= 0; }
  const std::string& token(int64_t id) const { return tokens_[static_cast<size_t>(index_[static_cast<size_t>(id)])]; }
  int64_t count() const { return std::ssize(tokens_); }
  int64_t id_limit() const { return std::ssize(index_); }  // largest id + 1

  static Vocabulary from_json(const JsonReader& json);  // {token: id}
  static Vocabulary from_lines(const Path& path);       // vocab.txt: the token of line i has id i
  Json to_json() const;

 private:
  std::vector<std::string> tokens_;
  std::vector<int32_t> index_;  // id -> index into tokens_; -1: none
  StringTable table_;
};

// A special token in "added_tokens" of tokenizer.json.
Json added_token(int64_t id, const std::string& content);

}  // namespace text
}  // namespace heed
