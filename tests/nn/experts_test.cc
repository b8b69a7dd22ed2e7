// Mixtures of experts against plain loops, their load-balance loss, and training with them.
#include <algorithm>
#include <numeric>

#include "heed/core/dry_run.h"
#include "heed/models/model.h"
#include "heed/nn/feed_forward.h"
#include "heed/ops/ops.h"
#include "tests/nn/plain.h"

namespace heed::test {
namespace {

struct Mixture {
  Params params = Params(1);
  FeedForward block = {};

  explicit Mixture(int64_t experts, int64_t top) {
    block = make_feed_forward(Scope(params, initializer::vit()), {.width = 4, .hidden_width = 6, .experts = experts, .top = top});
    randomize(params);
  }
};

// One token at a time: the softmax of the router, the best experts, their blocks, weighted.
Doubles mixed_by_hand(const NamedDoubles& p, const Doubles& x, int64_t E, int64_t top) {
  Doubles out(x.shape);
  const int64_t D = x.dim(x.shape.rank() - 1);
  for (int64_t t = 0; t < x.size() / D; ++t) {
    Doubles token(Shape{1, D});
    for (int64_t d = 0; d < D; ++d) token[d] = x[t * D + d];
    const Doubles logits = plain::linear(p, "router", token);
    std::vector<double> probabilities;
    double all = 0;
    for (int64_t e = 0; e < E; ++e) all += std::exp(logits[e]);
    for (int64_t e = 0; e < E; ++e) probabilities.push_back(std::exp(logits[e]) / all);
    std::vector<int64_t> order(static_cast<size_t>(E));
    std::iota(order.begin(), order.end(), int64_t{0});
    std::sort(order.begin(), order.end(),
              [&](int64_t a, int64_t b) { return probabilities[static_cast<size_t>(a)] > probabilities[static_cast<size_t>(b)]; });
    double kept = 0;
    for (int64_t i = 0; i < top; ++i) kept += probabilities[static_cast<size_t>(order[static_cast<size_t>(i)])];
    for (int64_t i = 0; i < top; ++i) {
      const int64_t e = order[static_cast<size_t>(i)];
      const std::string name = "experts." + std::to_string(e);
      Doubles middle = plain::linear(p, name + ".up", token);
      for (int64_t j = 0; j < middle.size(); ++j) middle[j] = std::max(middle[j], 0.0);
      const Doubles y = plain::linear(p, name + ".down", middle);
      for (int64_t d = 0; d < D; ++d) out[t * D + d] += probabilities[static_cast<size_t>(e)] / kept * y[d];
    }
  }
  return out;
}

TEST(Experts, match_the_reference) {
  for (const auto& [experts, top] : {std::pair<int64_t, int64_t>{3, 2}, {4, 1}, {2, 2}, {1, 1}}) {
    const Mixture mixture(experts, top);
    const Tensor x = normal_input({2, 5, 4}, 7);
    const Doubles expected = mixed_by_hand(named(mixture.params), Doubles(x), experts, top);
    const std::vector<float> found = mixture.block(x).to_vector<float>();
    for (size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], expected[static_cast<int64_t>(i)], 1e-4) << experts << " " << top;
  }
}

TEST(Experts, have_correct_gradients) {
  const Mixture mixture(3, 2);
  Tensor x = normal_input({6, 4}, 8);
  x.require_grad();
  const Tensor weights = normal_input({6, 4}, 9);
  backward(sum(mixture.block(x) * weights));
  const NoGrad no_grad;
  const auto value = [&] { return static_cast<double>(sum(mixture.block(x) * weights).item()); };
  for (const Parameter& each : mixture.params.all()) {
    const std::vector<float> slope = each.tensor.grad().to_vector<float>(), before = each.tensor.to_vector<float>();
    for (size_t i = 0; i < before.size(); i += 3) {
      const auto moved = [&](float step) {
        std::vector<float> changed = before;
        changed[i] += step;
        copy_into(Tensor::from(changed, each.tensor.shape(), kCpu), each.tensor.detach());
        return value();
      };
      const double difference = (moved(1e-2f) - moved(-1e-2f)) / 2e-2;
      copy_into(Tensor::from(before, each.tensor.shape(), kCpu), each.tensor.detach());
      EXPECT_NEAR(static_cast<double>(slope[i]), difference, 0.02 * std::abs(difference) + 2e-2) << each.name << " " << i;
    }
  }
}

TEST(Experts, balance_is_1_if_uniform_and_larger_otherwise) {
  const Tensor even = Tensor::from(std::vector<float>{5, 0, 0, 0, 5, 0, 0, 0, 5}, {3, 3}, kCpu);
  EXPECT_NEAR(route(even, 1).balance.item(), 1, 1e-6);
  EXPECT_EQ(route(even, 1).chosen, (std::vector<int64_t>{0, 1, 2}));
  const Tensor one = Tensor::from(std::vector<float>{9, 0, 0, 9, 0, 0}, {2, 3}, kCpu);
  EXPECT_NEAR(route(one, 1).balance.item(), 3 * std::exp(9.0) / (std::exp(9.0) + 2), 1e-4);
  EXPECT_THROW(route(one, 4), Error);
}

// For predicted costs: without values, tokens are distributed evenly over the experts.
TEST(Experts, are_chosen_evenly_in_a_dry_run) {
  const DryRun dry;
  EXPECT_EQ(route(Tensor::zeros({3, 4}, DType::f32, kCpu), 2).chosen, (std::vector<int64_t>{0, 1, 2, 3, 0, 1}));
}

// The load-balance loss is added in training only.
TEST(Experts, add_the_balance_loss_in_training) {
  const Json config{{"architectures", {"ViTForImageClassification"}},
                    {"hidden_size", 12},
                    {"num_attention_heads", 2},
                    {"num_hidden_layers", 2},
                    {"intermediate_size", 8},
                    {"image_size", 16},
                    {"patch_size", 4},
                    {"num_labels", 3},
                    {"heed", {{"experts", {{"count", 3}, {"top", 2}, {"balance", 0.5}}}}}};
  const Model model = make_model(config);
  const TensorMap inputs{{"pixel_values", normal_input({4, 3, 16, 16}, 3)},
                         {"labels", Tensor::from(std::vector<int64_t>{0, 1, 2, 0}, {4}, kCpu)}};
  Rng rng(1);
  const Tensor trained = model(inputs, {.mode = training_with(rng)}).at("loss");
  const float plain_loss = model(inputs).at("loss").item();
  EXPECT_GT(trained.item(), plain_loss + 2 * 0.5f * 0.99f);  // two layers, 1 or more each
  backward(trained);
  for (const Parameter& each : model.params().all()) EXPECT_TRUE(each.tensor.grad().defined()) << each.name;
  Json wrong = config;
  wrong["heed"]["experts"]["top"] = 4;
  EXPECT_THROW(make_model(wrong), FileError);
  wrong["heed"]["experts"] = {{"cuont", 3}};
  EXPECT_THROW(make_model(wrong), FileError);
}

}  // namespace
}  // namespace heed::test
