// Numbers as words in three languages: a translation task that can be learned completely and checked exactly.
#include <array>

#include "heed/core/random.h"
#include "heed/data/text_data.h"

namespace heed {
namespace {

constexpr int64_t kNumbers = 1'000'000;

using NumberWords = std::array<const char*, 20>;

constexpr NumberWords kEnglish = {"",         "one",     "two",     "three",     "four",     "five",    "six",
                                  "seven",    "eight",   "nine",    "ten",       "eleven",   "twelve",  "thirteen",
                                  "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"};
constexpr std::array<const char*, 10> kEnglishTens = {"", "", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"};

// Joins with `separator` unless one side is empty.
std::string join(const std::string& a, const char* separator, const std::string& b) {
  return a.empty() || b.empty() ? a + b : a + separator + b;
}

std::string english(size_t n) {
  if (n >= 1000) return join(english(n / 1000) + " thousand", " ", english(n % 1000));
  if (n >= 100) return join(english(n / 100) + " hundred", " ", english(n % 100));
  return n < 20 ? kEnglish[n] : join(kEnglishTens[n / 10], "-", kEnglish[n % 10]);
}

constexpr NumberWords kGerman = {"",         "ein",      "zwei",     "drei",     "vier",     "fünf",    "sechs",
                                 "sieben",   "acht",     "neun",     "zehn",     "elf",      "zwölf",   "dreizehn",
                                 "vierzehn", "fünfzehn", "sechzehn", "siebzehn", "achtzehn", "neunzehn"};
constexpr std::array<const char*, 10> kGermanTens = {"",        "",        "zwanzig", "dreißig", "vierzig",
                                                     "fünfzig", "sechzig", "siebzig", "achtzig", "neunzig"};

// last: nothing follows, so 1 is "eins".
std::string german(size_t n, bool last) {
  if (n >= 1000) return german(n / 1000, false) + "tausend" + german(n % 1000, last);
  if (n >= 100) return std::string(kGerman[n / 100]) + "hundert" + german(n % 100, last);
  if (n == 1 && last) return "eins";
  return n < 20 ? kGerman[n] : join(kGerman[n % 10], "und", kGermanTens[n / 10]);
}

constexpr NumberWords kFrench = {"",    "un",   "deux",  "trois",  "quatre",   "cinq",   "six",   "sept",     "huit",     "neuf",
                                 "dix", "onze", "douze", "treize", "quatorze", "quinze", "seize", "dix-sept", "dix-huit", "dix-neuf"};
constexpr std::array<const char*, 10> kFrenchTens = {"",          "",         "vingt",    "trente",       "quarante",
                                                     "cinquante", "soixante", "soixante", "quatre-vingt", "quatre-vingt"};

// last: nothing follows, so "cents" and "quatre-vingts" keep their s; "mille" counts as following.
std::string french(size_t n, bool last) {
  if (n >= 1000) return join(n < 2000 ? "mille" : french(n / 1000, false) + " mille", " ", french(n % 1000, last));
  if (n >= 100) {
    const std::string hundreds = n < 200 ? "cent" : std::string(kFrench[n / 100]) + " cent";
    return n % 100 == 0 ? hundreds + (n > 100 && last ? "s" : "") : join(hundreds, " ", french(n % 100, last));
  }
  if (n < 20) return kFrench[n];
  if (n == 80) return last ? "quatre-vingts" : "quatre-vingt";
  const bool by_twenties = n >= 70 && n / 10 != 8;  // soixante-dix, quatre-vingt-dix
  const size_t rest = n % 10 + (by_twenties ? 10 : 0);
  const bool with_and = (rest == 1 || rest == 11) && n < 80;
  return join(kFrenchTens[n / 10], with_and ? " et " : "-", kFrench[rest]);
}

// Digit lengths in a cycle of eight: one of up to two digits, one of three, two of each other length.
constexpr std::array<size_t, 8> kLengthCycle = {0, 1, 2, 3, 4, 2, 3, 4};
constexpr std::array<int64_t, 6> kBounds = {0, 100, 1000, 10'000, 100'000, kNumbers};

}  // namespace

std::string number_words(int64_t number, NumberLanguage language) {
  check(number >= 0 && number < kNumbers, "number_words: found ", number, ", expected 0 to ", kNumbers - 1);
  const auto n = static_cast<size_t>(number);
  switch (language) {
    case NumberLanguage::english: return n == 0 ? "zero" : english(n);
    case NumberLanguage::german: return n == 0 ? "null" : german(n, true);
    case NumberLanguage::french: return n == 0 ? "zéro" : french(n, true);
  }
  fail("number_words: found language ", static_cast<int>(language), ", expected english, german or french");
}

DataPart part_of_number(int64_t number) {
  if (number == 0) return DataPart::train;
  const uint32_t tenth = philox({.seed = 0, .stream = 0}, static_cast<uint64_t>(number))[0] % 10;
  return tenth == 0 ? DataPart::test : tenth == 1 ? DataPart::validation : DataPart::train;
}

std::vector<Translation> synthetic_numbers(int64_t count, uint64_t seed, NumberLanguage from, NumberLanguage to, DataPart part) {
  check(count >= 0, "synthetic_numbers: found ", count, ", expected 0 or more");
  constexpr size_t lengths = kBounds.size() - 1;
  std::array<std::vector<int64_t>, lengths> numbers;  // of the part, shuffled
  Rng rng(seed);
  for (size_t length = 0; length < lengths; ++length) {
    std::vector<int64_t> found;
    for (int64_t number = kBounds[length]; number < kBounds[length + 1]; ++number)
      if (part_of_number(number) == part) found.push_back(number);
    for (const int64_t index : random_permutation(std::ssize(found), rng)) numbers[length].push_back(found[static_cast<size_t>(index)]);
  }
  std::vector<Translation> out;
  std::array<size_t, lengths> used{};
  for (int64_t i = 0; i < count; ++i) {
    // Exhausted lengths are replaced by longer ones; when all are exhausted, start over.
    size_t length = kLengthCycle[static_cast<size_t>(i) % kLengthCycle.size()], tried = 0;
    for (; used[length] == numbers[length].size() && tried < lengths; ++tried) length = (length + 1) % lengths;
    if (tried == lengths) used = {};
    const int64_t number = numbers[length][used[length]++];
    out.push_back({number_words(number, from), number_words(number, to)});
  }
  return out;
}

}  // namespace heed
