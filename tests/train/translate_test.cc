// The translation task on files and on synthetic numbers, and its saved models.
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "heed/core/autograd.h"
#include "heed/data/text_data.h"
#include "heed/models/translate.h"
#include "heed/train/optimizer.h"
#include "heed/train/training_job.h"
#include "tests/expect_error.h"
#include "tests/io/files.h"

namespace heed::test {
namespace {

using Names = std::vector<std::string>;

// A tiny model and its task.
struct TinyTask {
  explicit TinyTask(const Names& arguments) : training("translate") {
    training.apply({"layers=1", "heads=4", "width=64", "feed_forward=128", "dropout=0", "label_smoothing=0"});
    training.apply(arguments);
    task = training.make();
  }
  TrainingJob training;
  Task task;
};

double translate_figure(const Evaluation& evaluation, const std::string& name) {
  for (const auto& [key, value] : evaluation.figures)
    if (key == name) return value;
  ADD_FAILURE() << "there is no " << name;
  return 0;
}

double loss_of(const Task& task) {
  const NoGrad no_grad;
  return translate_figure(task.evaluate(), "loss");
}

void put_numbers(const Path& folder, const std::string& stem, int64_t first, int64_t last, int64_t times = 1) {
  std::string english, french;
  for (int64_t j = 0, i = first; j < (last - first) * times; ++j, i = first + j % (last - first)) {
    english += number_words(i, NumberLanguage::english) + "\n";
    french += number_words(i, NumberLanguage::french) + "\n";
  }
  put(folder / (stem + ".en"), english);
  put(folder / (stem + ".fr"), french);
}

TEST(TranslateTask, trains_on_files_and_saves_a_model_that_translates) {
  const Folder folder;
  put_numbers(folder.path(), "train", 120, 180, 40);
  put_numbers(folder.path(), "dev", 120, 180);
  put_numbers(folder.path(), "test_small", 120, 160);  // of the training data: tests that training works, not generalization
  const TinyTask tiny({"data=" + folder.path().string(), "source=en", "target=fr", "vocabulary=300", "epochs=4", "batch=16", "rate=3e-3",
                       "schedule=cosine"});
  const Task& task = tiny.task;
  EXPECT_EQ(task.counts, (decltype(task.counts){{"train", 2400}, {"validation", 60}, {"test", 40}}));
  const double before = loss_of(task);
  EXPECT_NEAR(before, std::log(300), 1.5);
  RunFolder run = RunFolder::create(folder / "runs", "translate", "one");
  write_settings(run, tiny.training.settings());
  const TrainResult trained = train_model(task, tiny.training.train_options(), run);
  const Evaluation final_evaluation = finish_run(task, run, trained.best_epoch);
  EXPECT_LT(translate_figure(final_evaluation, "loss"), 0.3);
  EXPECT_GT(translate_figure(final_evaluation, "exact"), 0.8);
  EXPECT_GT(translate_figure(final_evaluation, "chrf"), 90);
  EXPECT_GT(translate_figure(final_evaluation, "bleu"), 80);
  EXPECT_NEAR(translate_figure(final_evaluation, "perplexity"), std::exp(translate_figure(final_evaluation, "loss")), 1e-9);

  const Path best = run.path() / "best";
  const Model model = load(best);
  const Tokenizer tokenizer = Tokenizer::open(best);
  const GenerationOptions options = generation_options(model);
  EXPECT_EQ(options.beams, 4);
  EXPECT_GT(options.max_length, 10);
  const Json& listed = final_evaluation.detail.at("translations");
  ASSERT_EQ(listed.size(), 20u);
  const std::vector<std::string> sources{listed[0].at("source"), listed[7].at("source")};
  const std::vector<Translated> again =
      translate(model, {tokenizer, tokenizer, *tokenizer.padding_id()}, tokenizer.encode_all(sources), options);
  EXPECT_EQ(again[0].text, listed[0].at("written").get<std::string>());
  EXPECT_EQ(again[1].text, listed[7].at("written").get<std::string>());
  EXPECT_EQ(listed[0].at("source"), "one hundred twenty");

  const NoGrad no_grad;
  const std::vector<Sample> samples = task.samples();
  ASSERT_EQ(samples.size(), 8u);
  for (const Sample& sample : samples) {
    EXPECT_EQ(std::ssize(sample.rows), sample.map_rows);
    EXPECT_EQ(std::ssize(sample.columns), sample.map_columns);
    EXPECT_EQ(sample.columns.back(), "</s>");
    EXPECT_FALSE(sample.source.empty());
    EXPECT_EQ(sample.source.find("</s>"), std::string::npos) << sample.source;  // text, not tokens
    EXPECT_EQ(sample.right, sample.truth == sample.guess);
    EXPECT_TRUE(sample.score > 0 && sample.score <= 1) << sample.score;
    EXPECT_NEAR(std::accumulate(sample.map.begin(), sample.map.end(), 0.0f), static_cast<float>(sample.map_rows), 1e-3f);
  }
}

TEST(TranslateTask, trains_on_numbers) {
  const TinyTask tiny({"count=640", "source=german", "target=english", "batch=64", "epochs=1"});
  const Task& task = tiny.task;
  EXPECT_EQ(task.counts[0].second, 640);
  EXPECT_EQ(tiny.training.settings().text("vocabulary"), "400");
  Tensors trainable;
  for (const Parameter& each : task.model->params().all())
    if (each.options.learned) trainable.push_back(each.tensor);
  Adam optimizer({{trainable, 0}}, {});
  const double before = loss_of(task);
  Rng rng(1);
  for (int64_t epoch = 0; epoch < 4; ++epoch)
    for (const std::vector<int64_t>& which : task.batches(epoch)) {
      const StepOutput outcome = task.forward(task.batch(epoch, which), {.mode = training_with(rng)});
      EXPECT_GT(outcome.multiply_adds, 1e6);
      backward(outcome.loss);
      optimizer.step(3e-3f);
      optimizer.zero_grad();
    }
  EXPECT_LT(loss_of(task), before - 2);
}

TEST(TranslateTask, samples_need_no_maps) {
  const TinyTask tiny({"count=20", "attention=linear", "beams=1"});
  const NoGrad no_grad;
  const std::vector<Sample> samples = tiny.task.samples();
  ASSERT_EQ(samples.size(), 8u);
  EXPECT_TRUE(samples[0].map.empty());
  EXPECT_FALSE(samples[0].columns.empty());
}

TEST(TranslateTask, batches_are_padded_and_hold_every_pair_once) {
  const TinyTask tiny({"count=101", "batch=8", "max_length=10"});
  const Task& task = tiny.task;
  const int64_t count = task.counts[0].second, left_out = task.evaluate().detail.at("left_out").get<int64_t>();
  EXPECT_EQ(count + left_out, 101);
  EXPECT_GT(left_out, 0);
  std::vector<int64_t> seen;
  int64_t padding = 0;
  for (const std::vector<int64_t>& which : task.batches(3)) {
    seen.insert(seen.end(), which.begin(), which.end());
    const Batch batch = task.batch(3, which);
    EXPECT_EQ(batch.samples, std::ssize(which));
    const Tensor &ids = batch.inputs.at("input_ids"), &labels = batch.inputs.at("labels");
    EXPECT_LE(ids.size(1), 10);
    const int64_t pad = task.model->config().at("pad_token_id").get<int64_t>(),
                  end = task.model->config().at("eos_token_id").get<int64_t>();
    const std::vector<int64_t> tokens = ids.to_vector<int64_t>(), mask = batch.inputs.at("attention_mask").to_vector<int64_t>();
    for (size_t i = 0; i < tokens.size(); ++i) EXPECT_EQ(mask[i] == 0, tokens[i] == pad);
    for (const auto& [rows, filler] : {std::pair(ids, pad), std::pair(labels, int64_t{-100})})
      for (int64_t row = 0; row < rows.size(0); ++row) {
        const auto all = rows.to_vector<int64_t>();
        std::vector<int64_t> one(all.begin() + row * rows.size(1), all.begin() + (row + 1) * rows.size(1));
        while (one.back() == filler) one.pop_back(), ++padding;
        EXPECT_EQ(one.back(), end);
        EXPECT_EQ(std::count(one.begin(), one.end(), filler), 0);
      }
  }
  EXPECT_GT(padding, 0);
  std::sort(seen.begin(), seen.end());
  for (int64_t i = 0; i < count; ++i) EXPECT_EQ(seen[static_cast<size_t>(i)], i);
}

TEST(TranslateTask, reports_wrong_settings_and_files) {
  const Folder folder;
  const std::string data = "data=" + folder.path().string();
  put_numbers(folder.path(), "train", 1, 9);
  const auto refused = [](const Names& arguments, const std::string& message) { expect_error([&] { TinyTask tiny(arguments); }, message); };
  refused({"source=latin"}, "translate: found source=latin of data=numbers, expected english, german or french");
  refused({"data=/nowhere", "source=en", "target=fr"}, "/nowhere: found no folder and no table");
  refused({data}, "found no source= and target=");
  refused({data, "source=en", "target=de"}, "train.en: found no train.de or train.de.gz next to it");
  refused({data, "source=de", "target=en"}, "found no train.de or train.de.gz, expected one; extensions of train: ");
  refused({data, "source=en", "target=en"}, "expected two languages");
  refused({"train_source=" + (folder / "train.en").string()}, "found one of train_source and train_target, expected both");
  refused({"preset=bert-mini"},
          "train: preset=bert-mini is not supported by translate, expected one of transformer-small, lstm-additive, lstm-dot, "
          "transformer-base");
  refused({"count=30", "max_length=1000"}, "translate: found max_length=1000, expected at most 256, the model's limit");
  refused({"count=30", "max_length=2"}, "translate: found no pair of at most 2 tokens among 30");
  const TinyTask split({data, "source=en", "target=fr", "validation=0.25"});  // no validation part: held out
  EXPECT_EQ(split.task.counts, (decltype(split.task.counts){{"train", 6}, {"validation", 2}, {"test", 0}}));
  EXPECT_FALSE(split.task.test);
}

}  // namespace
}  // namespace heed::test
