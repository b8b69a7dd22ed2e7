// The descriptors of score terms: unique names, and properties that match the terms.
#include <gtest/gtest.h>

#include <set>

#include "heed/attention/attention_flops.h"
#include "heed/attention/scalar_terms.h"
#include "tests/attention/reference.h"
#include "tests/expect_error.h"

namespace heed::test {
namespace {

const Sizes kListSizes{1, 2, 1, 12, 12, 5, 3};

TEST(TermList, names_and_aliases_are_unique) {
  std::set<std::string> names;
  for (const TermInfo& info : term_infos()) {
    EXPECT_TRUE(names.insert(info.name).second) << info.name;
    for (const std::string& alias : info.aliases) EXPECT_TRUE(names.insert(alias).second) << alias;
    EXPECT_FALSE(info.summary.empty()) << info.name;
    EXPECT_EQ(find_term(info.name), &info);
    for (const std::string& alias : info.aliases) EXPECT_EQ(find_term(alias), &info);
  }
  EXPECT_EQ(find_term("gausian"), nullptr);
}

TEST(TermList, has_a_reference_for_every_term) {
  std::set<std::string> tested;
  for (const Subject& subject : every_term(kListSizes)) tested.insert(info_of(subject.term).name);
  EXPECT_EQ(tested.size(), term_infos().size());
}

TEST(TermList, descriptors_match_the_terms) {
  for (const Subject& subject : every_term(kListSizes)) {
    const TermInfo& info = info_of(subject.term);
    SCOPED_TRACE(info.name);
    Term term = subject.term;
    const AttentionSizes sizes{kListSizes.B, kListSizes.H, kListSizes.G, kListSizes.N, kListSizes.M, kListSizes.D, kListSizes.E};
    const TermArgs args = term_args(checked(term, sizes, test_device()));
    EXPECT_EQ(info.masks, visit_term(args, []<class T>(const T&) -> bool { return kIsMask<T>; }));
    // Parameters are the learned tensors of the term that have numbers for every head, under the same names and in the same order.
    std::vector<std::string> described, learned;
    for (const TermParameter& each : info.parameters) described.push_back(each.name);
    for (const TermTensor& x : learned_of(term, sizes))
      if (x.sums == Sums::numbers || x.sums == Sums::table) learned.emplace_back(x.name);
    if (info.products == 0) {  // otherwise its table is computed
      EXPECT_EQ(described, learned);
    }
    EXPECT_FALSE(info.use == TermUse::pattern && !info.masks);
    EXPECT_FALSE(info.use == TermUse::key && info.settings.empty());
  }
}

const TermPlace kPlace{.tokens = 24, .rows = 4, .columns = 6, .layer = 1};

TermInput input_of(const TermInfo& info, TermValues values = {}) {
  TermInput out{.values = std::move(values), .tensors = {}, .place = kPlace};
  complete_settings(info, out.values, kPlace);
  for (const TermParameter& each : info.parameters) out.tensors.push_back(normal_input(each.shape(2, out.values)));
  return out;
}

TEST(TermList, terms_are_created_from_settings) {
  const AttentionSizes sizes{1, 2, 2, 24, 24, 5, 3};
  for (const TermInfo& info : term_infos()) {
    SCOPED_TRACE(info.name);
    if (info.use == TermUse::call || info.products > 0) {
      expect_error([&] { make_term(info, input_of(info)); }, info.name + " cannot be made from settings");
      continue;
    }
    const Term term = make_term(info, input_of(info));
    EXPECT_EQ(&info_of(term), &info);
    checked(term, sizes, test_device());
  }
  const Chunks shifted = std::get<Chunks>(make_term(*find_term("chunks"), input_of(*find_term("chunks"), {{"size", 5}, {"shifted", 1}})));
  EXPECT_EQ(shifted.size, 5);
  EXPECT_EQ(shifted.shift, 2);  // layer 1
}

TEST(TermList, settings_have_defaults) {
  const TermInfo& window = *find_term("window");
  TermValues values{{"before", 3}};
  complete_settings(window, values, {});
  EXPECT_EQ(values, (TermValues{{"before", 3}, {"after", 3}, {"globals", 0}}));
  values = {{"size", 1}};
  expect_error([&] { complete_settings(window, values, {}); }, "window has no setting size");
}

TEST(TermList, settings_are_parsed_from_text) {
  const TermInfo &window = *find_term("window"), &chunks = *find_term("chunks"), &cap = *find_term("soft_cap");
  EXPECT_EQ(window.usage(), "window:BEFORE:AFTER:GLOBALS");
  EXPECT_EQ(parse_settings(window, "4:2", ':'), (TermValues{{"before", 4}, {"after", 2}}));
  EXPECT_EQ(parse_settings(chunks, "4,shifted", ','), (TermValues{{"size", 4}, {"shifted", 1}}));
  EXPECT_EQ(parse_settings(cap, "0.5", ':'), (TermValues{{"limit", 0.5}}));
  for (const char* text : {"x", "-1", "1.5", "", "99999999999"})
    expect_error([&] { parse_settings(window, std::string("1:") + text, ':'); },
                 "after='" + std::string(text) + "', expected a whole number of 0 or more");
  for (const char* text : {"0", "nan", "inf", "1e39", "1e-60"})
    expect_error([&] { parse_settings(cap, text, ':'); }, "limit='" + std::string(text) + "', expected a number above 0");
  expect_error([&] { parse_settings(chunks, "2:often", ':'); }, "shifted='often', expected shifted, true or false");
  expect_error([&] { parse_settings(window, "1:2:3:4", ':'); }, "found 4 parts, expected window:BEFORE:AFTER:GLOBALS");
}

// The visible keys of a pattern are those that its element function keeps.
TEST(TermList, visible_pairs_match_the_element_functions) {
  const int64_t N = 24;
  for (const TermInfo& info : term_infos()) {
    if (info.use != TermUse::pattern) continue;
    for (const double first : {1.0, 2.0, 5.0, 40.0}) {
      SCOPED_TRACE(info.name);
      const Term term = make_term(info, input_of(info, info.settings.empty() ? TermValues() : TermValues{{info.settings[0].name, first}}));
      const TermArgs args = term_args(term);
      int64_t pairs = 0;
      for (int64_t i = 0; i < N; ++i)
        for (int64_t j = 0; j < N; ++j) pairs += scalar::term_keeps(args, {0, 0, i}, j);
      EXPECT_EQ(visible_pairs({term}, N), pairs) << first;
    }
  }
}

}  // namespace
}  // namespace heed::test
