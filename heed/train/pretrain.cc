// Pre-training of encoders (Devlin et al. 2019): masked words, and whether the second segment belongs to the first.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "heed/data/synthetic_documents.h"
#include "heed/models/cost.h"
#include "heed/models/inspect.h"
#include "heed/models/labelled_tokens.h"
#include "heed/train/batch_order.h"
#include "heed/train/evaluate.h"
#include "heed/train/labels.h"
#include "heed/train/pretrain_data.h"
#include "heed/train/vocabulary.h"

namespace heed {
namespace {

constexpr int64_t kValidationEpoch = 1 << 22;  // random numbers for validation, which no training epoch uses

struct TaskOptions {
  std::string data = "opinions", inference_data = "entailment";
  PretrainOptions samples = {};
  VocabularyOptions vocabulary = {};
};

using Documents = std::vector<std::vector<std::string>>;
using Pairs = std::vector<SentencePair>;

struct PretrainTexts {
  Documents train = {}, validation = {};
  Pairs train_pairs = {}, validation_pairs = {};
};

// Appends the two parts of a split.
template <class T>
void part(const std::vector<T>& all, const Split& places, std::vector<T>& kept, std::vector<T>& held_out) {
  for (const int64_t i : places.kept) kept.push_back(all[static_cast<size_t>(i)]);
  for (const int64_t i : places.held_out) held_out.push_back(all[static_cast<size_t>(i)]);
}

PretrainTexts read_texts(const TaskOptions& options, const TrainOptions& train_options) {
  constexpr int64_t train_count = 8000, held_out_count = 1000;
  PretrainTexts out;
  const double share = std::max(static_cast<double>(train_options.validation), 1e-6);
  if (options.data == "opinions") {
    out.train = synthetic_documents(train_count, 1);
    out.validation = synthetic_documents(held_out_count, 1, DataPart::validation);
  } else {
    const Documents all = read_documents(options.data);
    part(all, split(std::ssize(all), share, train_options.seed), out.train, out.validation);
  }
  if (!options.samples.inference) return out;
  if (options.inference_data == "entailment") {
    out.train_pairs = inference_pairs(synthetic_entailment(train_count, 1), options.inference_data);
    out.validation_pairs = inference_pairs(synthetic_entailment(held_out_count, 1, DataPart::validation), options.inference_data);
  } else {
    const Pairs all = inference_pairs(read_labelled(options.inference_data), options.inference_data);
    part(all, split(std::ssize(all), share, train_options.seed), out.train_pairs, out.validation_pairs);
  }
  return out;
}

std::vector<std::string> all_sentences(const PretrainTexts& texts) {
  std::vector<std::string> out;
  for (const std::vector<std::string>& document : texts.train) out.insert(out.end(), document.begin(), document.end());
  for (const SentencePair& pair : texts.train_pairs) out.insert(out.end(), {pair.first, pair.second});
  return out;
}

// Rows of tokens with fillers at their ends. x: (B, N) -> (B, width)
Tensor filled(const Tensor& x, int64_t width, int64_t filler) {
  const std::vector<int64_t> values = x.to_vector<int64_t>();
  std::vector<int64_t> out;
  for (auto row = values.begin(); row != values.end(); row += x.size(1)) {
    out.insert(out.end(), row, row + x.size(1));
    out.insert(out.end(), static_cast<size_t>(width - x.size(1)), filler);
  }
  return Tensor::from(out, {x.size(0), width}, kCpu);
}

// State shared by the task's functions.
struct Pretraining {
  PretrainData train, validation;
  PretrainOptions options;
  TaskTokenizer tokenizer;
  TrainOptions train_options;
  std::shared_ptr<Model> model;
  double multiply_adds;  // of one token, forward and backward

  bool pairs() const { return !options.pair_tasks().empty(); }

  Batch training_batch(int64_t epoch, const std::vector<int64_t>& which) const {
    Batch out = train.batch(train_options.seed, epoch, which);
    return model->device() == kCpu ? out : in_one_shape(std::move(out));
  }

