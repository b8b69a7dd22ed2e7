// The descriptors of score terms: names that are unique, and what they say about the terms.
#include <gtest/gtest.h>

#include <set>

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
  EXPECT_EQ(names.size(), 28u);
  EXPECT_EQ(find_term("gausian"), nullptr);
}

TEST(TermList, has_a_subject_for_every_term) {
  std::set<std::string> tested;
  for (const Subject& subject : every_term(kListSizes)) tested.insert(info_of(subject.term).name);
  EXPECT_EQ(tested.size(), term_infos().size());
}

TEST(TermList, descriptors_agree_with_the_terms) {
  for (const Subject& subject : every_term(kListSizes)) {
    const TermInfo& info = info_of(subject.term);
    SCOPED_TRACE(info.name);
    Term term = subject.term;
    const AttentionSizes sizes{kListSizes.B, kListSizes.H, kListSizes.G, kListSizes.N, kListSizes.M, kListSizes.D, kListSizes.E};
    const TermArgs args = term_args(checked(term, sizes));
    EXPECT_EQ(info.masks, visit_term(args, []<class T>(const T&) -> bool { return kIsMask<T>; }));
    const TermValues values = complete_settings(info, settings_of(term));
    EXPECT_EQ(values.size(), info.settings.size());
    EXPECT_EQ(settings_of(term).size(), info.settings.size());
    int64_t learned = 0;  // numbers that belong to a head, not to a token
    for (const TermTensor& x : learned_of(term, sizes))
      if (x.sums == Sums::numbers || x.sums == Sums::table) learned += x.tensor.count();
    EXPECT_EQ(static_cast<double>(kListSizes.H) * info.parameters(values), static_cast<double>(learned));
    EXPECT_EQ(info.multiply_adds(values) > 0, !info.masks && info.name != "bias" && info.name != "soft_cap" && info.name != "relative" &&
                                                  info.name != "relative_2d" && info.name != "bucketed");
    EXPECT_EQ(info.needs_grid, info.settings.size() > 0 && info.settings.back().name == "width");
  }
}

TEST(TermList, settings_have_usual_values_and_ranges) {
  const TermInfo& window = *find_term("window");
  EXPECT_EQ(complete_settings(window, {{"before", 3}}), (TermValues{{"before", 3}, {"after", 0}, {"globals", 0}}));
  expect_error([&] { complete_settings(window, {{"before", -1}}); }, "window: before is -1, expected 0 to inf");
  expect_error([&] { complete_settings(window, {{"size", 1}}); }, "window has no setting size");
}

}  // namespace
}  // namespace heed::test
