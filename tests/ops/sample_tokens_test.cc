// Tokens sampled on the device are those of the sampler on the host.
#include "heed/ops/sample_tokens.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "heed/models/sample.h"
#include "tests/expect_error.h"
#include "tests/ops/cases.h"

namespace heed::test {
namespace {

constexpr int64_t kDraws = 5, kRows = 3, kPrompt = 4;

// Samples kDraws times from the same logits. -> (kRows, kDraws)
std::vector<int64_t> drawn_on_device(const Tensor& logits, const Sampling& s) {
  const WrittenTokens written{.last = Tensor::zeros({kRows}, DType::i64, test_device()),
                              .lengths = Tensor::full({kRows}, kPrompt - 1, DType::i64, test_device()),
                              .all = Tensor::zeros({kRows, kPrompt + kDraws}, DType::i64, test_device())};
  for (int64_t i = 0; i < kDraws; ++i)
    append_sampled_tokens(
        logits, {.temperature = s.temperature, .top_k = s.top_k, .top_p = s.top_p, .min_p = s.min_p, .seed = s.seed, .first = kPrompt},
        written);
  return slice(written.all, 1, kPrompt, kPrompt + kDraws).to_vector<int64_t>();
}

std::vector<int64_t> drawn_on_host(const Tensor& logits, const Sampling& sampling) {
  const Chooser choose = make_sampler(sampling);
  const std::vector<float> numbers = logits.to_vector<float>();
  const int64_t V = logits.size(1);
  std::vector<int64_t> out;
  for (int64_t b = 0; b < kRows; ++b)
    for (int64_t i = 0; i < kDraws; ++i) {
      std::vector<float> row(numbers.begin() + b * V, numbers.begin() + (b + 1) * V);
      out.push_back(choose(row, b, i));
    }
  return out;
}

// Rounded to integers, logits have many ties.
Tensor scores_of(int64_t V, bool ties) {
  std::vector<float> values = normal_input({kRows, V}, 1).to_vector<float>();
  for (float& value : values) value = ties ? std::round(2 * value) : 3 * value;
  return Tensor::from(values, {kRows, V}, test_device());
}

// Exponentials of a GPU differ in their last bits, so a sample at the boundary between two tokens may differ.
TEST(SampleTokens, match_the_sampler_on_the_host) {
  const NoGrad quiet;
  int64_t draws = 0, different = 0;
  const Sampling all{.top_k = 0};
  std::vector<Sampling> cases(9, all);
  cases[1].temperature = 0.7f;
  cases[2].top_k = 5;
  cases[3].top_k = 1;
  cases[4].top_p = 0.6f;
  cases[5].top_p = 0;
  cases[6].min_p = 0.2f;
  cases[7] = {.temperature = 1.3f, .top_k = 50, .top_p = 0.9f, .min_p = 0.01f, .seed = 7};
  cases[8].seed = 123456789;
  for (const int64_t V : {1, 7, 1000, 5003})
    for (const bool ties : {false, true})
      for (size_t i = 0; i < cases.size(); ++i) {
        const Tensor logits = scores_of(V, ties);
        const std::vector<int64_t> device = drawn_on_device(logits, cases[i]), host = drawn_on_host(logits, cases[i]);
        if (test_device() == kCpu) {
          EXPECT_EQ(device, host) << V << ", case " << i << (ties ? ", ties" : "");
        }
        for (size_t at = 0; at < host.size(); ++at) different += device.at(at) != host[at];
        draws += std::ssize(host);
      }
  EXPECT_LE(different, draws / 500);
}

// GPUs order scores by their keys.
TEST(SampleTokens, keys_have_the_order_of_scores) {
  const auto key = [](float score) { return AppendSampledTokens::key_of(std::bit_cast<uint32_t>(score)); };
  const std::vector<float> scores{-HUGE_VALF, -1e30f, -1, -1e-45f, 0, 1e-45f, 1, 1e30f, HUGE_VALF};
  for (size_t i = 1; i < scores.size(); ++i) EXPECT_LT(key(scores[i - 1]), key(scores[i])) << scores[i];
  EXPECT_EQ(key(-0.0f), key(0.0f));
}

// Fractions of almost 1, of one half and of 0.
TEST(SampleTokens, fractions_of_large_totals_are_exact) {
  for (const int size : {1, 31, 32, 33, 41, 53, 57, 62}) {
    const uint64_t total = (uint64_t{1} << size) - 1, unit = uint64_t{1} << 53;
    EXPECT_EQ(AppendSampledTokens::share_of(total, unit - 1), total - (total + unit - 1) / unit) << size;
    EXPECT_EQ(AppendSampledTokens::share_of(total, unit / 2), total / 2) << size;
    EXPECT_EQ(AppendSampledTokens::share_of(total, 0), 0U) << size;
  }
}

TEST(SampleTokens, report_a_full_sequence) {
  if (test_device() != kCpu) GTEST_SKIP() << "lengths on a GPU are not read back";
  const WrittenTokens written{.last = Tensor::zeros({1}, DType::i64, kCpu),
                              .lengths = Tensor::full({1}, 3, DType::i64, kCpu),
                              .all = Tensor::zeros({1, 4}, DType::i64, kCpu)};
  expect_error([&] { append_sampled_tokens(Tensor::zeros({1, 9}, kCpu), {}, written); }, "position 4, there is room for 4 tokens");
}

TEST(SampleTokens, report_nonfinite_logits) {
  std::vector<float> values(static_cast<size_t>(kRows * 100), 0.5f);
  values[30] = NAN;
  values[130] = HUGE_VALF;
  const std::vector<int64_t> drawn = drawn_on_device(Tensor::from(values, {kRows, 100}, test_device()), {});
  EXPECT_EQ(drawn[0], -1);
  EXPECT_EQ(drawn[kDraws], -1);
  EXPECT_GE(drawn[2 * kDraws], 0);
  // Divided by such a temperature they overflow.
  const Tensor large = Tensor::full({kRows, 100}, 20, DType::f32, test_device());
  EXPECT_EQ(drawn_on_device(large, {.temperature = 1e-38f})[0], -1);
}

}  // namespace
}  // namespace heed::test