  // Adds the inputs that the model would otherwise compute on the host, and pads nearly full batches to one shape, so that a step can run
  // as a CUDA graph.
  Batch in_one_shape(Batch batch) const {
    TensorMap& inputs = batch.inputs;
    const int64_t width = options.max_length;
    if (!options.masked || !model->takes(kLabelledRows) || 4 * inputs.at("input_ids").size(1) < 3 * width) return batch;
    inputs[kTokenCounts] = converted(sum(converted(inputs.at("attention_mask"), DType::f32), {1}), DType::i64);
    inputs.erase("attention_mask");
    inputs["input_ids"] = filled(inputs.at("input_ids"), width, tokenizer.tokenizer.padding_id().value_or(0));
    inputs["token_type_ids"] = filled(inputs.at("token_type_ids"), width, 0);
    inputs["labels"] = filled(inputs.at("labels"), width, -100);
    const auto most_labels = static_cast<int64_t>(std::ceil(static_cast<double>(options.masked_share) * static_cast<double>(width)));
    inputs = with_labelled_tokens(std::move(inputs), most_labels);
    batch.same_work = true;
    return batch;
  }

  StepOutput forward(const Batch& batch, ForwardOptions forward_options) const {
    forward_options.loss_only = true;
    forward_options.label_smoothing = train_options.label_smoothing;
    const TensorMap out = (*model)(batch.inputs, forward_options);
    const auto tokens = static_cast<double>(batch.inputs.at("input_ids").count());
    StepOutput outcome{.loss = out.at("loss"), .multiply_adds = multiply_adds * tokens};
    if (pairs()) outcome.metrics["pair_accuracy"] = accuracy_of(out.at("seq_relationship_logits"), batch.inputs.at("next_sentence_label"));
    return outcome;
  }

  Evaluation evaluate() const {
    PretrainScores scores(*model, true);
    const Batches batches = batches_in_order(validation.count(), validation.samples_per_evaluation());
    scores.add_all(std::ssize(batches),
                   [&](int64_t i) { return validation.batch(train_options.seed, kValidationEpoch, batches[static_cast<size_t>(i)]); });
    return scores.evaluation();
  }

