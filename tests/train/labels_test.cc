// Samples for the report: right and wrong ones of several classes.
#include "heed/train/labels.h"

#include <gtest/gtest.h>

#include <set>

namespace heed::test {
namespace {

// Sorted by class, as files often are.
std::vector<int64_t> sorted_labels(int64_t classes, int64_t each) {
  std::vector<int64_t> out;
  for (int64_t i = 0; i < classes * each; ++i) out.push_back(i / each);
  return out;
}

TEST(Labels, right_and_wrong_samples_are_of_several_classes) {
  const std::vector<int64_t> labels = sorted_labels(5, 100);
  const auto explain = [&](int64_t i) {
    return Sample{.truth = std::to_string(labels[static_cast<size_t>(i)]), .guess = "3", .right = i % 2 == 0};
  };
  std::map<bool, std::multiset<std::string>> found;
  for (const Sample& sample : pick_right_and_wrong(class_round_robin(labels), explain)) found[sample.right].insert(sample.truth);
  for (const bool right : {true, false}) {
    EXPECT_EQ(found[right].size(), 8u);
    for (const char* label : {"0", "1", "2", "3", "4"}) EXPECT_GE(found[right].count(label), 1u) << label;
  }
}

TEST(Labels, round_robin_has_every_sample_once) {
  for (const std::vector<int64_t>& labels : {std::vector<int64_t>{}, {7}, {2, 2, 0, 2, 1}, sorted_labels(1000, 2)}) {
    const std::vector<int64_t> order = class_round_robin(labels);
    EXPECT_EQ(order.size(), labels.size());
    EXPECT_EQ(std::set<int64_t>(order.begin(), order.end()).size(), labels.size());
  }
  EXPECT_EQ(class_round_robin(std::vector<int64_t>{2, 2, 0, 2, 1}), (std::vector<int64_t>{2, 4, 0, 1, 3}));
  // Of a thousand classes, the ones tried are spread over all of them.
  const std::vector<int64_t> order = class_round_robin(sorted_labels(1000, 2));
  EXPECT_GE(order[300], 1800);
}

}  // namespace
}  // namespace heed::test
