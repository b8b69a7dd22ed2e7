// Decoding that stays on its device generates the same tokens as decoding step by step.
#include "heed/models/token_steps.h"

#include <gtest/gtest.h>

#include "heed/models/generate.h"
#include "heed/models/generate_rules.h"
#include "tests/expect_error.h"
#include "tests/io/files.h"
#include "tests/test_device.h"

namespace heed::test {
namespace {

using Row = std::vector<int64_t>;

Model packed_on(Device device, const std::string& name) {
  return load(fixture(name), {.names = {.device = device}, .weights = Weights::packed});
}

Tensor prompts_of(const std::vector<Row>& rows) { return tensor_of(rows); }

const std::vector<Row> kOnePrompt{{5, 6, 7, 8}}, kThreePrompts{{5, 6, 7}, {9, 1, 2}, {11, 12, 13}};

// Skips where the device is the CPU, which decodes step by step.
class TokenStepsTest : public testing::Test {
 protected:
  void SetUp() override {
    if (test_device() == kCpu) GTEST_SKIP() << "needs a GPU, or one that is emulated";
  }
};

std::shared_ptr<TokenSteps> steps_of(const Model& model, const Tensor& prompts, const TokenStepsOptions& options) {
  const DecodeBatch batch = prefill(model, {{"input_ids", prompts}}, {});
  return model.decoder().on_device(batch.state, batch.logits, options);
}

TEST_F(TokenStepsTest, generate_the_tokens_of_the_cpu) {
  const NoGrad quiet;
  for (const char* name : {"gpt2-lm", "gpt2-unscaled", "mistral-window"})
    for (const std::vector<Row>& rows : {kOnePrompt, kThreePrompts}) {
      SCOPED_TRACE(name);
      const Model model = packed_on(test_device(), name), reference = packed_on(kCpu, name);
      const Tensor prompts = prompts_of(rows);
      ASSERT_TRUE(steps_of(model, prompts, {.max_length = 30, .precision = DType::f32}));
      GenerationOptions options{.max_length = 30, .precision = DType::f32};
      const Row expected = generate(reference, {{"input_ids", prompts}}, options).to_vector<int64_t>();
      EXPECT_EQ(generate(model, {{"input_ids", prompts}}, options).to_vector<int64_t>(), expected);
      options.end = {expected[static_cast<size_t>(std::ssize(rows[0]) + 2)]};
      options.pad = 1;
      const Row ended = generate(reference, {{"input_ids", prompts}}, options).to_vector<int64_t>();
      EXPECT_EQ(generate(model, {{"input_ids", prompts}}, options).to_vector<int64_t>(), ended);
      std::vector<Row> reported;
      options.on_tokens = [&](std::span<const int64_t> tokens) { reported.emplace_back(tokens.begin(), tokens.end()); };
      EXPECT_EQ(generate(model, {{"input_ids", prompts}}, options).to_vector<int64_t>(), ended);
      EXPECT_EQ(std::ssize(reported), std::ssize(ended) / std::ssize(rows) - std::ssize(rows[0]));
    }
}

TEST_F(TokenStepsTest, sample_the_tokens_of_the_cpu) {
  const NoGrad quiet;
  const Model model = packed_on(test_device(), "gpt2-lm"), reference = packed_on(kCpu, "gpt2-lm");
  GenerationOptions options{.max_length = 40, .sample = true, .count = 2, .precision = DType::f32};
  for (const Sampling& sampling : {Sampling{}, Sampling{.temperature = 0.6f, .top_k = 0, .top_p = 0.8f, .seed = 3}}) {
    options.sampling = sampling;
    const TensorMap inputs{{"input_ids", prompts_of(kThreePrompts)}};
    EXPECT_EQ(generate(model, inputs, options).to_vector<int64_t>(), generate(reference, inputs, options).to_vector<int64_t>());
  }
}

// bf16 rounds weights, keys and values by up to 2^-9.
TEST_F(TokenStepsTest, compute_logits_in_bf16) {
  const NoGrad quiet;
  for (const char* name : {"gpt2-lm", "mistral-window"}) {
    const Model model = packed_on(test_device(), name);
    const Tensor prompts = prompts_of(kThreePrompts);
    const std::shared_ptr<TokenSteps> exact = steps_of(model, prompts, {.max_length = 30, .precision = DType::f32}),
                                      narrow = steps_of(model, prompts, {.max_length = 30});
    ASSERT_TRUE(exact && narrow);
    EXPECT_EQ(exact->next(1), narrow->next(1));  // from the prompt
    exact->next(1);
    narrow->next(1);
    const std::vector<float> wanted = exact->logits().to_vector<float>(), got = narrow->logits().to_vector<float>();
    float largest = 0, apart = 0;
    for (size_t i = 0; i < wanted.size(); ++i) {
      largest = std::max(largest, std::abs(wanted[i]));
      apart = std::max(apart, std::abs(wanted[i] - got[i]));
    }
    EXPECT_LE(apart, 0.02f * largest) << name;
    EXPECT_GT(apart, 0) << name;
  }
}

TEST_F(TokenStepsTest, are_null_for_unsupported_models) {
  const NoGrad quiet;
  const Tensor prompts = prompts_of(kOnePrompt);
  EXPECT_FALSE(steps_of(packed_on(test_device(), "llama-grouped"), prompts, {.max_length = 20}));  // heads of width 6
  const Model model = packed_on(test_device(), "gpt2-lm");
  EXPECT_FALSE(steps_of(model, prompts, {.max_length = 66}));  // 64 positions
  EXPECT_FALSE(steps_of(model, prompts_of(std::vector<Row>(9, {1, 2})), {.max_length = 20}));
  EXPECT_FALSE(steps_of(load(fixture("gpt2-lm"), {.names = {.device = test_device()}}), prompts, {.max_length = 20}));  // not packed
  expect_error([&] { generate(model, {{"input_ids", prompts}}, {.max_length = 70}); }, "model: 65 tokens, expected at most 64");
}

}  // namespace
}  // namespace heed::test
