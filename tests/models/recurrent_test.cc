// Recurrent classifiers and translators: padding, decoding step by step, beams, and training by the usual tasks.
#include <gtest/gtest.h>

#include "heed/core/autograd.h"
#include "heed/io/file.h"
#include "heed/io/temporary.h"
#include "heed/models/beam.h"
#include "heed/models/generate.h"
#include "heed/models/model.h"
#include "heed/ops/ops.h"
#include "heed/train/optimizer_step.h"
#include "heed/train/training_job.h"

namespace heed::test {
namespace {

Json translator(const std::string& cell, const std::string& attention) {
  return {{"architectures", {"RecurrentForTranslation"}},
          {"cell", cell},
          {"attention", attention},
          {"hidden_size", 16},
          {"num_layers", 2},
          {"vocab_size", 19},
          {"decoder_start_token_id", 0},
          {"eos_token_id", 1},
          {"pad_token_id", 0},
          {"initializer_range", 0.5},
          {"is_encoder_decoder", true}};
}

Tensor token_rows(const std::vector<int64_t>& ids, int64_t rows) { return Tensor::from(ids, {rows, std::ssize(ids) / rows}, kCpu); }

TEST(RecurrentModels, padding_changes_nothing) {
  const NoGrad no_grad;
  for (const Json& config : {translator("lstm", "additive"), translator("gru", "dot"),
                             Json{{"architectures", {"RecurrentForSequenceClassification"}},
                                  {"hidden_size", 16},
                                  {"vocab_size", 19},
                                  {"num_layers", 2},
                                  {"num_labels", 3}}}) {
    const Model model = make_model(config);
    TensorMap padded{{"input_ids", token_rows({3, 4, 5, 0, 0, 6, 7, 8, 9, 2}, 2)},
                     {"attention_mask", token_rows({1, 1, 1, 0, 0, 1, 1, 1, 1, 1}, 2)}};
    TensorMap alone{{"input_ids", token_rows({3, 4, 5}, 1)}};
    if (model.takes("decoder_input_ids")) {
      padded["decoder_input_ids"] = token_rows({0, 5, 6, 0, 7, 8}, 2);
      alone["decoder_input_ids"] = token_rows({0, 5, 6}, 1);
    }
    const std::vector<float> both = model(padded).at("logits").to_vector<float>(), one = model(alone).at("logits").to_vector<float>();
    for (size_t i = 0; i < one.size(); ++i) EXPECT_NEAR(both[i], one[i], 1e-5) << config["architectures"];
  }
}

TEST(RecurrentModels, decode_token_by_token) {
  const NoGrad no_grad;
  for (const char* cell : {"lstm", "gru"})
    for (const char* attention : {"additive", "dot"}) {
      const Model model = make_model(translator(cell, attention));
      const TensorMap source{{"input_ids", token_rows({3, 4, 5, 6, 7, 8}, 2)}};
      TensorMap whole = source;
      whole["decoder_input_ids"] = token_rows({0, 5, 9, 0, 7, 2}, 2);
      const TensorMap out = model(whole, {.attentions = true});
      EXPECT_EQ(out.at("cross_attentions.0").shape(), (Shape{2, 1, 3, 3}));
      const std::vector<float> maps = out.at("cross_attentions.0").to_vector<float>();
      for (size_t row = 0; row < 6; ++row) EXPECT_NEAR(maps[3 * row] + maps[3 * row + 1] + maps[3 * row + 2], 1, 1e-5);
      DecodeState state = model.decoder().start(source);
      Tensor last;
      for (int64_t i = 0; i < 3; ++i) last = model.decoder().step(state, contiguous(slice(whole.at("decoder_input_ids"), 1, i, i + 1)));
      const std::vector<float> found = last.to_vector<float>(), expected = contiguous(slice(out.at("logits"), 1, 2, 3)).to_vector<float>();
      for (size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], expected[i], 1e-5) << cell << " " << attention;
    }
}

// The score of a beam is the sum of the log-probabilities that the whole model gives to its tokens: states follow their beams.
TEST(RecurrentModels, beams_keep_their_states) {
  const NoGrad no_grad;
  constexpr int64_t beams = 3, length = 6, V = 19;
  for (const char* cell : {"lstm", "gru"}) {
    const Model model = make_model(translator(cell, "additive"));
    GenerationOptions options{.max_length = length, .min_length = length, .end = {1}, .pad = 0, .start = 0, .beams = beams};
    options.length_penalty = 0, options.count = beams;
    const Beams found = beam_search(model, {{"input_ids", token_rows({3, 4, 5, 6, 7, 8}, 2)}}, options);
    ASSERT_EQ(found.tokens.shape(), (Shape{2 * beams, length}));
    const std::vector<int64_t> tokens = found.tokens.to_vector<int64_t>();
    for (int64_t b = 0; b < 2 * beams; ++b) {
      const auto row = tokens.begin() + b * length;
      const TensorMap inputs{{"input_ids", b < beams ? token_rows({3, 4, 5}, 1) : token_rows({6, 7, 8}, 1)},
                             {"decoder_input_ids", token_rows({row, row + length - 1}, 1)}};
      const std::vector<float> all = log_softmax(model(inputs).at("logits")).to_vector<float>();
      float sum = 0;
      for (int64_t i = 1; i < length; ++i) sum += all[static_cast<size_t>((i - 1) * V + row[i])];
      EXPECT_NEAR(found.scores[static_cast<size_t>(b)], sum, 1e-4f) << cell << " " << b;
    }
  }
}

double metric_after(const std::string& task, const std::vector<std::string>& settings, const std::string& metric) {
  TrainingJob training(task);
  training.apply(settings);
  const Task made = training.make();
  const TrainOptions& options = training.train_options();
  OptimizerStep optimizer(*made.model, options);
  Rng rng(1);
  int64_t step = 0;
  for (int64_t epoch = 0; step < 60; ++epoch)
    for (const std::vector<int64_t>& which : made.batches(epoch)) {
      if (step++ == 60) break;
      const StepOutput out = made.forward(made.batch(epoch, which), {.mode = training_with(rng)});
      optimizer.zero_grad();
      backward(out.loss);
      optimizer.step(1e-2f);
    }
  const NoGrad no_grad;
  for (const auto& [name, value] : made.evaluate().figures)
    if (name == metric) return value;
  return std::nan("");
}

// Sentences of four fillers, "left" and "right": positive if "left" comes first, which no bag of words can tell.
void write_orders(const Path& file) {
  Rng rng(5);
  const auto below = [&rng](uint64_t n) { return static_cast<size_t>(rng.below(n)); };
  const std::vector<std::string> fillers{"the", "a", "of", "to"};
  std::string text = "text\tlabel\n";
  for (int64_t i = 0; i < 800; ++i) {
    std::vector<std::string> words;
    for (int64_t j = 0; j < 4; ++j) words.push_back(fillers[below(4)]);
    const bool positive = below(2) == 0;
    const size_t first = below(5), second = first + 1 + below(5 - first);
    words.insert(words.begin() + static_cast<std::ptrdiff_t>(first), positive ? "left" : "right");
    words.insert(words.begin() + static_cast<std::ptrdiff_t>(second), positive ? "right" : "left");
    for (const std::string& word : words) text += word + " ";
    text += positive ? "\tpositive\n" : "\tnegative\n";
  }
  write_text(file, text);
}

TEST(RecurrentModels, learn_by_the_usual_tasks) {
  const TemporaryFolder folder;
  const Path file = folder.path() / "orders.tsv";
  write_orders(file);
  for (const char* preset : {"preset=lstm-small", "preset=gru-small"})
    EXPECT_GT(metric_after("sentiment", {preset, "data=" + file.string(), "width=32", "vocabulary=40"}, "accuracy"), 0.95) << preset;
  // Always the most frequent token: 0.14.
  for (const char* preset : {"preset=lstm-additive", "preset=lstm-dot"})
    EXPECT_GT(metric_after("translate", {preset, "data=numbers", "count=600", "width=32", "vocabulary=100", "model.initializer_range=0.2"},
                           "accuracy"),
              0.35)
        << preset;
}

}  // namespace
}  // namespace heed::test
