// The callback of backward runs for each leaf as soon as its gradient is complete, and not before.
#include "heed/core/complete_gradients.h"

#include <gtest/gtest.h>

#include <map>

#include "heed/core/autograd.h"
#include "heed/ops/ops.h"
#include "tests/test_device.h"

namespace heed::test {
namespace {

Tensor numbers_leaf(float value) { return Tensor::full({4}, value, test_device()).require_grad(); }

// Checks that gradients in the callback equal the final ones. -> the order of the calls
std::vector<size_t> checked_order(const Tensor& root, const Tensors& leaves) {
  std::vector<size_t> order;
  std::map<size_t, std::vector<float>> seen;
  backward(root, leaves, [&](size_t i) {
    order.push_back(i);
    if (leaves[i].grad().defined()) seen[i] = leaves[i].grad().to_vector<float>();
  });
  for (size_t i = 0; i < leaves.size(); ++i) {
    EXPECT_EQ(seen.contains(i), leaves[i].grad().defined()) << i;
    if (leaves[i].grad().defined()) {
      EXPECT_EQ(seen[i], leaves[i].grad().to_vector<float>()) << i;
    }
  }
  return order;
}

TEST(CompleteGradients, are_announced_in_backward_order) {
  const Tensors leaves{numbers_leaf(2), numbers_leaf(3), numbers_leaf(4)};
  const Tensor root = sum(leaves[0] * leaves[1] * leaves[2]);
  EXPECT_EQ(checked_order(root, leaves).front(), 2u);
}

TEST(CompleteGradients, are_announced_after_every_use_of_a_leaf) {
  const Tensors leaves{numbers_leaf(2), numbers_leaf(3), numbers_leaf(4),
                       numbers_leaf(5)};  // the first is used twice, like a tied embedding, and the last not at all
  const Tensor a = tanh(leaves[0]), b = a * leaves[1], c = b * leaves[2];
  const std::vector<size_t> order = checked_order(sum(c * leaves[0]), leaves);
  EXPECT_EQ(order, (std::vector<size_t>{3, 2, 1, 0}));
  EXPECT_FALSE(leaves[3].grad().defined());
}

TEST(CompleteGradients, are_announced_after_the_checkpoint_that_uses_the_leaf) {
  const Tensors leaves{numbers_leaf(2), numbers_leaf(3), numbers_leaf(4)};
  const Tensor a = leaves[0] * 2.0f;
  const Tensor b = checkpoint([&](const Tensors& in) { return in[0] * leaves[1]; }, {a});
  const std::vector<size_t> order = checked_order(sum(b * leaves[2] * leaves[1]), leaves);
  EXPECT_EQ(order.size(), 3u);
  EXPECT_EQ(order.back(), 0u);  // backward reaches its op after the checkpoint
}

}  // namespace
}  // namespace heed::test
