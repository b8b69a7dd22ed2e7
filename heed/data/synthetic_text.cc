#include "heed/data/synthetic_text.h"

#include <cctype>
#include <string_view>

namespace heed {
namespace {

// By the FNV-1a hash (Fowler, Noll, Vo), mixed again with Philox because its low bits are weak.
DataPart part_of(const LabelledText& item) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const std::string& text : {item.text, item.pair.value_or("")})
    for (const char letter : text + '\n') hash = (hash ^ static_cast<unsigned char>(letter)) * 0x100000001b3;
  const uint32_t tenth = philox({.seed = 0, .stream = 0}, hash)[0] % 10;
  return tenth == 0 ? DataPart::test : tenth == 1 ? DataPart::validation : DataPart::train;
}

}  // namespace

std::vector<LabelledText> synthetic_texts(int64_t count, uint64_t seed, DataPart part,
                                          const std::function<LabelledText(Draw draw, bool yes)>& make) {
  check(count >= 0, "synthetic_texts: found ", count, ", expected 0 or more");
  std::vector<LabelledText> out;
  for (int64_t i = 0; i < count; ++i) {
    const auto number = static_cast<uint64_t>(i);
    Rng order(seed, (number / 2) | uint64_t{1} << 63), rng(seed, number << 20);  // 2^20 draws per item are more than enough
    const bool yes = order.below(2) == number % 2;
    LabelledText item = make(Draw(rng), yes);
    while (part_of(item) != part) item = make(Draw(rng), yes);
    out.push_back(std::move(item));
  }
  return out;
}

std::string capital(std::string text) {
  if (!text.empty()) text[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(text[0])));
  return text;
}

std::string with_article(const std::string& noun) {
  return (std::string_view("aeiou").find(noun.at(0)) != std::string_view::npos ? "an " : "a ") + noun;
}

}  // namespace heed
