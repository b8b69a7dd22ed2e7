// Language modelling: windows, evaluation, and training of a small model.
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "heed/train/optimizer_step.h"
#include "heed/train/training_job.h"
#include "tests/expect_error.h"
#include "tests/io/files.h"
#include "tests/test_device.h"

namespace heed::test {
namespace {

// A repetitive text that is easy to predict.
std::string counting(int64_t lines) {
  std::string out;
  for (int64_t i = 0; i < lines; ++i) out += i % 3 == 0 ? "zero one two three four five\n" : "six seven eight nine ten\n";
  return out;
}

const std::vector<std::string> kTiny{"tokenizer=characters", "length=16", "layers=1", "width=32",  "heads=2",
                                     "feed_forward=64",      "dropout=0", "batch=8",  "rate=5e-3", "validation=0.2"};

Task make_task(TrainingJob& training, const Path& data, const std::vector<std::string>& more = {}) {
  training.apply(kTiny);
  training.apply({"data=" + data.string()});
  training.apply(more);
  return training.make();
}

double language_figure(const Evaluation& evaluation, const std::string& name) {
  for (const auto& [key, value] : evaluation.figures)
    if (key == name) return value;
  ADD_FAILURE() << "no figure " << name;
  return 0;
}
Evaluation evaluated(const Task& task) {
  const NoGrad no_grad;
  return task.evaluate();
}

TEST(Language, windows_cover_the_text_once_with_another_offset_every_epoch) {
  const Folder folder;
  write_text(folder / "a.txt", counting(60));
  TrainingJob training("language");
  const Task task = make_task(training, folder / "a.txt");
  EXPECT_EQ(task.model->architecture(), "GPT2LMHeadModel");
  std::set<std::vector<int64_t>> beginnings;
  for (int64_t epoch = 0; epoch < 6; ++epoch) {
    std::set<int64_t> places;
    for (const std::vector<int64_t>& which : task.batches(epoch)) {
      const Batch batch = task.batch(epoch, which), again = task.batch(epoch, which);
      EXPECT_EQ(batch.samples, std::ssize(which));
      EXPECT_EQ(batch.inputs.at("input_ids").shape(), Shape({std::ssize(which), 16}));
      EXPECT_EQ(batch.inputs.at("input_ids").to_vector<int64_t>(), again.inputs.at("labels").to_vector<int64_t>());
      places.insert(which.begin(), which.end());
    }
    EXPECT_EQ(std::ssize(places), task.counts[0].second);
    beginnings.insert(task.batch(epoch, {0}).inputs.at("input_ids").to_vector<int64_t>());
  }
  EXPECT_GT(beginnings.size(), 2u);
  // Windows are consecutive.
  const std::vector<int64_t> both = task.batch(0, {3, 4}).inputs.at("input_ids").to_vector<int64_t>();
  const std::vector<int64_t> third = task.batch(0, {3}).inputs.at("input_ids").to_vector<int64_t>();
  EXPECT_TRUE(std::equal(third.begin(), third.end(), both.begin()));
}

TEST(Language, labels_on_the_device_give_the_same_loss) {
  const Json config{
      {"architectures", {"GPT2LMHeadModel"}}, {"vocab_size", 40}, {"n_embd", 16}, {"n_layer", 1}, {"n_head", 2}, {"n_positions", 12}};
  const Model model = make_model(config, {.names = {.device = test_device()}});
  std::vector<int64_t> ids;
  for (int64_t i = 0; i < 24; ++i) ids.push_back(i * i % 37);
  const Tensor tokens = Tensor::from(ids, {2, 12}, kCpu), on_device = tokens.to(test_device());
  for (const DType precision : {DType::f32, DType::bf16}) {
    const ForwardOptions options{.precision = precision, .loss_only = true};
    const float expected = model({{"input_ids", tokens}, {"labels", tokens}}, options).at("loss").item();
    EXPECT_NEAR(model({{"input_ids", on_device}, {"labels", on_device}}, options).at("loss").item(), expected, 1e-4 * expected);
  }
}

TEST(Language, a_small_model_learns_and_is_measured_by_bytes) {
  const Folder folder;
  const std::string text = counting(120);
  write_text(folder / "a.txt", text);
  TrainingJob training("language");
  const Task task = make_task(training, folder / "a.txt");
  const Evaluation before = evaluated(task);
  EXPECT_NEAR(language_figure(before, "perplexity"), std::exp(language_figure(before, "loss")), 1e-6);
  // One token per byte and one at the end; the validation part starts after the first line end past 80%.
  const size_t cut = text.find('\n', static_cast<size_t>(static_cast<double>(text.size()) * (1 - static_cast<double>(0.2f)))) + 1;
  const auto bytes = static_cast<double>(text.size() - cut);
  EXPECT_NEAR(language_figure(before, "bits_per_byte"), language_figure(before, "loss") / std::log(2) * (bytes + 1) / bytes, 1e-6);

  OptimizerStep optimizer_step(*task.model, training.train_options());
  Rng rng(1);
  for (int64_t epoch = 0; epoch < 4; ++epoch)
    for (const std::vector<int64_t>& which : task.batches(epoch)) {
      optimizer_step.zero_grad();
      backward(task.forward(task.batch(epoch, which), {.mode = training_with(rng)}).loss);
      optimizer_step.step(training.train_options().rate);
    }
  const Evaluation after = evaluated(task);
  EXPECT_LT(language_figure(after, "loss"), 0.6 * language_figure(before, "loss"));
  EXPECT_GT(language_figure(after, "accuracy"), 0.5);

  const NoGrad no_grad;
  const std::vector<Sample> samples = task.samples();
  ASSERT_EQ(samples.size(), 8u);
  for (const Sample& sample : samples) {
    EXPECT_NE(text.find(sample.source + sample.truth), std::string::npos) << sample.source << "|" << sample.truth;
    EXPECT_FALSE(sample.guess.empty());
  }
}

TEST(Language, whole_texts_of_a_folder_are_held_out) {
  const Folder folder;
  for (int64_t i = 0; i < 10; ++i) write_text(folder / (std::to_string(i) + ".txt"), counting(6 + i));
  TrainingJob training("language");
  const Task task = make_task(training, folder.path(), {"preset=llama-mini", "model.num_key_value_heads=1"});
  EXPECT_EQ(task.model->architecture(), "LlamaForCausalLM");
  Rng rng(1);
  EXPECT_GT(task.forward(task.batch(0, {0, 1}), {.mode = training_with(rng)}).loss.item(), 1);
  EXPECT_GT(language_figure(evaluated(task), "loss"), 1);
}

TEST(Language, rejects_wrong_presets_and_files) {
  const Folder folder;
  write_text(folder / "a.txt", counting(60));
  TrainingJob wrong("language"), missing("language");
  expect_error<UsageError>([&] { make_task(wrong, folder / "a.txt", {"preset=bert-mini"}); },
                           "train: preset=bert-mini is not supported by language");
  expect_error<FileError>([&] { make_task(missing, folder / "b.txt"); }, "b.txt");
}

}  // namespace
}  // namespace heed::test
