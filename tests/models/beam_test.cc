// Beam search finds the same sequences as `transformers`, for every language model of tests/fixtures.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "heed/core/parallel.h"
#include "heed/models/beam.h"
#include "heed/models/parity.h"
#include "heed/ops/ops.h"
#include "tests/expect_error.h"
#include "tests/io/files.h"
#include "tests/models/fixtures.h"

namespace heed::test {
namespace {

struct Fixture {
  explicit Fixture(const std::string& name)
      : model(load(kFixtures / name)), file(Safetensors::open(kFixtures / name / "beams.safetensors")) {
    inputs = inputs_in(file);
  }
  // generation_config.json, updated with the keys of a case.
  GenerationOptions options(const std::string& keys) const {
    Json json = model.generation();
    json.update(Json::parse(keys));
    return generation_options(json, "case");
  }
  Model model;
  Safetensors file;
  TensorMap inputs;
};

class BeamParity : public testing::TestWithParam<std::string> {};

TEST_P(BeamParity, tokens_and_scores_are_the_same) {
  const Fixture fixture(GetParam());
  EXPECT_GE(fixture.file.metadata().size(), 9u);
  for (const auto& [number, keys] : fixture.file.metadata()) {
    SCOPED_TRACE(keys);
    const Beams found = beam_search(fixture.model, fixture.inputs, fixture.options(keys));
    expect_same(found.tokens, converted(fixture.file.tensor(number + ".tokens"), DType::i64));
    const std::vector<float> scores = fixture.file.tensor(number + ".scores").to_vector<float>();
    ASSERT_EQ(found.scores.size(), scores.size());
    for (size_t i = 0; i < scores.size(); ++i) EXPECT_NEAR(found.scores[i], scores[i], 1e-5f * (1 + std::abs(scores[i])));
  }
}

INSTANTIATE_TEST_SUITE_P(Fixtures, BeamParity, testing::ValuesIn(fixtures_with("beams.safetensors")), [](const auto& test) {
  std::string name = test.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

// Without a repetition penalty, which beam search applies to log-probabilities and greedy decoding to logits.
TEST_P(BeamParity, one_beam_is_greedy) {
  const Fixture fixture(GetParam());
  GenerationOptions options = fixture.options(fixture.file.metadata().at("1"));
  options.beams = options.count = 1;
  options.repetition_penalty = 1;
  options.early_stopping = EarlyStopping::yes;
  options.pad = 1;  // beam search treats 0 as no padding token
  expect_same(beam_search(fixture.model, fixture.inputs, options).tokens, generate(fixture.model, fixture.inputs, options));
}

TEST_P(BeamParity, depends_neither_on_the_batch_nor_on_threads) {
  const Fixture fixture(GetParam());
  GenerationOptions options = fixture.options(fixture.file.metadata().at("4"));
  options.end = {};  // all texts have the same length
  options.forced_last = {};
  const int before = thread_count();
  const Beams all = beam_search(fixture.model, fixture.inputs, options);
  for (const int threads : {1, 2, 7}) {
    set_thread_count(threads);
    const Beams again = beam_search(fixture.model, fixture.inputs, options);
    expect_same(again.tokens, all.tokens);
    EXPECT_EQ(again.scores, all.scores);
  }
  set_thread_count(before);
  for (int64_t b = 0; b < fixture.inputs.at("input_ids").size(0); ++b) {
    TensorMap one;
    for (const auto& [name, tensor] : fixture.inputs) one[name] = slice(tensor, 0, b, b + 1);
    expect_same(contiguous(slice(all.tokens, 0, b * options.count, (b + 1) * options.count)),
                beam_search(fixture.model, one, options).tokens);
  }
}

// As many beams as tokens find the best of all sequences of two tokens, which are enumerated without a cache.
TEST(BeamSearch, enough_beams_find_the_best_text) {
  const NoGrad no_grad;
  const Model model = load(kFixtures / "gpt2-ends");
  const std::vector<int64_t> prompt{5, 9, 2};
  constexpr int64_t V = 61;
  GenerationOptions options;
  options.max_new_tokens = 2;
  options.beams = V;
  options.count = 3;
  options.length_penalty = 0;
  const Beams found = beam_search(model, {{"input_ids", Tensor::from(prompt, {1, 3}, kCpu)}}, options);
  const auto after = [&](const std::vector<int64_t>& tokens) {
    const Tensor logits = model({{"input_ids", Tensor::from(tokens, {1, std::ssize(tokens)}, kCpu)}})["logits"];
    return log_softmax(slice(logits, 1, std::ssize(tokens) - 1, std::ssize(tokens))).to_vector<float>();
  };
  std::vector<std::pair<float, std::vector<int64_t>>> all;
  const std::vector<float> first = after(prompt);
  for (int64_t i = 0; i < V; ++i) {
    std::vector<int64_t> text = prompt;
    text.push_back(i);
    const std::vector<float> second = after(text);
    for (int64_t j = 0; j < V; ++j) all.push_back({first[static_cast<size_t>(i)] + second[static_cast<size_t>(j)], {5, 9, 2, i, j}});
  }
  std::sort(all.begin(), all.end(), std::greater<>());
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_NEAR(found.scores[i], all[i].first, 1e-4f);
    EXPECT_EQ(slice(found.tokens, 0, static_cast<int64_t>(i), static_cast<int64_t>(i) + 1).to_vector<int64_t>(), all[i].second);
  }
}

TEST(BeamSearch, reports_bad_options) {
  const Model model = load(kFixtures / "gpt2-ends");
  const TensorMap inputs{{"input_ids", Tensor::from(std::vector<int64_t>{5, 9}, {1, 2}, kCpu)}};
  GenerationOptions options;
  options.beams = 3;
  options.count = 4;
  expect_error([&] { generate(model, inputs, options); }, "generate: the best 4 of 3 beams");
  options.count = 1;
  options.sample = true;
  expect_error([&] { generate(model, inputs, options); }, "generate: 3 beams and sampling (do_sample, num_beams), expected one of them");
  options.sample = false;
  options.max_length = 2;
  expect_error([&] { generate(model, inputs, options); }, "generate: a prompt of 2 tokens, expected less than the max_length of 2");
}

// If rules ban every token, or all but a few, scores tie at -inf and -1e9. Expected tokens and scores are from transformers 5.22.
struct Banned {
  const char* keys;
  std::vector<int64_t> allowed;  // all others are in suppress_tokens
  std::vector<std::vector<int64_t>> tokens;
  std::vector<float> scores;
};

TEST(BeamSearch, banned_tokens_give_the_results_of_transformers) {
  const Model model = load(kFixtures / "gpt2-ends");
  const TensorMap inputs{{"input_ids", Tensor::from(std::vector<int64_t>{5, 9, 2, 7, 1, 3}, {2, 3}, kCpu)},
                         {"attention_mask", Tensor::from(std::vector<int64_t>(6, 1), {2, 3}, kCpu)}};  // 1 is the padding token
  const float low = -1e9f, none = std::numeric_limits<float>::quiet_NaN();
  const Banned cases[] = {
      {R"({"num_beams": 2})", {}, {{5, 9, 2}, {7, 1, 3}}, {low, low}},
      {R"({"num_beams": 3, "num_return_sequences": 3, "early_stopping": true})",
       {},
       {{5, 9, 2}, {5, 9, 2}, {5, 9, 2}, {7, 1, 3}, {7, 1, 3}, {7, 1, 3}},
       {low, low, low, low, low, low}},
      {R"({"num_beams": 3, "early_stopping": "never", "length_penalty": 2.0})", {}, {{5, 9, 2}, {7, 1, 3}}, {low, low}},
      {R"({"num_beams": 3, "num_return_sequences": 3})",
       {7},
       {{5, 9, 2, 7, 7, 7, 7, 7},
        {5, 9, 2, 7, 7, 7, 7, 7},
        {5, 9, 2, 7, 7, 7, 7, 7},
        {7, 1, 3, 7, 7, 7, 7, 7},
        {7, 1, 3, 7, 7, 7, 7, 7},
        {7, 1, 3, 7, 7, 7, 7, 7}},
       {-4.69246f, -200000000.0f, -200000000.0f, -4.663f, -200000000.0f, -200000000.0f}},
      {R"({"num_beams": 3, "num_return_sequences": 3})",
       {7, 8},
       {{5, 9, 2, 8, 8, 8, 8, 8},
        {5, 9, 2, 8, 8, 8, 8, 7},
        {5, 9, 2, 8, 8, 8, 7, 7},
        {7, 1, 3, 8, 8, 8, 8, 8},
        {7, 1, 3, 8, 8, 8, 7, 8},
        {7, 1, 3, 7, 8, 8, 8, 8}},
       {-3.26488f, -3.72033f, -3.85709f, -3.37562f, -3.87089f, -3.88769f}},
      {R"({"num_beams": 3, "num_return_sequences": 3, "length_penalty": -1.0})",
       {7, 8},
       {{5, 9, 2, 8, 8, 8, 8, 8},
        {5, 9, 2, 8, 8, 8, 8, 7},
        {5, 9, 2, 8, 8, 8, 7, 7},
        {7, 1, 3, 8, 8, 8, 8, 8},
        {7, 1, 3, 8, 8, 8, 7, 8},
        {7, 1, 3, 7, 8, 8, 8, 8}},
       {-81.62194f, -93.00835f, -96.42731f, -84.39053f, -96.77224f, -97.19226f}},
      {R"({"num_beams": 2, "renormalize_logits": true})", {}, {{5, 9, 2, 17}, {7, 1, 3, 17}}, {none, none}},
      {R"({"num_beams": 3, "min_new_tokens": 2, "num_return_sequences": 3, "eos_token_id": 3})",
       {3},
       {{5, 9, 2}, {5, 9, 2}, {5, 9, 2}, {7, 1, 3}, {7, 1, 3}, {7, 1, 3}},
       {low, low, low, low, low, low}},
      {R"({"num_beams": 3, "num_return_sequences": 3, "eos_token_id": 3})",
       {3},
       {{5, 9, 2, 3}, {5, 9, 2, 3}, {5, 9, 2, 1}, {7, 1, 3, 3}, {7, 1, 3, 3}, {7, 1, 3, 1}},
       {-5.93414f, low, low, -3.04435f, low, low}},
      {R"({"num_beams": 3, "num_return_sequences": 3, "eos_token_id": 3})",
       {3, 4},
       {{5, 9, 2, 4, 4, 4, 4, 4},
        {5, 9, 2, 4, 4, 4, 4, 3},
        {5, 9, 2, 4, 4, 3, 1, 1},
        {7, 1, 3, 3, 1, 1, 1, 1},
        {7, 1, 3, 4, 4, 4, 4, 4},
        {7, 1, 3, 4, 4, 4, 4, 3}},
       {-4.28504f, -4.29617f, -4.67981f, -3.04435f, -3.40947f, -3.552f}},
      {R"({"num_beams": 3, "no_repeat_ngram_size": 1, "num_return_sequences": 3})",
       {1, 2, 3, 5, 7, 9},
       {{5, 9, 2, 1, 7, 3}, {5, 9, 2, 1, 3, 7}, {5, 9, 2, 1, 7, 1}, {7, 1, 3, 2, 9, 5}, {7, 1, 3, 5, 2, 9}, {7, 1, 3, 5, 2, 1}},
       {low, low, low, low, low, low}},
  };
  for (const Banned& each : cases) {
    SCOPED_TRACE(each.keys);
    Json json = model.generation();
    json.update(Json::parse(each.keys));
    for (int64_t token = 0; token < 61; ++token)
      if (std::find(each.allowed.begin(), each.allowed.end(), token) == each.allowed.end()) json["suppress_tokens"].push_back(token);
    json["max_new_tokens"] = 5;
    const Beams found = beam_search(model, inputs, generation_options(json, "case"));
    std::vector<int64_t> flat;
    for (const auto& row : each.tokens) flat.insert(flat.end(), row.begin(), row.end());
    EXPECT_EQ(found.tokens.to_vector<int64_t>(), flat);
    ASSERT_EQ(found.scores.size(), each.scores.size());
    for (size_t i = 0; i < each.scores.size(); ++i) {
      const bool number = !std::isnan(each.scores[i]);
      EXPECT_EQ(!std::isnan(found.scores[i]), number);
      if (number) {
        EXPECT_NEAR(found.scores[i], each.scores[i], 1e-5f * (1 + std::abs(each.scores[i])));
      }
    }
  }
}

TEST(BeamSearch, a_forced_token_that_is_banned_is_refused) {
  const Model model = load(kFixtures / "gpt2-ends");
  const TensorMap inputs{{"input_ids", Tensor::from(std::vector<int64_t>{5, 9}, {1, 2}, kCpu)}};
  GenerationOptions options;
  options.beams = 2;
  options.forced_last = {3};
  options.suppressed = {1, 3};
  expect_error([&] { generate(model, inputs, options); },
               "the forced token 3 (forced_bos_token_id, forced_eos_token_id) is in suppress_tokens");
}

// heed parity compares beam search results in an io file.
TEST(BeamSearch, parity_compares_tokens_of_beams) {
  const Fixture fixture("gpt2-variant");
  GenerationOptions options = generation_options(fixture.model);
  options.beams = 4;
  options.count = 2;
  options.max_length = 17;
  const Folder folder;
  const Tensor written = generate(fixture.model, fixture.inputs, options);
  NamedTensors io{{"out.beam4", written}, {"out.beam", written}};
  for (const auto& [name, tensor] : fixture.inputs) io.emplace_back("in." + name, tensor);
  write_safetensors(folder / "io.safetensors", io);
  const std::vector<Difference> all = compare(fixture.model, folder / "io.safetensors", 1e-5);
  ASSERT_EQ(all.size(), 2u);
  for (const Difference& each : all) EXPECT_TRUE(each.within) << each.problem;
}

}  // namespace
}  // namespace heed::test
