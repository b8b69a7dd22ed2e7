// Decoding step by step equals the forward pass of all tokens, and the rules of generation hold.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "heed/models/caption.h"
#include "heed/models/generate.h"
#include "heed/models/parts.h"
#include "heed/ops/ops.h"
#include "tests/expect_error.h"
#include "tests/io/files.h"

namespace heed::test {
namespace {

TensorMap inputs_of(const std::string& name, const std::vector<std::string>& names) {
  const Safetensors io = Safetensors::open(fixture(name) / "io.safetensors");
  TensorMap out;
  for (const std::string& each : names)
    if (io.contains("in." + each)) out[each] = io.tensor("in." + each);
  return out;
}

// The last row of logits (B, N, V) after `end` tokens. -> B V numbers
std::vector<float> row_after(const Tensor& logits, int64_t end) { return slice(logits, 1, end - 1, end).to_vector<float>(); }

void expect_near_values(const std::vector<float>& a, const std::vector<float>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], b[i], 2e-5f) << i;
}

// Tokens in chunks of 4, 1, 2, 1, ... through the caches, against the logits of one forward pass.
void expect_steps_give(const Model& model, const TensorMap& inputs, const Tensor& tokens, const Tensor& logits) {
  DecodeState state = model.decoder().start(inputs);
  const std::vector<int64_t> chunks{4, 1, 2, 1};
  int64_t end = 0;
  for (size_t i = 0; end < tokens.size(1); ++i) {
    const int64_t begin = end;
    end = std::min(end + chunks[i % chunks.size()], tokens.size(1));
    expect_near_values(model.decoder().step(state, slice(tokens, 1, begin, end)).to_vector<float>(), row_after(logits, end));
    EXPECT_EQ(state.length(), end);
  }
}

TEST(DecodeState, decoder_steps_match_one_pass) {
  const NoGrad no_grad;
  for (const char* name : {"gpt2-lm", "gpt2-unscaled", "llama-three"}) {
    SCOPED_TRACE(name);
    const Model model = load(fixture(name));
    const TensorMap inputs = inputs_of(name, {"input_ids"});
    expect_steps_give(model, inputs, inputs.at("input_ids"), model(inputs)["logits"]);
  }
}

TEST(DecodeState, of_a_captioner_matches_one_pass) {
  const NoGrad no_grad;
  const Model model = load(fixture("vision-caption"));
  TensorMap inputs = inputs_of("vision-caption", {"pixel_values"});  // on the host, on which device ever the model is
  const Tensor tokens = Tensor::from(std::vector<int64_t>{5, 17, 3, 60, 2, 9, 41, 8, 8, 30, 1, 7}, {2, 6}, kCpu);
  const TensorMap image = inputs;
  inputs["decoder_input_ids"] = tokens;
  expect_steps_give(model, image, tokens, model(inputs)["logits"]);
}

TEST(DecodeState, padding_on_the_left_changes_nothing) {
  const NoGrad no_grad;
  for (const char* name : {"gpt2-variant", "llama-grouped"}) {
    SCOPED_TRACE(name);
    const Model model = load(fixture(name));
    const Tensor padded = inputs_of(name, {"input_ids"})["input_ids"];  // the last item has four tokens of padding
    const TensorMap all = inputs_of(name, {"input_ids", "attention_mask"});
    DecodeState state = model.decoder().start(all);
    const Tensor together = model.decoder().step(state, padded);
    const Tensor alone = slice(slice(padded, 0, 2, 3), 1, 4, 11);
    DecodeState text = model.decoder().start({{"input_ids", alone}});
    expect_near_values(slice(together, 0, 2, 3).to_vector<float>(), model.decoder().step(text, alone).to_vector<float>());
  }
}

TEST(DecodeState, encoder_decoder_steps_match_one_pass) {
  const NoGrad no_grad;
  const Model model = load(fixture("marian-shared"));
  const TensorMap inputs = inputs_of("marian-shared", {"input_ids", "attention_mask", "decoder_input_ids"});
  expect_steps_give(model, inputs, inputs.at("decoder_input_ids"), model(inputs)["logits"]);
}

