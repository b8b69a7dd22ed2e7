// SentencePiece's character map (Kudo and Richardson 2018): a double-array trie whose values are offsets into zero-terminated texts.
#include <cstring>
#include <memory>
#include <optional>

#include "heed/text/normalizer.h"

namespace heed::text {
namespace {

// One trie cell: whether it has a value child, the label leading to it, and the offset of its children.
struct Cell {
  uint32_t bits;
  bool has_value() const { return bits >> 8 & 1; }
  uint32_t value() const { return bits & 0x7FFFFFFFu; }
  uint32_t label() const { return bits & 0x800000FFu; }
  uint32_t offset() const { return bits >> 10 << ((bits & 0x200u) >> 6); }
};

class CharacterMap {
 public:
  CharacterMap(const std::string& map, const std::string& source) {
    uint32_t bytes = 0;
    if (map.size() >= 4) std::memcpy(&bytes, map.data(), 4);
    check<FileError>(map.size() >= 4 && bytes % 4 == 0 && bytes > 0 && bytes <= map.size() - 4, source, ": found ", map.size(),
                     " bytes, expected a trie of ", bytes, " bytes after its length");
    cells_.resize(bytes / 4);
    std::memcpy(cells_.data(), map.data() + 4, bytes);
    texts_ = map.substr(4 + bytes);
    check<FileError>(find_bad_utf8(texts_) == texts_.npos, source, ": found bytes that are not UTF-8 among the texts");
    for (size_t begin = 0, end = 0; begin < texts_.size(); begin = end + 1) {
      end = std::min(texts_.find('\0', begin), texts_.size());
      check<FileError>(end - begin <= kLongestEntry, source, ": found ", end - begin, " bytes in one replacement text, expected at most ",
                       kLongestEntry);
    }
  }

  // The replacement of the shortest entry that is a prefix of the text.
  std::optional<std::string_view> find(std::string_view input) const {
    std::optional<std::string_view> out;
    each_entry(input, [&](size_t, std::string_view text) {
      out = text;
      return false;
    });
    return out;
  }
  // The length and replacement of the longest such entry.
  std::optional<std::pair<size_t, std::string_view>> find_longest(std::string_view rest) const {
    std::optional<std::pair<size_t, std::string_view>> out;
    each_entry(rest, [&](size_t bytes, std::string_view text) {
      out.emplace(bytes, text);
      return true;
    });
    return out;
  }

 private:
  // body(entry bytes, replacement) for every entry that is a prefix of the text, shortest first, until body returns false.
  template <class Body>
  void each_entry(std::string_view text, const Body& body) const {
    size_t at = cells_[0].offset();
    for (size_t i = 0; i < std::min(text.size(), kLongestEntry); ++i) {
      const uint32_t label = static_cast<unsigned char>(text[i]);
      at ^= label;
      if (label == 0 || at >= cells_.size() || cells_[at].label() != label) return;
      const Cell cell = cells_[at];
      at ^= cell.offset();
      if (!cell.has_value()) continue;
      if (at >= cells_.size()) return;
      const uint32_t begin = cells_[at].value();
      if (begin > texts_.size() || (begin < texts_.size() && !starts_char(texts_[begin]))) return;
      const std::string_view rest = std::string_view(texts_).substr(begin, kLongestEntry);
      if (!body(i + 1, rest.substr(0, rest.find('\0')))) return;
    }
  }

  // Bytes of an entry and of its replacement; published maps have up to 40. Bounds the walk: a damaged trie may have cycles.
  static constexpr size_t kLongestEntry = 256;

  std::vector<Cell> cells_;
  std::string texts_;
};

constexpr size_t kLongestCluster = 6;  // bytes; longer grapheme clusters are looked up character by character

// Entries are whole characters, but a damaged map must not split one either.
void replace_longest(const CharacterMap& characters, Aligned& in) {
  const std::string_view text = in.text;
  Aligned out = in.next();
  for (size_t i = 0, next = 0; i < text.size(); i = next) {
    const auto found = characters.find_longest(text.substr(i));
    next = i + (found ? found->first : char_bytes(text[i]));
    while (next < text.size() && !starts_char(text[next])) ++next;
    out.append(found ? found->second : text.substr(i, next - i), in.source(i, next));
  }
  in = std::move(out);
}

}  // namespace

Normalizer make_precompiled(const std::string& map, const std::string& source, Lookup lookup) {
  const auto characters = std::make_shared<const CharacterMap>(map, source);
  if (lookup == Lookup::longest) return [characters](Aligned& in) { replace_longest(*characters, in); };
  return [characters](Aligned& in) {
    const std::string_view text = in.text;
    Aligned out = in.next();
    const auto append = [&](size_t begin, size_t end) {
      const auto found = characters->find(text.substr(begin, end - begin));
      if (found) out.append(*found, in.source(begin, end));
      return found.has_value();
    };
    for (size_t begin = 0, end = 0; begin < text.size(); begin = end) {
      int state = 0;
      char32_t last = next_char(text, end);
      while (end < text.size()) {
        size_t next = end;
        const char32_t c = next_char(text, next);
        if (breaks_cluster(last, c, state)) break;
        last = c;
        end = next;
      }
      if (end - begin < kLongestCluster && append(begin, end)) continue;
      for (size_t i = begin, next = 0; i < end; i = next) {
        next = i + char_bytes(text[i]);
        if (!append(i, next)) out.append(text.substr(i, next - i), in.source(i, next));
      }
    }
    in = std::move(out);
  };
}

}  // namespace heed::text
