// Sequences that share a call: the same bits as alone.
#include <gtest/gtest.h>

#include "heed/core/autograd.h"
#include "heed/core/isa.h"
#include "heed/models/embed.h"
#include "heed/models/generate.h"
#include "tests/io/files.h"

namespace heed::test {
namespace {

using Row = std::vector<int64_t>;

Model packed_model(const std::string& name) { return load(fixture(name), {.weights = Weights::packed}); }

DecodeState new_state(const Model& model, const Row& prompt) {
  return model.decoder().start({{"input_ids", Tensor::from(prompt, {1, std::ssize(prompt)}, kCpu)}});
}

std::vector<Row> mixed_prompts() { return {{5, 6, 7}, {9}, {3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8}, {11, 12}, {7, 7, 7, 7, 7}}; }

TEST(StepsTogether, have_the_same_bits_as_alone) {
  if (instruction_set() == "baseline") GTEST_SKIP() << "without vector instructions, matrix products depend on the number of rows";
  const NoGrad no_grad;
  for (const char* name :
       {"gpt2-lm", "llama-grouped", "llama-three", "mistral-window", "qwen2-window", "llama-dynamic", "llama-longrope"}) {
    const Model model = packed_model(name);
    const std::vector<Row> prompts = mixed_prompts();
    std::vector<DecodeState> together, alone;
    for (const Row& prompt : prompts) {
      together.push_back(new_state(model, prompt));
      alone.push_back(new_state(model, prompt));
    }
    std::vector<Row> next = prompts;
    for (int step = 0; step < 4; ++step) {
      std::vector<SequenceStep> steps;
      for (size_t i = 0; i < prompts.size(); ++i) steps.push_back({&together[i], next[i]});
      const Tensor all = model.decoder().step_together(steps);
      for (size_t i = 0; i < prompts.size(); ++i) {
        const SequenceStep one{&alone[i], next[i]};
        const Tensor own = model.decoder().step_together(std::span(&one, 1));
        const auto row = static_cast<int64_t>(i);
        EXPECT_EQ(bytes_in(slice(all, 0, row, row + 1)), bytes_in(own)) << name << ", step " << step << ", sequence " << i;
        next[i] = {argmax(own).to_vector<int64_t>()[0]};
      }
    }
  }
}

TEST(StepsTogether, are_those_of_generate) {
  const NoGrad no_grad;
  for (const char* name : {"gpt2-lm", "llama-grouped"}) {
    const Model model = packed_model(name);
    const Row prompt{5, 6, 7, 8, 9, 10, 11};
    DecodeState state = new_state(model, prompt), other = new_state(model, prompt);
    const SequenceStep step{&state, prompt};
    const std::vector<float> expected = model.decoder().step(other, Tensor::from(prompt, {1, std::ssize(prompt)}, kCpu)).to_vector<float>();
    EXPECT_EQ(model.decoder().step_together(std::span(&step, 1)).to_vector<float>(), expected) << name;
  }
}

// A sentence of these tokens.
Encoding encoding_of(const std::vector<int32_t>& ids) {
  return {.ids = ids, .type_ids = std::vector<int32_t>(ids.size()), .attention_mask = {}, .special_mask = {}, .offsets = {}};
}

Json one_word_tokenizer() { return {{"model", {{"type", "WordLevel"}, {"unk_token", "a"}, {"vocab", {{"a", 0}}}}}}; }

TextModel packed_text_model(const std::string& name, const Folder& folder) {
  put(folder / "tokenizer.json", one_word_tokenizer().dump());
  return {packed_model(name), Tokenizer::open(folder / "tokenizer.json"), folder.path(), 64};
}

TEST(SentencesTogether, have_the_same_bits_as_alone) {
  if (instruction_set() == "baseline") GTEST_SKIP() << "without vector instructions, matrix products depend on the number of rows";
  const Folder folder;
  const std::vector<Encoding> sentences{encoding_of({5, 6, 7}), encoding_of({9}), encoding_of({3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7}),
                                        encoding_of({2, 7})};
  for (const char* name : {"bert-model", "bert-sentiment", "distilbert-sentiment", "bert-multi-label", "roberta-model", "roberta-classify",
                           "modernbert-classify", "gpt2-classify", "clip-pairs"}) {
    const TextModel model = packed_text_model(name, folder);
    const TensorMap all = run_together(model, sentences);
    int64_t begin = 0;
    for (size_t i = 0; i < sentences.size(); ++i) {
      const TensorMap own = run_together(model, std::span(sentences).subspan(i, 1));
      const int64_t length = sentences[i].size(), row = static_cast<int64_t>(i);
      for (const auto& [key, value] : own) {
        const Tensor& whole = all.at(key);
        const Tensor part = whole.rank() == 3 ? slice(whole, 1, begin, begin + length) : slice(whole, 0, row, row + 1);
        EXPECT_EQ(bytes_in(part), bytes_in(value)) << name << ", " << key << ", sentence " << i;
      }
      begin += length;
    }
  }
}

TEST(SentencesTogether, are_those_of_padded_batches) {
  const Folder folder;
  const TextModel model = packed_text_model("bert-model", folder);
  const std::vector<Encoding> sentences{encoding_of({5, 6, 7}), encoding_of({3, 1, 4, 1, 5, 9, 2, 6})};
  const Tensor states = run_together(model, sentences).at("last_hidden_state");
  const int64_t first = 3, second = 8;
  const Tensor one = pool_sentences(slice(states, 1, 0, 3), std::span(&first, 1), {}),
               two = pool_sentences(slice(states, 1, 3, 11), std::span(&second, 1), {});
  std::vector<Encoding> padded = sentences;
  for (Encoding& each : padded) {
    each.attention_mask.assign(each.ids.size(), 1);
    each.special_mask.assign(each.ids.size(), 0);
    each.offsets.resize(each.ids.size());
  }
  const std::vector<float> expected = embed(model, padded).to_vector<float>(), found_one = one.to_vector<float>(),
                           found_two = two.to_vector<float>();
  for (size_t i = 0; i < found_one.size(); ++i) {
    EXPECT_NEAR(found_one[i], expected[i], 1e-5);
    EXPECT_NEAR(found_two[i], expected[found_one.size() + i], 1e-5);
  }
}

TEST(ImagesTogether, have_the_same_bits_as_alone) {
  if (instruction_set() == "baseline") GTEST_SKIP() << "without vector instructions, matrix products depend on the number of rows";
  const NoGrad no_grad;
  for (const char* name : {"vit-classify", "vit-model", "deit-classify", "dinov2-registers", "resnet-basic", "resnet-bottleneck"}) {
    const Model model = packed_model(name);
    const Json config = Json::parse(read_text(fixture(name) / "config.json", int64_t{1} << 20));
    const int64_t side = config.value("image_size", 32);
    Rng rng(1, 0);
    for (const int64_t B : {2, 5, 9}) {
      const Tensor pixels = random_normal({B, 3, side, side}, 0, 1, rng, kCpu);
      const TensorMap all = model({{"pixel_values", pixels}});
      for (int64_t b = 0; b < B; ++b)
        for (const auto& [key, value] : model({{"pixel_values", slice(pixels, 0, b, b + 1)}}))
          EXPECT_EQ(bytes_in(slice(all.at(key), 0, b, b + 1)), bytes_in(value)) << name << ", " << key << ", image " << b << " of " << B;
    }
  }
}

}  // namespace
}  // namespace heed::test
