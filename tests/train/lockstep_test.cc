// Shards of a batch that run in lockstep have the statistics and the gradients of the whole batch.
#include "heed/train/lockstep.h"

#include <gtest/gtest.h>

#include "heed/core/autograd.h"
#include "heed/ops/ops.h"
#include "tests/test_device.h"

namespace heed::test {
namespace {

struct NormalisedBatch {
  std::vector<float> y, dx, dw, db, mean, variance;
};

struct NormLayer {
  Tensor w, b, mean, variance;
  NormLayer()
      : w(Tensor::from(std::vector<float>{1, 2, -1}, {3}, test_device()).require_grad()),
        b(Tensor::from(std::vector<float>{0, 1, 2}, {3}, test_device()).require_grad()),
        mean(Tensor::zeros({3}, test_device())),
        variance(Tensor::ones({3}, test_device())) {}
  Tensor operator()(const Tensor& x) const { return batch_norm(x, w, b, {.running_mean = mean, .running_variance = variance}); }
};

void append_numbers(std::vector<float>& to, const Tensor& x) {
  const std::vector<float> values = x.to_vector<float>();
  to.insert(to.end(), values.begin(), values.end());
}

void expect_close_numbers(const std::vector<float>& a, const std::vector<float>& b, const char* what) {
  ASSERT_EQ(a.size(), b.size()) << what;
  for (size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 2e-5 * (1 + std::abs(b[i]))) << what << " " << i;
}

// Two norms with a tanh between them. x, weights: (7, 3, 5); cuts: where the shards begin, and the end
NormalisedBatch normalised(const Tensor& x, const Tensor& weights, const std::vector<int64_t>& cuts) {
  const NormLayer first, second;
  const size_t count = cuts.size() - 1;
  NormalisedBatch out;
  std::vector<Tensor> inputs, outputs(count);
  for (size_t s = 0; s < count; ++s) inputs.push_back(contiguous(slice(x, 0, cuts[s], cuts[s + 1])).require_grad());
  Lockstep lockstep(
      world(), [](size_t) {}, [](size_t) {});
  lockstep.run(count, [&](size_t s, BatchShards& shards) {
    const ShardScope scope(count > 1 ? &shards : nullptr);
    outputs[s] = second(tanh(first(inputs[s])));
    backward(sum(outputs[s] * slice(weights, 0, cuts[s], cuts[s + 1])));
  });
  for (size_t s = 0; s < count; ++s) append_numbers(out.y, outputs[s]), append_numbers(out.dx, inputs[s].grad());
  for (const NormLayer* layer : {&first, &second}) {
    append_numbers(out.dw, layer->w.grad());
    append_numbers(out.db, layer->b.grad());
    append_numbers(out.mean, layer->mean);
    append_numbers(out.variance, layer->variance);
  }
  return out;
}

TEST(Lockstep, batch_norm_of_shards_is_that_of_the_batch) {
  Rng rng(3);
  const Tensor x = random_normal({7, 3, 5}, 4, 2, rng, test_device()), weights = random_normal({7, 3, 5}, 0, 1, rng, test_device());
  const NormalisedBatch whole = normalised(x, weights, {0, 7});
  for (const std::vector<int64_t>& cuts : {std::vector<int64_t>{0, 1, 4, 7}, {0, 3, 7}}) {
    const NormalisedBatch shards = normalised(x, weights, cuts);
    expect_close_numbers(shards.y, whole.y, "y");
    expect_close_numbers(shards.dx, whole.dx, "dx");
    expect_close_numbers(shards.dw, whole.dw, "dw");
    expect_close_numbers(shards.db, whole.db, "db");
    expect_close_numbers(shards.mean, whole.mean, "mean");
    expect_close_numbers(shards.variance, whole.variance, "variance");
  }
}

TEST(Lockstep, gives_every_shard_the_numbers_of_all_and_changes_turns) {
  std::vector<size_t> turns;
  size_t inside = 0;
  Lockstep lockstep(
      world(), [&](size_t shard) { turns.push_back(shard), ++inside; }, [&](size_t) { --inside; });
  lockstep.run(3, [&](size_t shard, BatchShards& shards) {
    EXPECT_EQ(inside, 1u);
    EXPECT_EQ(shards.is_first_here(), shard == 0);
    const double number = static_cast<double>(shard);
    EXPECT_EQ(shards.all_of({number, 7}), (std::vector<std::vector<double>>{{0, 7}, {1, 7}, {2, 7}}));
    if (shard == 2) return;
    EXPECT_EQ(shards.all_of({10 * number}), (std::vector<std::vector<double>>{{0}, {10}}));  // the third is done
  });
  EXPECT_EQ(turns, (std::vector<size_t>{0, 1, 2, 0, 1, 2, 0, 1}));
  EXPECT_EQ(inside, 0u);
}

TEST(Lockstep, ends_all_shards_if_one_fails) {
  Lockstep lockstep(
      world(), [](size_t) {}, [](size_t) {});
  int ended = 0;
  const auto run = [&] {
    lockstep.run(3, [&](size_t shard, BatchShards& shards) {
      struct AtEnd {
        int& count;
        ~AtEnd() { ++count; }
      } const at_end{ended};
      shards.all_of({1});
      check(shard != 1, "shard 1 fails");
      shards.all_of({2});
    });
  };
  try {
    run();
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "shard 1 fails");
  }
  EXPECT_EQ(ended, 3);
}

}  // namespace
}  // namespace heed::test