TEST(DecodeState, reordered_sequences_continue_correctly) {
  const NoGrad no_grad;
  for (const char* name : {"gpt2-variant", "marian-shared"}) {
    SCOPED_TRACE(name);
    const Model model = load(fixture(name));
    const TensorMap inputs = inputs_of(name, {"input_ids", "attention_mask"});
    const int64_t B = inputs.at("input_ids").size(0);
    const Tensor first = model.decoder().encoder ? Tensor::full({B, 1}, 60, DType::i64, kCpu) : inputs.at("input_ids");
    DecodeState state = model.decoder().start(inputs);
    model.decoder().step(state, first);
    DecodeState straight = state;
    const std::vector<int64_t> items{1, 0, 1};
    state.reorder(items);
    const Tensor next = model.decoder().step(straight, Tensor::full({B, 1}, 7, DType::i64, kCpu));
    const Tensor swapped = model.decoder().step(state, Tensor::full({3, 1}, 7, DType::i64, kCpu));
    expect_near_values(swapped.to_vector<float>(), index_select(next, 0, Tensor::from(items, {3}, next.device())).to_vector<float>());
  }
}

TEST(Generate, accepts_a_custom_chooser) {
  const Model model = load(fixture("gpt2-lm"));
  const TensorMap inputs = inputs_of("gpt2-lm", {"input_ids"});
  GenerationOptions options = generation_options(model);
  options.max_length = 12;
  options.choose = [](std::span<float>, int64_t, int64_t) { return int64_t{42}; };
  const std::vector<int64_t> written = slice(generate(model, inputs, options), 1, 9, 12).to_vector<int64_t>();
  EXPECT_EQ(written, (std::vector<int64_t>{42, 42, 42}));
  options.end = {42};
  EXPECT_EQ(generate(model, inputs, options).shape(), (Shape{1, 10}));
}

TEST(Generate, ends_with_one_of_several_forced_tokens) {
  const NoGrad no_grad;
  const Model model = load(fixture("gpt2-lm"));
  const TensorMap inputs = inputs_of("gpt2-lm", {"input_ids"});
  const auto forced = [](const Json& value) { return generation_options({{"forced_eos_token_id", value}}, "test").forced_last; };
  EXPECT_EQ(forced({3, 5}), (std::vector<int64_t>{3, 5}));
  EXPECT_EQ(forced(3), std::vector<int64_t>{3});
  EXPECT_TRUE(forced(-1).empty() && forced(nullptr).empty());
  expect_refused([&] { forced("end"); }, "forced_eos_token_id is \"end\", expected a token or a list of tokens");
  GenerationOptions options;
  options.max_new_tokens = 3;
  const Tensor free = generate(model, inputs, options);
  options.forced_last = {41, 42};
  std::vector<std::vector<float>> scores;
  options.choose = [&](std::span<float> row, int64_t, int64_t) {
    scores.emplace_back(row.begin(), row.end());
    return std::max_element(row.begin(), row.end()) - row.begin();
  };
  const Tensor written = generate(model, inputs, options);
  const int64_t B = written.size(0), N = written.size(1);
  expect_same(slice(written, 1, 0, N - 1), slice(free, 1, 0, N - 1));
  ASSERT_EQ(std::ssize(scores), 3 * B);
  for (int64_t b = 2 * B; b < 3 * B; ++b)
    for (size_t token = 0; token < scores[static_cast<size_t>(b)].size(); ++token)
      EXPECT_EQ(scores[static_cast<size_t>(b)][token], token == 41 || token == 42 ? 0 : -std::numeric_limits<float>::infinity()) << token;
  options.forced_last = {41, 1000};
  expect_error([&] { generate(model, inputs, options); }, "generate: the forced token 1000 of ");
}

