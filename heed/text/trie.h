// A byte trie: finds all stored strings that start at a position of a text in one walk.
#pragma once

#include <string_view>
#include <vector>

#include "heed/text/number_table.h"

namespace heed::text {

class Trie {
 public:
  // Replaces the value of an existing key. Values are not negative.
  void insert(std::string_view key, int32_t value) {
    uint32_t node = 0;
    for (const char byte : key) {
      uint32_t& child = children_[child_key(node, byte)];
      if (child == 0) {
        child = static_cast<uint32_t>(values_.size());
        values_.push_back(-1);
      }
      node = child;
    }
    values_[node] = value;
  }
  bool empty() const { return values_.size() == 1; }

  // body(end, value) for each stored string that equals bytes [begin, end) of the text, shortest first.
  template <class Body>
  void each_prefix(std::string_view text, size_t begin, const Body& body) const {
    uint32_t node = 0;
    for (size_t i = begin; i < text.size(); ++i) {
      const uint32_t* child = children_.find(child_key(node, text[i]));
      if (!child) return;
      node = *child;
      if (values_[node] >= 0) body(i + 1, values_[node]);
    }
  }

  struct Match {
    size_t end = 0;
    int32_t value = -1;
  };
  Match longest(std::string_view text, size_t begin) const {
    Match best;
    each_prefix(text, begin, [&best](size_t end, int32_t value) { best = {end, value}; });
    return best;
  }

 private:
  static uint64_t child_key(uint32_t node, char byte) { return uint64_t{node} << 8 | static_cast<unsigned char>(byte); }

  NumberTable<uint32_t> children_;
  std::vector<int32_t> values_ = {-1};  // of each node; -1: no string ends here
};

}  // namespace heed::text