  // The first masked word, with the attention rollout of its position.
  Sample explain(int64_t i) const {
    const Batch one = validation.batch(train_options.seed, kValidationEpoch, {{i}});
    const std::vector<int64_t> labels = one.inputs.at("labels").to_vector<int64_t>(), ids = one.inputs.at("input_ids").to_vector<int64_t>();
    const auto place = std::find_if(labels.begin(), labels.end(), [](int64_t label) { return label != -100; }) - labels.begin();
    Sample sample;
    if (place == std::ssize(labels)) return sample;
    TensorMap inputs = one.inputs;
    inputs.erase("labels");
    const TensorMap out = (*model)(inputs, {.attentions = has_maps(*model)});
    const Tensor& words = out.at("prediction_logits");
    const std::vector<float> probabilities = softmax(slice(words, 1, place, place + 1)).to_vector<float>();
    const auto best = std::max_element(probabilities.begin(), probabilities.end());
    const Tokenizer& tokens = tokenizer.tokenizer;
    sample.truth = tokens.display(labels[static_cast<size_t>(place)]);
    sample.guess = tokens.display(best - probabilities.begin());
    sample.score = *best;
    sample.right = sample.guess == sample.truth;
    for (const int64_t id : ids) sample.columns.push_back(tokens.display(id));
    const int64_t N = std::ssize(ids);
    if (!out.contains("attentions.0") || out.at("attentions.0").size(2) != N || out.at("attentions.0").size(3) != N) return sample;
    const std::vector<float> flow = rollout(out, "attentions.");
    sample.map.assign(flow.begin() + place * N, flow.begin() + (place + 1) * N);
    sample.map_rows = 1;
    sample.map_columns = N;
    return sample;
  }
};

Json pretrain_config(const JobOptions& chosen, const PretrainOptions& options, const Tokenizer& tokenizer) {
  Json config = chosen.from.empty() ? model_config(chosen.model) : read_json(Path(chosen.from) / "config.json");
  set_task(config, ModelTask::pretraining, chosen.from);
  if (!chosen.from.empty()) return config;
  config.erase("num_labels");
  set_vocabulary(config, tokenizer);
  const Architecture& architecture = architecture_of(Config(config, "config.json"));
  if (const std::string& key = architecture.family->keys.positions; !chosen.model.model.contains(key))
    config[key] = std::max(architecture.family->positions(Config(config, "config.json")), options.max_length);
  return config;
}

Task make_pretrain_task(const TaskOptions& options, const JobOptions& chosen) {
  const PretrainOptions& samples = options.samples;
  check<UsageError>(samples.masked || !samples.pair_tasks().empty(),
                    "pretrain: found no objective, expected at least one of masked, next, inversion and inference to be true");
  const PretrainTexts texts = read_texts(options, chosen.train_options);
  TaskTokenizer tokenizer = tokenizer_for(chosen, options.vocabulary, all_sentences(texts));
  auto model = model_for(chosen, pretrain_config(chosen, samples, tokenizer.tokenizer));
  check<UsageError>(samples.max_length <= max_tokens(*model), "pretrain: max_length=", samples.max_length, ", expected at most ",
                    max_tokens(*model), ", the model's limit");
  const auto length = static_cast<double>(samples.max_length);
  const auto masked = static_cast<int64_t>(std::lround(static_cast<double>(samples.masked_share) * length));
  const ModelCost cost = cost_of(*model, {.tokens = samples.max_length, .labels = samples.masked ? masked : -1});
  const auto all = std::make_shared<Pretraining>(Pretraining{
      .train = PretrainData(tokenizer.tokenizer, samples, texts.train, texts.train_pairs, options.data + ", training part"),
      .validation =
          PretrainData(tokenizer.tokenizer, samples, texts.validation, texts.validation_pairs, options.data + ", validation part"),
      .options = samples,
      .tokenizer = tokenizer,
      .train_options = chosen.train_options,
      .model = model,
      .multiply_adds = static_cast<double>(cost.total.training_multiply_adds) / length});
  Task task{.name = "pretrain", .model = model, .metric = "loss"};
  task.counts = {{"train", all->train.count()}, {"validation", all->validation.count()}};
  task.data = {{"train", fingerprint_of_texts(texts.train, texts.train_pairs)},
               {"validation", fingerprint_of_texts(texts.validation, texts.validation_pairs)}};
  task.batches = [all](int64_t epoch) {
    return shuffled_batches(all->train.count(), all->train_options.batch, all->train_options.seed, epoch);
  };
  task.batch = [all](int64_t epoch, const std::vector<int64_t>& which) { return all->training_batch(epoch, which); };
  task.forward = [all](const Batch& batch, const ForwardOptions& forward_options) { return all->forward(batch, forward_options); };
  task.evaluate = [all] { return all->evaluate(); };
  if (samples.masked)
    task.samples = [all] {
      std::vector<int64_t> order(static_cast<size_t>(all->validation.count()));
      std::iota(order.begin(), order.end(), 0);
      return pick_right_and_wrong(order, [&](int64_t i) { return all->explain(i); });
    };
  task.tracked = tracked_text(all->validation.batch(chosen.train_options.seed, kValidationEpoch, {{0}}).inputs, all->tokenizer.tokenizer);
  task.save_preprocessing = [all](const Path& folder) { all->tokenizer.save(folder); };
  return task;
}

}  // namespace

TaskKind pretrain_kind() {
  return {.name = "pretrain",
          .summary = "Pre-training of an encoder on plain text: masked words and segment pairs",
          .preset = "bert-mini",
          .families = {"bert"},
          .examples = {"data=texts epochs=10", "data=book.txt next=false max_length=64", "inversion=true inference=true"},
          .declare = [](Settings& settings) {
            const auto options = std::make_shared<TaskOptions>();
            PretrainOptions& samples = options->samples;
            settings.heading("Text");
            settings.add("data", options->data, "Text file or folder of text files; opinions: synthetic",
                         {.path = true, .synthetic = {"opinions"}});
            settings.add("max_length", samples.max_length, "Maximum tokens of a sample", {.least = 8, .most = 8192});
            settings.add("masked", samples.masked, "Predict masked words");
            settings.add("masked_share", samples.masked_share, "Fraction of tokens to mask", {.least = 0.001, .most = 0.9});
            settings.add("next", samples.next, "Predict whether the second segment follows the first in the text");
            settings.add("inversion", samples.inversion, "Predict whether the second segment is the first with its words in reverse order");
            settings.add("inference", samples.inference, "Predict whether the second sentence follows logically from the first");
            settings.add("inference_data", options->inference_data, "Labelled sentence pairs; entailment: synthetic",
                         {.path = true, .synthetic = {"entailment"}});
            declare(settings, options->vocabulary);
            return [options](const JobOptions& chosen) { return make_pretrain_task(*options, chosen); };
          }};
}

}  // namespace heed