// Models of two parts may have settings of generation in the config of the decoder.
TEST(Generate, settings_in_the_config_of_the_decoder) {
  Json config = read_json(fixture("vision-caption") / "config.json");
  config["decoder"].update({{"max_length", 13}, {"num_beams", 3}, {"pad_token_id", 9}, {"eos_token_id", 8}});
  config["eos_token_id"] = nullptr;
  const GenerationOptions options = generation_options(make_model(config, {.names = {.shapes_only = true}}));
  EXPECT_EQ(options.max_length, 13);
  EXPECT_EQ(options.beams, 3);
  EXPECT_EQ(options.end, std::vector<int64_t>{8});
  EXPECT_EQ(options.pad, 0) << "the outer config takes precedence";
  config["decoder"].update({{"max_length", nullptr}, {"max_new_tokens", 4}});
  const Model model = make_model(config, {.names = {.shapes_only = true}});
  EXPECT_EQ(caption_options(model, 11).max_length, 0);
  EXPECT_EQ(caption_options(model, 11).max_new_tokens, 4);
}

// Every token from a forward pass of all tokens before it, without a cache.
TEST(Generate, matches_generation_without_cache) {
  const NoGrad no_grad;
  for (const char* name : {"gpt2-lm", "llama-three", "marian-shared"}) {
    SCOPED_TRACE(name);
    const Model model = load(fixture(name));
    const bool encoder = model.decoder().encoder;
    TensorMap inputs = inputs_of(name, {"input_ids", "attention_mask"});
    GenerationOptions options = generation_options(model);
    options.end = {};
    options.forced_last = {};
    options.max_length = 0;
    options.max_new_tokens = 8;
    const Tensor written = generate(model, inputs, options);
    const std::string tokens = encoder ? "decoder_input_ids" : "input_ids";
    if (encoder) inputs[tokens] = slice(written, 1, 0, 1);
    for (int i = 0; i < 8; ++i) {
      const Tensor logits = model(inputs)["logits"];
      const Tensor next = argmax(slice(logits, 1, logits.size(1) - 1, logits.size(1)));
      inputs[tokens] = concat({inputs[tokens], next}, 1);
    }
    EXPECT_EQ(inputs[tokens].to_vector<int64_t>(), written.to_vector<int64_t>());
  }
}

TEST(Generate, reports_every_token_once) {
  const Model model = load(fixture("gpt2-ends"));
  const TensorMap inputs = inputs_of("gpt2-ends", {"input_ids", "attention_mask"});
  GenerationOptions options = generation_options(model);
  std::vector<std::vector<int64_t>> reported(3);
  options.on_tokens = [&](std::span<const int64_t> tokens) {
    for (size_t b = 0; b < 3; ++b)
      if (tokens[b] >= 0) reported[b].push_back(tokens[b]);
  };
  const Tensor written = generate(model, inputs, options);
  for (size_t b = 0; b < 3; ++b) {
    std::vector<int64_t> row =
        slice(slice(written, 0, static_cast<int64_t>(b), static_cast<int64_t>(b) + 1), 1, 6, written.size(1)).to_vector<int64_t>();
    while (row.size() > reported[b].size() && row.back() == options.pad) row.pop_back();
    EXPECT_EQ(reported[b], row);
  }
}

TEST(Generate, reports_bad_inputs) {
  const Model marian = load(fixture("marian-shared"));
  GenerationOptions options = generation_options(marian);
  options.start = -1;
  const TensorMap inputs = inputs_of("marian-shared", {"input_ids"});
  expect_error([&] { generate(marian, inputs, options); }, "generate: no decoder_start_token_id");
  expect_error([&] { generate(marian, {}, options); }, "model: the input 'input_ids' is missing");
  const Model gpt2 = load(fixture("gpt2-lm"));
  GenerationOptions far = generation_options(gpt2);
  far.end = {};
  far.max_length = 70;
  expect_error([&] { generate(gpt2, inputs_of("gpt2-lm", {"input_ids"}), far); }, "model: 65 tokens, expected at most 64");
  far.count = 2;
  expect_error([&] { generate(gpt2, inputs_of("gpt2-lm", {"input_ids"}), far); },
               "generate: 2 outputs per input, expected 1, or sampling, or beams");
}

}  // namespace
}  // namespace heed::test
