#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>
#include <sstream>

#include "heed/data/text_data.h"
#include "tests/expect_error.h"

namespace heed::test {
namespace {

struct Spelling {
  int64_t number;
  const char *english, *german, *french;
};

// By hand.
const std::vector<Spelling> kSpellings = {
    {0, "zero", "null", "zéro"},
    {1, "one", "eins", "un"},
    {7, "seven", "sieben", "sept"},
    {10, "ten", "zehn", "dix"},
    {11, "eleven", "elf", "onze"},
    {12, "twelve", "zwölf", "douze"},
    {16, "sixteen", "sechzehn", "seize"},
    {17, "seventeen", "siebzehn", "dix-sept"},
    {20, "twenty", "zwanzig", "vingt"},
    {21, "twenty-one", "einundzwanzig", "vingt et un"},
    {22, "twenty-two", "zweiundzwanzig", "vingt-deux"},
    {30, "thirty", "dreißig", "trente"},
    {61, "sixty-one", "einundsechzig", "soixante et un"},
    {67, "sixty-seven", "siebenundsechzig", "soixante-sept"},
    {70, "seventy", "siebzig", "soixante-dix"},
    {71, "seventy-one", "einundsiebzig", "soixante et onze"},
    {77, "seventy-seven", "siebenundsiebzig", "soixante-dix-sept"},
    {80, "eighty", "achtzig", "quatre-vingts"},
    {81, "eighty-one", "einundachtzig", "quatre-vingt-un"},
    {90, "ninety", "neunzig", "quatre-vingt-dix"},
    {91, "ninety-one", "einundneunzig", "quatre-vingt-onze"},
    {97, "ninety-seven", "siebenundneunzig", "quatre-vingt-dix-sept"},
    {100, "one hundred", "einhundert", "cent"},
    {101, "one hundred one", "einhunderteins", "cent un"},
    {180, "one hundred eighty", "einhundertachtzig", "cent quatre-vingts"},
    {200, "two hundred", "zweihundert", "deux cents"},
    {201, "two hundred one", "zweihunderteins", "deux cent un"},
    {999, "nine hundred ninety-nine", "neunhundertneunundneunzig", "neuf cent quatre-vingt-dix-neuf"},
    {1000, "one thousand", "eintausend", "mille"},
    {1001, "one thousand one", "eintausendeins", "mille un"},
    {1100, "one thousand one hundred", "eintausendeinhundert", "mille cent"},
    {2000, "two thousand", "zweitausend", "deux mille"},
    {2300, "two thousand three hundred", "zweitausenddreihundert", "deux mille trois cents"},
    {21'000, "twenty-one thousand", "einundzwanzigtausend", "vingt et un mille"},
    {80'000, "eighty thousand", "achtzigtausend", "quatre-vingt mille"},
    {80'080, "eighty thousand eighty", "achtzigtausendachtzig", "quatre-vingt mille quatre-vingts"},
    {101'001, "one hundred one thousand one", "einhunderteintausendeins", "cent un mille un"},
    {200'200, "two hundred thousand two hundred", "zweihunderttausendzweihundert", "deux cent mille deux cents"},
    {999'999, "nine hundred ninety-nine thousand nine hundred ninety-nine", "neunhundertneunundneunzigtausendneunhundertneunundneunzig",
     "neuf cent quatre-vingt-dix-neuf mille neuf cent quatre-vingt-dix-neuf"},
};

TEST(SyntheticNumbers, words_are_spelled_correctly) {
  for (const Spelling& each : kSpellings) {
    EXPECT_EQ(number_words(each.number, NumberLanguage::english), each.english);
    EXPECT_EQ(number_words(each.number, NumberLanguage::german), each.german);
    EXPECT_EQ(number_words(each.number, NumberLanguage::french), each.french);
  }
  expect_error([] { number_words(-1, NumberLanguage::german); }, "number_words: found -1, expected 0 to 999999");
  expect_error([] { number_words(1'000'000, NumberLanguage::german); }, "number_words: found 1000000, expected 0 to 999999");
}

TEST(SyntheticNumbers, no_two_numbers_have_the_same_words) {
  for (const NumberLanguage language : {NumberLanguage::english, NumberLanguage::german, NumberLanguage::french}) {
    std::set<std::string> all;
    for (int64_t number = 0; number < 1'000'000; number += number < 20'000 ? 1 : 37)
      EXPECT_TRUE(all.insert(number_words(number, language)).second);
  }
}

std::set<std::string> sources(const std::vector<Translation>& pairs) {
  std::set<std::string> out;
  for (const Translation& pair : pairs) out.insert(pair.source);
  return out;
}

TEST(SyntheticNumbers, items_do_not_depend_on_the_count_and_parts_share_none) {
  constexpr auto from = NumberLanguage::english, to = NumberLanguage::french;
  const auto few = synthetic_numbers(100, 3, from, to), many = synthetic_numbers(5000, 3, from, to);
  for (size_t i = 0; i < few.size(); ++i) EXPECT_EQ(few[i].source + few[i].target, many[i].source + many[i].target);
  EXPECT_NE(synthetic_numbers(100, 4, from, to)[1].source, few[1].source);
  const std::set<std::string> train = sources(many);
  EXPECT_EQ(train.size(), many.size());  // no duplicates
  for (const DataPart part : {DataPart::validation, DataPart::test}) {
    const auto other = synthetic_numbers(2000, 5, from, to, part);
    const std::set<std::string> found = sources(other);
    EXPECT_EQ(found.size(), other.size());
    for (const std::string& words : found) EXPECT_FALSE(train.contains(words)) << words;
  }
}

TEST(SyntheticNumbers, every_length_appears_and_parts_are_tenths) {
  std::map<DataPart, int> parts;
  for (int64_t number = 0; number < 100'000; ++number) ++parts[part_of_number(number)];
  EXPECT_NEAR(parts[DataPart::test], 10'000, 400);
  EXPECT_NEAR(parts[DataPart::validation], 10'000, 400);
  EXPECT_EQ(part_of_number(0), DataPart::train);
  int with_thousands = 0, short_ones = 0;
  for (const Translation& pair : synthetic_numbers(400, 1, NumberLanguage::english, NumberLanguage::german)) {
    with_thousands += pair.source.find("thousand") != std::string::npos;
    short_ones += pair.source.find("hundred") == std::string::npos && pair.source.find("thousand") == std::string::npos;
  }
  EXPECT_EQ(short_ones, 50);
  EXPECT_EQ(with_thousands, 300);
}

TEST(SyntheticNumbers, exhausted_parts_repeat_their_items) {
  const int64_t all = [] {
    int64_t count = 0;
    for (int64_t number = 0; number < 1'000'000; ++number) count += part_of_number(number) == DataPart::test;
    return count;
  }();
  const auto pairs = synthetic_numbers(all + 10, 1, NumberLanguage::english, NumberLanguage::english, DataPart::test);
  EXPECT_EQ(sources(pairs).size(), static_cast<size_t>(all));
}

using Maker = std::vector<LabelledText> (*)(int64_t, uint64_t, DataPart);

std::string whole(const LabelledText& item) { return item.text + "|" + item.pair.value_or("") + "|" + item.label; }

TEST(SyntheticText, items_depend_only_on_seed_and_index) {
  for (const Maker make : {synthetic_opinions, synthetic_entailment}) {
    const auto few = make(50, 7, DataPart::train), many = make(4000, 7, DataPart::train), test = make(1000, 8, DataPart::test);
    for (size_t i = 0; i < few.size(); ++i) EXPECT_EQ(whole(few[i]), whole(many[i]));
    EXPECT_NE(whole(make(1, 9, DataPart::train)[0]), whole(few[0]));
    std::map<std::string, int> labels;
    std::set<std::string> train;
    for (const LabelledText& item : many) {
      ++labels[item.label];
      train.insert(item.text + "|" + item.pair.value_or(""));
    }
    ASSERT_EQ(labels.size(), 2u);
    for (const auto& [label, count] : labels) EXPECT_EQ(count, 2000) << label;
    EXPECT_GT(train.size(), 3800u);
    for (const LabelledText& item : test) EXPECT_FALSE(train.contains(item.text + "|" + item.pair.value_or(""))) << item.text;
  }
  expect_error([] { synthetic_opinions(-1, 1); }, "synthetic_texts: found -1, expected 0 or more");
}

// Accuracy of naive Bayes on single words: trained on the first half, evaluated on the second.
double bag_of_words_accuracy(const std::vector<LabelledText>& items, bool of_pair) {
  const auto words_of = [&](const LabelledText& item) {
    std::istringstream in(of_pair ? *item.pair : item.text);
    std::set<std::string> words;
    for (std::string word; in >> word;) words.insert(word.substr(0, word.find_last_not_of(".,;!") + 1));
    return words;
  };
  std::map<std::string, std::pair<double, double>> counts;
  const std::string yes = items[0].label;
  for (size_t i = 0; i < items.size() / 2; ++i)
    for (const std::string& word : words_of(items[i])) ++(items[i].label == yes ? counts[word].first : counts[word].second);
  double right = 0;
  for (size_t i = items.size() / 2; i < items.size(); ++i) {
    double score = 0;
    for (const std::string& word : words_of(items[i])) score += std::log((counts[word].first + 1) / (counts[word].second + 1));
    right += (score > 0) == (items[i].label == yes);
  }
  return right / static_cast<double>(items.size() - items.size() / 2);
}

TEST(SyntheticText, bag_of_words_cannot_solve_it) {
  const double opinions = bag_of_words_accuracy(synthetic_opinions(8000, 1), false),
               premises = bag_of_words_accuracy(synthetic_entailment(8000, 1), false);
  EXPECT_GT(opinions, 0.52);  // words carry some information
  EXPECT_LT(opinions, 0.70);
  EXPECT_LT(premises, 0.65);
  EXPECT_NEAR(bag_of_words_accuracy(synthetic_entailment(8000, 1), true), 0.5, 0.03);  // the hypothesis alone reveals nothing
}

// Independent rules for the simplest forms, to detect inverted labels.
TEST(SyntheticText, simple_sentences_have_the_expected_labels) {
  int seen = 0;
  const auto expect_label = [&](const LabelledText& item, const std::string& label) {
    EXPECT_EQ(item.label, label) << item.text;
    ++seen;
  };
  for (const LabelledText& item : synthetic_opinions(4000, 2)) {
    const auto starts = [&](const char* words) { return item.text.starts_with(words); };
    if (starts("What a good ") || starts("I would recommend")) expect_label(item, "positive");
    if (starts("What a bad ") || starts("I would not recommend")) expect_label(item, "negative");
    const bool one_clause = item.text.find_first_of(",;.") + 1 == item.text.size();
    if (starts("Nobody could call") && one_clause && item.text.find("terrible") != std::string::npos) expect_label(item, "positive");
    if (starts("Everybody would call") && one_clause && item.text.find("terrible") != std::string::npos) expect_label(item, "negative");
  }
  EXPECT_GT(seen, 50);
  int pairs = 0;
  for (const LabelledText& item : synthetic_entailment(4000, 2)) {
    if (item.text == item.pair) {
      EXPECT_EQ(item.label, "follows");
      ++pairs;
    }
    if (item.text.find(" no animal.") != std::string::npos && item.pair->find(" no bird.") != std::string::npos) {
      EXPECT_EQ(item.label, "follows");
      ++pairs;
    }
    const bool no_rule = item.text.starts_with("No ") && item.text.find(" is a") != std::string::npos;
    if (no_rule) {
      EXPECT_EQ(item.label == "follows", item.pair->find(" is not ") != std::string::npos) << whole(item);
      ++pairs;
    }
  }
  EXPECT_GT(pairs, 100);
}

}  // namespace
}  // namespace heed::test
