// Importance of heads against finite differences and against running without each.
#include "heed/train/head_importance.h"

#include <gtest/gtest.h>

#include <cmath>

#include "heed/core/autograd.h"
#include "heed/models/model.h"

namespace heed::test {
namespace {

class HeadImportance : public testing::Test {
 protected:
  Tensor loss(int64_t batch) const {
    Rng rng(static_cast<uint64_t>(batch) + 10);
    const Tensor pixels = random_normal({3, 3, 16, 16}, 0, 1, rng, kCpu);
    return model({{"pixel_values", pixels}, {"labels", Tensor::from(std::vector<int64_t>{0, 2, 1}, {3}, kCpu)}}).at("loss");
  }
  double value(int64_t batch) const {
    const NoGrad no_grad;
    return static_cast<double>(loss(batch).item());
  }
  double with_factor(int64_t batch, int64_t layer, size_t head, float factor) const {
    std::vector<float> gate(3, 1);
    gate[head] = factor;
    const AttentionEdit edit({.gates = {{layer, Tensor::from(gate, {3}, kCpu)}}});
    return value(batch);
  }

  const Model model = make_model({{"architectures", {"ViTForImageClassification"}},
                                  {"hidden_size", 24},
                                  {"num_attention_heads", 3},
                                  {"num_hidden_layers", 2},
                                  {"intermediate_size", 16},
                                  {"image_size", 16},
                                  {"patch_size", 4},
                                  {"num_labels", 3},
                                  {"initializer_range", 0.4}});
  const HeadNumbers heads = head_numbers([this] { value(0); });
};

TEST_F(HeadImportance, gradient_is_that_of_a_factor) {
  ASSERT_EQ(heads, (HeadNumbers{{0, 0, 0}, {0, 0, 0}}));
  const HeadNumbers found = importance_by_gradient(heads, 2, [this](int64_t batch) { return loss(batch); });
  for (int64_t layer = 0; layer < 2; ++layer)
    for (size_t head = 0; head < 3; ++head) {
      double expected = 0;
      for (int64_t batch = 0; batch < 2; ++batch)
        expected += std::abs(with_factor(batch, layer, head, 1.01f) - with_factor(batch, layer, head, 0.99f)) / 0.02 / 2;
      EXPECT_GT(expected, 1e-4);
      EXPECT_NEAR(found[static_cast<size_t>(layer)][head], expected, 0.02 * expected + 1e-4);
    }
}

TEST_F(HeadImportance, leaving_out_is_a_factor_of_0) {
  const HeadNumbers found = importance_by_leaving_out(heads, [this] { return -value(0) - value(1); });  // two passes for each
  for (int64_t layer = 0; layer < 2; ++layer)
    for (size_t head = 0; head < 3; ++head) {
      const double expected = with_factor(0, layer, head, 0) + with_factor(1, layer, head, 0) - value(0) - value(1);
      EXPECT_NEAR(found[static_cast<size_t>(layer)][head], expected, 1e-5);
    }
}

TEST_F(HeadImportance, order_and_curve) {
  const HeadNumbers numbers{{3, 1, 5}, {2, 0, 4}};
  const std::vector<HeadPlace> order = by_importance(numbers);
  EXPECT_EQ(order, (std::vector<HeadPlace>{{1, 1}, {0, 1}, {1, 0}, {0, 0}, {1, 2}, {0, 2}}));
  const std::vector<double> scores = scores_without(heads, order, {0, 1, 6}, [this] { return value(0); });
  EXPECT_EQ(scores[0], value(0));
  EXPECT_NEAR(scores[1], with_factor(0, 1, 1, 0), 1e-6);
  EXPECT_NE(scores[2], scores[0]);
}

}  // namespace
}  // namespace heed::test
