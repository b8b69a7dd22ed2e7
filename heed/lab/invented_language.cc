#include "heed/lab/invented_language.h"

namespace heed::lab {
namespace {

void add_sentence(ClassedText& out, const InventedLanguage& language, WordSet which, Rng& rng) {
  const auto choose = [&](const std::vector<std::string>& words) {
    const auto count = static_cast<uint64_t>(words.size());
    if (which == WordSet::all) return words[rng.below(count)];
    return words[2 * rng.below((count + (which == WordSet::even ? 1 : 0)) / 2) + (which == WordSet::odd ? 1 : 0)];
  };
  const auto say = [&](const std::string& word, int64_t of_class) {
    out.text += (out.text.empty() ? "" : " ") + word;
    out.classes.push_back(of_class);
  };
  const auto maybe = [&](size_t of_class) {
    if (rng.below(2) == 0) say(choose(language.others[of_class]), static_cast<int64_t>(of_class));
  };
  const auto phrase = [&](const char* article) {
    say(article, -1), maybe(2);
    say(choose(language.nouns[static_cast<size_t>(out.topic)]), 0);
    maybe(3);
  };
  phrase("The");
  say(choose(language.others[1]), 1);
  phrase("the");
  out.text += ".";
  out.classes.push_back(-1);
}

}  // namespace

InventedLanguage::InventedLanguage(int64_t topics, int64_t words) {
  constexpr std::string_view consonants = "bdfgklmnprstvz", vowels = "aeiou";
  std::vector<std::string> all;
  for (const char a : consonants)
    for (const char b : vowels)
      for (const char c : consonants)
        for (const char d : vowels) all.push_back({a, b, c, d});
  Rng rng(7);  // the language is the same for all seeds
  const std::vector<int64_t> order = random_permutation(std::ssize(all), rng);
  size_t next = 0;
  const auto take = [&](int64_t count) {
    std::vector<std::string> out;
    for (int64_t i = 0; i < count; ++i) out.push_back(all[static_cast<size_t>(order[next++])]);
    return out;
  };
  for (int64_t t = 0; t < topics; ++t) nouns.push_back(take(words));
  for (size_t i = 1; i < kWordClasses.size(); ++i) others[i] = take(2 * words);
}

ClassedText drawn_text(const InventedLanguage& language, int64_t topic, int64_t sentences, WordSet which, Rng& rng) {
  ClassedText out{.topic = topic};
  for (int64_t i = 0; i < sentences; ++i) add_sentence(out, language, which, rng);
  return out;
}

}  // namespace heed::lab
