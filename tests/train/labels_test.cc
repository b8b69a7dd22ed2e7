// Which samples a report shows: some that were right, some that were wrong, of several classes.
#include "heed/train/labels.h"

#include <gtest/gtest.h>

#include <set>

namespace heed::test {
namespace {

// Samples sorted by class, as files often are.
std::vector<int64_t> sorted_labels(int64_t classes, int64_t each) {
  std::vector<int64_t> out;
  for (int64_t i = 0; i < classes * each; ++i) out.push_back(i / each);
  return out;
}

TEST(Labels, right_and_wrong_samples_are_of_several_classes) {
  const std::vector<int64_t> labels = sorted_labels(5, 100);
  const auto look_at = [&](int64_t i) {
    return Sample{.truth = std::to_string(labels[static_cast<size_t>(i)]), .guess = "3", .right = i % 2 == 0};
  };
  std::map<bool, std::multiset<std::string>> found;
  for (const Sample& sample : some_right_and_wrong(classes_in_turn(labels), look_at)) found[sample.right].insert(sample.truth);
  for (const bool right : {true, false}) {
    EXPECT_EQ(found[right].size(), 8u);
    for (const char* label : {"0", "1", "2", "3", "4"}) EXPECT_GE(found[right].count(label), 1u) << label;
  }
}

TEST(Labels, every_sample_has_its_turn) {
  for (const std::vector<int64_t>& labels : {std::vector<int64_t>{}, {7}, {2, 2, 0, 2, 1}, sorted_labels(1000, 2)}) {
    const std::vector<int64_t> order = classes_in_turn(labels);
    EXPECT_EQ(order.size(), labels.size());
    EXPECT_EQ(std::set<int64_t>(order.begin(), order.end()).size(), labels.size());
  }
  EXPECT_EQ(classes_in_turn(std::vector<int64_t>{2, 2, 0, 2, 1}), (std::vector<int64_t>{2, 4, 0, 1, 3}));
  // Of a thousand classes, those that are tried come from the whole list.
  const std::vector<int64_t> order = classes_in_turn(sorted_labels(1000, 2));
  EXPECT_GE(order[300], 1800);
}

}  // namespace
}  // namespace heed::test
