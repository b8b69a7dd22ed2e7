// Sampling: which tokens can be drawn and how often, against a simple implementation of the steps of `transformers`.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "heed/core/parallel.h"
#include "heed/models/generate.h"
#include "heed/ops/ops.h"
#include "tests/expect_error.h"
#include "tests/io/files.h"

namespace heed::test {
namespace {

using Numbers = std::vector<double>;
constexpr double kNever = -std::numeric_limits<double>::infinity();

Numbers probabilities(const Numbers& scores) {
  const double best = *std::max_element(scores.begin(), scores.end());
  Numbers out;
  for (double score : scores) out.push_back(std::exp(score - best));
  const double total = std::accumulate(out.begin(), out.end(), 0.0);
  for (double& p : out) p /= total;
  return out;
}

// Temperature, top k, top p, min p, in this order, each applied to the remaining scores.
Numbers expected_probabilities(const std::vector<float>& logits, const Sampling& sampling) {
  Numbers scores;
  for (float logit : logits) scores.push_back(static_cast<double>(logit / sampling.temperature));
  std::vector<size_t> order(scores.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t i, size_t j) { return scores[i] < scores[j]; });
  if (sampling.top_k > 0 && sampling.top_k < std::ssize(scores)) {
    const double least = scores[order[order.size() - static_cast<size_t>(sampling.top_k)]];
    for (double& score : scores) score = score < least ? kNever : score;
  }
  if (sampling.top_p < 1) {
    const Numbers p = probabilities(scores);
    double sum = 0;
    for (size_t i = 0; i + 1 < order.size(); ++i) {
      sum += p[order[i]];
      if (sum <= 1 - static_cast<double>(sampling.top_p)) scores[order[i]] = kNever;
    }
  }
  const Numbers p = probabilities(scores);
  const double best = *std::max_element(p.begin(), p.end());
  for (size_t i = 0; i < p.size(); ++i)
    if (p[i] < static_cast<double>(sampling.min_p) * best) scores[i] = kNever;
  return probabilities(scores);
}

// Counts of drawn tokens against probabilities: a chi-square test, and no token of probability 0.
void expect_drawn(const std::map<int64_t, int64_t>& counts, const Numbers& p, int64_t draws) {
  double chi = 0, freedom = -1;
  for (size_t i = 0; i < p.size(); ++i) {
    const auto found = counts.find(static_cast<int64_t>(i));
    const double drawn = found == counts.end() ? 0 : static_cast<double>(found->second), expected = p[i] * static_cast<double>(draws);
    EXPECT_TRUE(p[i] > 0 || drawn == 0) << "token " << i;
    if (expected < 1) continue;
    chi += (drawn - expected) * (drawn - expected) / expected;
    ++freedom;
  }
  EXPECT_LT(chi, freedom + 4 * std::sqrt(2 * freedom) + 4);  // four deviations
}

const std::vector<float> kScores{1.5f, -0.25f, 3.0f, 1.5f, 0.0f, -std::numeric_limits<float>::infinity(), 2.0f, 1.5f, -2.0f, 0.5f, 2.0f};

TEST(Sample, draws_each_token_as_often_as_it_should) {
  constexpr int64_t draws = 20'000;
  for (const Sampling& sampling :
       {Sampling{.top_k = 0}, Sampling{}, Sampling{.temperature = 0.5f}, Sampling{.temperature = 2.5f, .top_k = 4}, Sampling{.top_k = 1},
        Sampling{.top_k = 0, .top_p = 0.7f}, Sampling{.top_k = 0, .top_p = 0.93f}, Sampling{.top_k = 0, .top_p = 0},
        Sampling{.temperature = 0.8f, .top_k = 5, .top_p = 0.8f, .min_p = 0.2f}, Sampling{.top_k = 0, .min_p = 0.3f},
        Sampling{.top_k = 0, .min_p = 1}}) {
    SCOPED_TRACE(testing::Message() << sampling.temperature << " " << sampling.top_k << " " << sampling.top_p << " " << sampling.min_p);
    const Chooser choose = make_sampler(sampling);
    std::map<int64_t, int64_t> counts;
    for (int64_t i = 0; i < draws; ++i) {
      std::vector<float> scores = kScores;
      ++counts[choose(scores, i % 7, i / 7)];
    }
    expect_drawn(counts, expected_probabilities(kScores, sampling), draws);
  }
}

// A large vocabulary: likely tokens are drawn, tokens of probability 0 are not.
TEST(Sample, keeps_the_same_tokens_of_a_large_vocabulary) {
  Rng rng(3);
  for (const float deviation : {0.01f, 1.0f, 6.0f}) {
    std::vector<float> scores = random_normal({3001}, 0, deviation, rng, kCpu).to_vector<float>();
    scores[7] = -1e4f;
    scores[8] = scores[9] = scores[10];
    for (const Sampling& sampling :
         {Sampling{.top_k = 300, .top_p = 0.97f}, Sampling{.top_k = 0, .top_p = 0.5f}, Sampling{.top_k = 0, .top_p = 0.999f}}) {
      const Numbers p = expected_probabilities(scores, sampling);
      std::vector<bool> drawn(p.size());
      const Chooser choose = make_sampler(sampling);
      for (int64_t i = 0; i < 500; ++i) {
        std::vector<float> copy = scores;
        drawn[static_cast<size_t>(choose(copy, 0, i))] = true;
      }
      for (size_t i = 0; i < p.size(); ++i) {
        EXPECT_TRUE(p[i] > 0 || !drawn[i]) << i;
        EXPECT_TRUE(drawn[i] || p[i] < 0.05) << i;
      }
    }
  }
}

TensorMap prompts(std::vector<int64_t> tokens, int64_t B) {
  return {{"input_ids", Tensor::from(tokens, {B, std::ssize(tokens) / B}, kCpu)}};
}

TEST(Sample, a_model_draws_by_its_own_probabilities) {
  const NoGrad no_grad;
  const Model model = load(fixture("gpt2-lm"));
  GenerationOptions options;
  options.max_new_tokens = 1;
  options.sample = true;
  options.sampling = {.temperature = 1.5f, .top_k = 12, .top_p = 0.95f, .seed = 11};
  options.count = 1000;
  const TensorMap inputs = prompts({5, 6, 7}, 1);
  const Tensor logits = model(inputs)["logits"];
  std::map<int64_t, int64_t> counts;
  for (int64_t token : slice(generate(model, inputs, options), 1, 3, 4).to_vector<int64_t>()) ++counts[token];
  expect_drawn(counts, expected_probabilities(slice(logits, 1, 2, 3).to_vector<float>(), options.sampling), options.count);
}

TEST(Sample, depends_on_the_seed_alone) {
  const Model model = load(fixture("gpt2-lm"));
  GenerationOptions options;
  options.max_new_tokens = 12;
  options.sample = true;
  options.sampling.temperature = 2;
  options.count = 2;
  const TensorMap two = prompts({5, 6, 7, 9, 8, 7}, 2), one = prompts({5, 6, 7}, 1);
  const int before = thread_count();
  const Tensor first = generate(model, two, options);
  for (const int threads : {1, 2, 7}) {
    set_thread_count(threads);
    expect_same(generate(model, two, options), first);
  }
  set_thread_count(before);
  expect_same(generate(model, one, options), contiguous(slice(first, 0, 0, 2)));  // independent of the batch
  const std::vector<int64_t> tokens = first.to_vector<int64_t>();
  EXPECT_FALSE(std::equal(tokens.begin(), tokens.begin() + 15, tokens.begin() + 15));
  options.sampling.seed = 2;
  EXPECT_NE(generate(model, two, options).to_vector<int64_t>(), tokens);
}

TEST(Sample, reports_bad_options) {
  expect_error([] { make_sampler({.temperature = 0}); }, "sample: a temperature of 0, expected one above 0");
  expect_error([] { make_sampler({.top_k = -1}); }, "sample: a top_k of -1, expected 0 or more");
  expect_error([] { make_sampler({.top_p = 1.5f}); }, "sample: a top_p of 1.5, expected one from 0 to 1");
  expect_error([] { make_sampler({.min_p = -1}); }, "sample: a min_p of -1, expected one from 0 to 1");
  std::vector<float> none(3, -std::numeric_limits<float>::infinity());
  expect_error([&] { make_sampler({})(none, 0, 0); }, "generate: the largest score is -inf, expected a number");
}

TEST(GenerationConfig, is_honoured_or_refused_by_name) {
  const GenerationOptions options = generation_options(Json::parse(R"({"do_sample": true, "temperature": 0.6, "top_p": 0.9, "min_p": 0.1,
      "num_return_sequences": 3, "max_new_tokens": 7, "max_length": 50, "min_new_tokens": 2, "early_stopping": "never", "length_penalty": 0.5,
      "num_beams": 4, "renormalize_logits": true, "eos_token_id": [1, 2]})"),
                                                       "file");
  EXPECT_TRUE(options.sample && options.renormalize && options.early_stopping == EarlyStopping::never);
  EXPECT_EQ(options.sampling.temperature, 0.6f);
  EXPECT_EQ(options.sampling.top_k, 50);
  EXPECT_EQ(options.sampling.top_p, 0.9f);
  EXPECT_EQ(options.sampling.min_p, 0.1f);
  EXPECT_EQ(std::vector<int64_t>({options.count, options.max_length, options.max_new_tokens, options.min_new_tokens, options.beams}),
            std::vector<int64_t>({3, 0, 7, 2, 4}));
  EXPECT_EQ(options.length_penalty, 0.5f);
  EXPECT_EQ(generation_options(Json::object(), "file").max_new_tokens, 20);
  EXPECT_EQ(generation_options(Json{{"max_length", 30}}, "file").max_length, 30);
  EXPECT_EQ(generation_options(Json{{"pad_token_id", -1}}, "file").pad, -1);  // as in the first conversions of Llama
  EXPECT_EQ(generation_options(Json{{"early_stopping", true}}, "file").early_stopping, EarlyStopping::yes);
  generation_options(Json{{"typical_p", 0.5}, {"temperature", 0}}, "file");  // ignored without do_sample
  for (const auto& each : std::vector<std::pair<std::string, std::string>>{
           {R"({"do_sample": true, "typical_p": 0.5})", "file: typical_p is \"0.5\", expected 1"},
           {R"({"do_sample": true, "eta_cutoff": 0.1})", "file: eta_cutoff is"},
           {R"({"do_sample": true, "temperature": 0})", "file: temperature is \"0\", expected a number above 0"},
           {R"({"do_sample": true, "top_p": 2})", "file: top_p is \"2\", expected a number from 0 to 1"},
           {R"({"do_sample": "yes"})", "file: do_sample is"},
           {R"({"early_stopping": "soon"})", "file: early_stopping is"},
           {R"({"num_beams": 0})", "file: num_beams is \"0\", expected a whole number of 1 or more"},
           {R"({"num_beam_groups": 2})", "file: num_beam_groups is \"2\", expected 1"},
           {R"({"diversity_penalty": 0.5})", "file: diversity_penalty is"},
           {R"({"penalty_alpha": 0.6})", "file: penalty_alpha is"},
           {R"({"repetition_penalty": 0})", "file: repetition_penalty is"},
           {R"({"stop_strings": ["a"]})", "file: stop_strings is"}})
    expect_error<FileError>([&] { generation_options(Json::parse(each.first), "file"); }, each.second);
}

}  // namespace
}  // namespace heed::test
