// Pre-training samples follow the papers, and a small encoder trains on them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "heed/data/synthetic_documents.h"
#include "heed/train/batch_order.h"
#include "heed/train/optimizer_step.h"
#include "heed/train/pretrain_data.h"
#include "heed/train/training_job.h"
#include "heed/train/vocabulary.h"
#include "tests/expect_error.h"
#include "tests/test_device.h"

namespace heed::test {
namespace {

using Documents = std::vector<std::vector<std::string>>;

Tokenizer tokenizer_of(const Documents& documents, const std::string& kind = "wordpiece", int64_t size = 400) {
  std::vector<std::string> texts;
  for (const auto& document : documents) texts.insert(texts.end(), document.begin(), document.end());
  return tokenizer_for({}, {.kind = kind, .size = size}, texts).tokenizer;
}

const Documents& some_documents() {
  static const Documents documents = synthetic_documents(600, 3);
  return documents;
}
const Tokenizer& some_tokenizer() {
  static const Tokenizer tokenizer = tokenizer_of(some_documents());
  return tokenizer;
}

std::vector<int64_t> tokens_of(const std::vector<std::string>& sentences) {
  std::vector<int64_t> out;
  for (const std::string& sentence : sentences)
    for (const int32_t id : some_tokenizer().encode(sentence, {.add_special_tokens = false}).ids) out.push_back(id);
  return out;
}

// The two segments, without special tokens.
std::array<std::vector<int64_t>, 2> segments(const PretrainSample& sample) {
  std::array<std::vector<int64_t>, 2> out;
  for (size_t i = 1; i < sample.ids.size(); ++i)
    if (i + 1 < sample.ids.size() && sample.types[i] == sample.types[i + 1])
      out[static_cast<size_t>(sample.types[i])].push_back(sample.ids[i]);
  return out;
}

TEST(SyntheticDocuments, have_one_topic_each) {
  const Documents& documents = some_documents();
  ASSERT_GT(documents.size(), 20u);
  std::set<std::string> seen;
  for (const auto& document : documents) {
    EXPECT_GT(document.size(), 1u);
    bool soup = false, singer = false;
    for (const std::string& sentence : document) {
      soup = soup || sentence.find(" soup") != std::string::npos;
      singer = singer || sentence.find(" singer") != std::string::npos;
    }
    EXPECT_FALSE(soup && singer);
    seen.insert(document[0]);
  }
  EXPECT_GT(seen.size(), documents.size() / 2);
  EXPECT_EQ(synthetic_documents(600, 3), documents);
  EXPECT_NE(synthetic_documents(600, 3, DataPart::validation), documents);
}

TEST(PretrainData, masks_the_right_fractions) {
  const PretrainData data(some_tokenizer(), {.max_length = 64}, some_documents(), {}, "test");
  const int64_t cls = *some_tokenizer().id("[CLS]"), sep = *some_tokenizer().id("[SEP]"), mask = *some_tokenizer().id("[MASK]");
  double words = 0, chosen = 0, masked = 0, kept = 0, other = 0;
  for (int64_t epoch = 0; epoch < 20; ++epoch)
    for (int64_t i = 0; i < data.count(); ++i) {
      const PretrainSample sample = data.sample(sample_key(1, epoch, i), i);
      ASSERT_LE(sample.ids.size(), 64u);
      ASSERT_TRUE(sample.ids.front() == cls && sample.ids.back() == sep);
      ASSERT_EQ(std::count(sample.ids.begin(), sample.ids.end(), sep), 2);
      for (size_t t = 0; t < sample.ids.size(); ++t) {
        const int64_t id = sample.ids[t], label = sample.labels[t];
        if (label == -100) {
          words += !some_tokenizer().is_special(id);
          ASSERT_NE(id, mask);
          continue;
        }
        ASSERT_FALSE(some_tokenizer().is_special(label));
        ASSERT_TRUE(id == mask || !some_tokenizer().is_special(id));
        ++words, ++chosen;
        ++(id == mask ? masked : id == label ? kept : other);
      }
    }
  ASSERT_GT(chosen, 5000);
  const auto near = [](double count, double of, double share) {
    EXPECT_NEAR(count / of, share, 4 * std::sqrt(share * (1 - share) / of)) << count << " of " << of;
  };
  near(chosen, words, 0.15);
  near(masked, chosen, 0.8);
  near(other, chosen, 0.1);
  near(kept, chosen, 0.1);
}

TEST(PretrainData, the_second_segment_is_the_next_one_or_of_another_document) {
  const PretrainData data(some_tokenizer(), {.masked = false, .max_length = 64}, some_documents(), {}, "test");
  double next = 0, all = 0;
  for (int64_t epoch = 0; epoch < 4; ++epoch)
    for (int64_t i = 0; i < data.count(); ++i) {
      const PretrainSample sample = data.sample(sample_key(1, epoch, i), i);
      ASSERT_EQ(sample.task, PairTask::next);
      ASSERT_EQ(std::count_if(sample.labels.begin(), sample.labels.end(), [](int64_t label) { return label != -100; }), 0);
      const auto [first, second] = segments(sample);
      ASSERT_TRUE(!first.empty() && !second.empty());
      const auto occurs_in = [&](std::vector<int64_t> what, int64_t document) {
        const std::vector<int64_t> whole = tokens_of(some_documents()[static_cast<size_t>(document)]);
        return std::search(whole.begin(), whole.end(), what.begin(), what.end()) != whole.end();
      };
      std::vector<int64_t> both = first;
      both.insert(both.end(), second.begin(), second.end());
      ++all;
      if (sample.pair_label == 0) {
        ++next;
        ASSERT_EQ(sample.first_document, sample.second_document);
        ASSERT_TRUE(occurs_in(both, sample.first_document));
      } else {
        ASSERT_NE(sample.first_document, sample.second_document);
        ASSERT_TRUE(occurs_in(first, sample.first_document) && occurs_in(second, sample.second_document));
      }
    }
  EXPECT_NEAR(next / all, 0.5, 2 / std::sqrt(all));
}

TEST(PretrainData, inverted_orders_and_conclusions) {
  const Documents documents{{"red green blue white black.", "one two three four."}, {"yes", "far near high low deep"}};
  const Tokenizer tokenizer = tokenizer_of({documents[0], documents[1], documents[0], documents[1]}, "wordpiece", 200);
  const std::vector<SentencePair> pairs{{"red is blue", "blue", true}, {"white is far", "deep", false}};
  const PretrainOptions options{.masked = false, .next = false, .inversion = true, .inference = true, .max_length = 32};
  const PretrainData data(tokenizer, options, documents, pairs, "test");
  int64_t inverted = 0, in_order = 0, mixed = 0, follows = 0, does_not = 0;
  for (int64_t epoch = 0; epoch < 400; ++epoch) {
    const PretrainSample sample = data.sample(sample_key(1, epoch, 0), epoch % data.count());
    const auto [first, second] = segments(sample);
    const auto text = [&](const std::vector<int64_t>& ids) { return tokenizer.decode(std::vector<int32_t>(ids.begin(), ids.end())); };
    if (sample.task == PairTask::inference) {
      const bool right = text(second) == "blue";
      EXPECT_EQ(text(first), right ? "red is blue" : "white is far");
      EXPECT_EQ(sample.pair_label, right ? 0 : 1);
      ++(right ? follows : does_not);
      continue;
    }
    ASSERT_EQ(sample.task, PairTask::inversion);
    const std::string output = text(second);
    const bool backwards =
        output == "yes" || output == "black. white blue green red" || output == "four. three two one" || output == "deep low high near far";
    EXPECT_EQ(sample.pair_label, backwards ? 0 : 1) << text(first) << " / " << output;
    ++(backwards ? inverted : first == second ? in_order : mixed);
  }
  EXPECT_TRUE(inverted > 60 && in_order > 20 && mixed > 20 && follows > 60 && does_not > 60)
      << inverted << " " << in_order << " " << mixed << " " << follows << " " << does_not;
}

TEST(PretrainData, is_a_function_of_its_key) {
  const PretrainData data(some_tokenizer(), {.inversion = true, .max_length = 64}, some_documents(), {}, "test");
  int64_t changed = 0;
  for (int64_t i = 0; i < 20; ++i) {
    const PretrainSample once = data.sample(sample_key(1, 0, i), i), again = data.sample(sample_key(1, 0, i), i);
    EXPECT_TRUE(once.ids == again.ids && once.labels == again.labels && once.pair_label == again.pair_label);
    changed += data.sample(sample_key(1, 1, i), i).labels != once.labels;
  }
  EXPECT_GT(changed, 15);
}

TEST(PretrainData, reports_missing_data) {
  const Documents one{{"A sentence.", "Another one."}}, short_ones{{"A sentence."}, {"Another one."}};
  const Tokenizer good = tokenizer_of({one[0], one[0]}, "wordpiece", 60);
  expect_error<FileError>([&] { PretrainData(good, {}, one, {}, "book.txt"); }, "book.txt: found 1 document");
  expect_error<FileError>([&] { PretrainData(good, {}, short_ones, {}, "book.txt"); }, "book.txt: found no documents of two sentences");
  expect_error<FileError>([&] { PretrainData(good, {.next = false, .inference = true}, one, {}, "book.txt"); }, "found no pairs");
  const Tokenizer characters = tokenizer_of({one[0], one[0]}, "characters", 60);
  expect_error<UsageError>([&] { PretrainData(characters, {}, one, {}, ""); }, "the tokenizer has no [MASK]");
}

const std::vector<std::string> kTinyPretraining{"vocabulary=300",  "max_length=40", "layers=1", "width=32", "heads=2",
                                                "feed_forward=64", "dropout=0",     "batch=16", "rate=1e-2"};

Metrics pretrain_evaluated(const Task& task) {
  const NoGrad no_grad;
  return task.evaluate().figures;
}
double pretrain_figure(const Metrics& figures, const std::string& name) {
  for (const auto& [key, value] : figures)
    if (key == name) return value;
  ADD_FAILURE() << "no figure " << name;
  return 0;
}

// batches: repeated until there are that many steps
void train_steps(const Task& task, const TrainOptions& options, const std::vector<std::vector<int64_t>>& batches, int64_t steps) {
  OptimizerStep optimizer_step(*task.model, options);
  Rng rng(1);
  for (int64_t step = 0; step < steps; ++step) {
    optimizer_step.zero_grad();
    backward(task.forward(task.batch(0, batches[static_cast<size_t>(step) % batches.size()]), {.mode = training_with(rng)}).loss);
    optimizer_step.step(options.rate);
  }
}

// The accuracy of always guessing the most frequent of the masked words.
double share_of_most_frequent(const Task& task) {
  std::map<int64_t, double> counts;
  double all = 0, most = 0;
  for (const std::vector<int64_t>& batch : task.batches(0))
    for (const int64_t label : task.batch(0, batch).inputs.at("labels").to_vector<int64_t>())
      if (label != -100) ++all, most = std::max(most, ++counts[label]);
  return most / all;
}

TEST(Pretrain, a_small_model_learns) {
  TrainingJob training("pretrain");
  training.apply(kTinyPretraining);
  training.apply({"inversion=true", "inference=true"});
  const Task task = training.make();
  EXPECT_EQ(task.model->architecture(), "BertForPreTraining");
  const Metrics before = pretrain_evaluated(task);
  EXPECT_EQ(pretrain_evaluated(task), before);  // the same words are masked every time
  EXPECT_NEAR(pretrain_figure(before, "masked_loss"), std::log(300), 0.3);
  EXPECT_NEAR(pretrain_figure(before, "loss"), pretrain_figure(before, "masked_loss") + pretrain_figure(before, "pair_loss"), 1e-9);
  train_steps(task, training.train_options(), task.batches(0), 500);
  const Metrics after = pretrain_evaluated(task);
  EXPECT_LT(pretrain_figure(after, "masked_loss"), pretrain_figure(before, "masked_loss") - 1.2);
  EXPECT_GT(pretrain_figure(after, "masked_accuracy"), share_of_most_frequent(task) + 0.02);
  for (const char* name : {"pair_accuracy", "next_accuracy", "inversion_accuracy", "inference_accuracy"}) pretrain_figure(after, name);
  const std::vector<Sample> samples = task.samples();
  ASSERT_FALSE(samples.empty());
  EXPECT_EQ(samples[0].map.size(), samples[0].columns.size());
}

// GPUs get batches of one shape, with inputs that the model would otherwise compute on the host.
TEST(Pretrain, batches_of_one_shape_have_the_same_loss) {
  const auto made_on = [](Device device) {
    set_default_device(device);
    TrainingJob training("pretrain");
    training.apply(kTinyPretraining);
    return training.make();
  };
  const Device before = default_device();
  const Task plain = made_on(kCpu), task = made_on(test_device());
  set_default_device(before);
  std::set<std::vector<int64_t>> counts;
  for (const std::vector<int64_t>& which : {std::vector<int64_t>{0, 1, 2, 3, 4, 5}, {6, 7, 8, 9, 10, 11}}) {
    const Batch batch = task.batch(0, which), original = plain.batch(0, which);
    EXPECT_EQ(batch.same_work, test_device() != kCpu);
    EXPECT_EQ(batch.inputs.contains("attention_mask"), test_device() == kCpu);
    counts.insert({batch.inputs.at("input_ids").count(), batch.inputs.at("labels").count()});
    const float expected = task.forward(original, {}).loss.item();
    EXPECT_NEAR(task.forward(batch, {}).loss.item(), expected, 1e-4 * expected);
  }
  if (test_device() != kCpu) {
    EXPECT_EQ(counts.size(), 1u);
  }
}

// Unseen pairs take a model of this size thousands of steps; so it only memorizes a few pairs.
TEST(Pretrain, a_small_model_memorizes_pairs) {
  for (const std::string objective : {"next", "inversion", "inference"}) {
    TrainingJob training("pretrain");
    training.apply(kTinyPretraining);
    training.apply({"masked=false", "next=false", objective + "=true", "rate=3e-3"});
    const Task task = training.make();
    const std::vector<int64_t> few = task.batches(0)[0];
    train_steps(task, training.train_options(), {few}, 200);
    const NoGrad no_grad;
    const RunningMean accuracy = task.forward(task.batch(0, few), {}).metrics.at("pair_accuracy").value();
    EXPECT_GT(accuracy.sum / accuracy.count, 0.9) << objective;  // chance: 0.5
  }
}

TEST(Pretrain, each_task_alone_has_a_loss) {
  TrainingJob words("pretrain"), pairs("pretrain"), nothing("pretrain");
  words.apply(kTinyPretraining);
  words.apply({"next=false"});
  pairs.apply(kTinyPretraining);
  pairs.apply({"masked=false"});
  for (TrainingJob* training : {&words, &pairs}) {
    const Task task = training->make();
    Rng rng(1);
    const StepOutput outcome = task.forward(task.batch(0, {0, 1, 2}), {.mode = training_with(rng)});
    EXPECT_NEAR(outcome.loss.item(), training == &words ? std::log(300.0f) : std::log(2.0f), 0.5);
    EXPECT_EQ(outcome.metrics.contains("pair_accuracy"), training == &pairs);
    const Metrics figures = pretrain_evaluated(task);
    EXPECT_EQ(pretrain_figure(figures, "loss"), pretrain_figure(figures, training == &words ? "masked_loss" : "pair_loss"));
  }
  nothing.apply({"masked=false", "next=false"});
  expect_error<UsageError>([&] { nothing.make(); }, "pretrain: found no objective");
}

}  // namespace
}  // namespace heed::test
