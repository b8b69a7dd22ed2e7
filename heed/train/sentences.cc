// Classification of sentences and sentence pairs.
#include <algorithm>
#include <map>
#include <set>

#include "heed/data/text_data.h"
#include "heed/dist/split_work.h"
#include "heed/models/config.h"
#include "heed/models/cost.h"
#include "heed/models/inspect.h"
#include "heed/text/batches.h"
#include "heed/train/batch_order.h"
#include "heed/train/data_fingerprint.h"
#include "heed/train/doubtful_labels.h"
#include "heed/train/labels.h"
#include "heed/train/scores.h"
#include "heed/train/vocabulary.h"

namespace heed {
namespace {

constexpr int64_t kEvaluationTokens = 4096;

struct SentenceOptions {
  std::string data, validation_data = {}, test_data = {};
  TextColumns columns = {};
  VocabularyOptions vocabulary = {};
  int64_t max_length = 64, limit = 0;
};

struct LabelledSentences {
  std::vector<Encoding> encodings = {};
  std::vector<int64_t> labels = {};

  int64_t count() const { return std::ssize(labels); }
};

struct Sentences {
  LabelledSentences train, validation, test;
  std::vector<std::string> classes;
  TaskTokenizer tokenizer;
  TrainOptions train_options;
  std::shared_ptr<Model> model;
  std::vector<int64_t> lengths;  // of the training sentences
  double multiply_adds;          // per token, for sentences of 32 tokens

  TensorMap inputs(const LabelledSentences& data, std::span<const int64_t> which) const {
    return text_inputs(*model, tokenizer.tokenizer, data.encodings, which);
  }
  static std::vector<int64_t> labels(const LabelledSentences& data, std::span<const int64_t> which) {
    std::vector<int64_t> out;
    for (const int64_t i : which) out.push_back(data.labels[static_cast<size_t>(i)]);
    return out;
  }

  Batch batch(const std::vector<int64_t>& which) const {
    Batch out{.inputs = inputs(train, which), .samples = std::ssize(which)};
    out.inputs["labels"] = Tensor::from(labels(train, which), {std::ssize(which)}, kCpu);
    return out;
  }
  StepOutput forward(const Batch& batch, ForwardOptions forward_options) const {
    forward_options.label_smoothing = train_options.label_smoothing;
    const TensorMap out = (*model)(batch.inputs, forward_options);
    return {.loss = out.at("loss"),
            .metrics = {{"accuracy", accuracy_of(out.at("logits"), batch.inputs.at("labels"))}},
            .multiply_adds = multiply_adds * static_cast<double>(batch.inputs.at("input_ids").count())};
  }

  Evaluation evaluate(const LabelledSentences& data) const {
    ClassScores scores(classes);
    Batches batches;
    for (const std::vector<size_t>& places : batches_by_length(data.encodings, kEvaluationTokens))
      batches.emplace_back(places.begin(), places.end());
    split_work(
        world(), std::ssize(batches),
        [&](int64_t i) {
          return bytes_of_numbers((*model)(inputs(data, batches[static_cast<size_t>(i)])).at("logits").to_vector<float>());
        },
        [&](int64_t i, const std::string& logits) {
          scores.add(numbers_in<float>(logits), labels(data, batches[static_cast<size_t>(i)]));
        });
    return scores.evaluation();
  }

  Sample explain(const LabelledSentences& data, int64_t i) const {
    const TensorMap out = (*model)(inputs(data, std::span(&i, 1)), {.attentions = has_maps(*model)});
    Sample sample{.truth = classes[static_cast<size_t>(data.labels[static_cast<size_t>(i)])]};
    score_sample(sample, softmax(out.at("logits")).to_vector<float>(), classes);
    for (const int32_t id : data.encodings[static_cast<size_t>(i)].ids) sample.columns.push_back(tokenizer.tokenizer.display(id));
    const int64_t N = std::ssize(sample.columns);
    if (!out.contains("attentions.0") || out.at("attentions.0").size(3) != N) return sample;
    const std::vector<float> flow = rollout(out, "attentions.");
    sample.map_rows = 1;
    sample.map_columns = N;
    sample.map.assign(flow.begin(), flow.begin() + N);  // rollout of the first token, which is classified
    return sample;
  }
};

// Numeric labels are sorted as numbers, others as text.
std::vector<std::string> classes_in(const std::vector<LabelledText>& rows) {
  std::set<std::string> found;
  for (const LabelledText& row : rows) found.insert(row.label);
  std::vector<std::string> classes(found.begin(), found.end());
  const auto number = [](const std::string& label) { return !label.empty() && label.find_first_not_of("0123456789") == std::string::npos; };
  if (std::all_of(classes.begin(), classes.end(), number))
    std::sort(classes.begin(), classes.end(), [](const std::string& a, const std::string& b) { return std::stoull(a) < std::stoull(b); });
  return classes;
}

LabelledSentences encoded(const std::vector<LabelledText>& rows, const std::vector<std::string>& classes, const Tokenizer& tokenizer,
                          int64_t max_length, const std::string& source) {
  LabelledSentences out;
  std::map<std::string_view, int64_t> places;
  for (const std::string& name : classes) places.emplace(name, std::ssize(places));
  std::vector<Sentence> sentences;
  for (const LabelledText& row : rows) {
    const auto place = places.find(row.label);
    check<FileError>(place != places.end(), source, ": found the label ", in_quotes(row.label), ", which is not in the training part");
    sentences.push_back({row.text, row.pair});
    out.labels.push_back(place->second);
  }
  out.encodings = encode_sentences(tokenizer, sentences, EncodeOptions{.max_length = max_length}).encodings;
  return out;
}

// The file of a part: named in the settings, a part of the synthetic data, or next to the training file.
std::string part_file(const SentenceOptions& options, bool test) {
  const std::string& named = test ? options.test_data : options.validation_data;
  if (!named.empty()) return named;
  if (options.data == "opinions" || options.data == "entailment") return options.data + (test ? "/test" : "/validation");
  return test ? "" : sibling_table(options.data, kValidationNames);
}

// Moves the held-out rows out of `rows`.
std::vector<LabelledText> hold_out(std::vector<LabelledText>& rows, const TrainOptions& train_options) {
  const Split parts = split(std::ssize(rows), std::max(train_options.validation, 1e-6f), train_options.seed);
  const auto chosen = [&](const std::vector<int64_t>& which) {
    std::vector<LabelledText> out;
    for (const int64_t i : which) out.push_back(rows[static_cast<size_t>(i)]);
    return out;
  };
  std::vector<LabelledText> held_out = chosen(parts.held_out);
  rows = chosen(parts.kept);
  return held_out;
}

Json fingerprint_of_rows(const std::vector<LabelledText>& rows) {
  DataFingerprint fingerprint;
  for (const LabelledText& row : rows) {
    for (const std::string& text : {row.text, row.pair.value_or(""), row.label}) fingerprint.add(text);
    fingerprint.next();
  }
  return fingerprint.json();
}

Json sentences_config(const JobOptions& chosen, const std::vector<std::string>& classes, const Tokenizer& tokenizer) {
  Json config = chosen.from.empty() ? model_config(chosen.model) : config_from(chosen.from, ModelTask::sequence_classification);
  set_labels(config, classes);
  if (chosen.from.empty()) set_vocabulary(config, tokenizer);
  return config;
}

Task make_sentences_task(const std::string& name, SentenceOptions options, const JobOptions& chosen) {
  options.data = train_table_of(options.data);
  ChosenColumns columns;
  std::vector<LabelledText> rows = read_labelled(options.data, options.columns, &columns);
  const LabelDoubts doubts = doubts_about_labels(rows);
  check<FileError>(doubts.error.empty(), options.data, ": ", doubts.error);
  if (options.limit > 0 && options.limit < std::ssize(rows)) rows.resize(static_cast<size_t>(options.limit));
  const std::vector<std::string> classes = classes_in(rows);
  check<FileError>(classes.size() > 1, options.data, ": found ", classes.size(), " label, expected at least two");
  const std::string validation = part_file(options, false), test = part_file(options, true);
  const std::vector<LabelledText> held_out =
      validation.empty() ? hold_out(rows, chosen.train_options) : read_labelled(validation, options.columns);
  std::vector<std::string> texts;
  for (const LabelledText& row : rows) {
    texts.push_back(row.text);
    if (row.pair) texts.push_back(*row.pair);
  }
  TaskTokenizer tokenizer = tokenizer_for(chosen, options.vocabulary, texts);
  auto model = model_for(chosen, sentences_config(chosen, classes, tokenizer.tokenizer));
  const auto read = [&](const std::vector<LabelledText>& some, const std::string& source) {
    return encoded(some, classes, tokenizer.tokenizer, std::min(options.max_length, max_tokens(*model)), source);
  };
  const std::vector<LabelledText> test_rows = test.empty() ? std::vector<LabelledText>() : read_labelled(test, options.columns);
  const auto all = std::make_shared<Sentences>(Sentences{.train = read(rows, options.data),
                                                         .validation = read(held_out, validation),
                                                         .test = read(test_rows, test),
                                                         .classes = classes,
                                                         .tokenizer = tokenizer,
                                                         .train_options = chosen.train_options,
                                                         .model = model,
                                                         .lengths = {},
                                                         .multiply_adds = 0});
  for (const Encoding& encoding : all->train.encodings) all->lengths.push_back(encoding.size());
  const int64_t length = std::min<int64_t>(32, max_tokens(*model));
  all->multiply_adds = static_cast<double>(cost_of(*model, {.tokens = length}).total.training_multiply_adds) / static_cast<double>(length);
  Task task{.name = name, .model = model};
  if (!columns.empty()) task.notes.push_back(columns_text(options.data, columns));
  if (!doubts.warning.empty()) task.notes.push_back("warning: " + doubts.warning);
  task.counts = {{"train", all->train.count()}, {"validation", all->validation.count()}, {"test", all->test.count()}};
  task.data = {
      {"train", fingerprint_of_rows(rows)}, {"validation", fingerprint_of_rows(held_out)}, {"test", fingerprint_of_rows(test_rows)}};
  task.data["train"]["classes"] = classes;
  task.batches = [all](int64_t epoch) {
    return length_bucketed_batches(all->lengths, all->train_options.batch, all->train_options.seed, epoch);
  };
  task.batch = [all](int64_t, const std::vector<int64_t>& which) { return all->batch(which); };
  task.forward = [all](const Batch& batch, const ForwardOptions& forward_options) { return all->forward(batch, forward_options); };
  task.evaluate = [all] { return all->evaluate(all->validation); };
  if (all->test.count() > 0) task.test = [all] { return all->evaluate(all->test); };
  task.samples = [all] {
    const LabelledSentences& shown = all->test.count() > 0 ? all->test : all->validation;
    return pick_right_and_wrong(class_round_robin(shown.labels), [&](int64_t i) { return all->explain(shown, i); });
  };
  const int64_t first = 0;
  task.tracked = tracked_text(all->inputs(all->validation, std::span(&first, 1)), all->tokenizer.tokenizer);
  task.save_preprocessing = [all](const Path& folder) { all->tokenizer.save(folder); };
  return task;
}

TaskKind kind(const std::string& name, const std::string& summary, const std::string& data, const std::vector<std::string>& examples) {
  return {
      .name = name,
      .summary = summary,
      .preset = "bert-mini",
      .families = {"bert", "recurrent"},
      .examples = examples,
      .declare = [name, data](Settings& settings) {
        const auto options = std::make_shared<SentenceOptions>();
        options->data = data;
        const Allowed file{.path = true, .synthetic = {"opinions", "entailment"}};
        settings.heading("Texts");
        settings.add("data", options->data,
                     "A .tsv, .csv or .jsonl file, also .gz, or a folder with train.tsv, train.csv or train.jsonl; " + data + ": synthetic",
                     file);
        settings.add("validation_data", options->validation_data, "Validation data; empty: dev.* next to train.*, or a fraction of data",
                     file);
        settings.add("test_data", options->test_data, "Test data", file);
        settings.add("text_column", options->columns.text, "Name or number of the text column; empty: detected");
        settings.add("pair_column", options->columns.pair, "Name or number of the column of the second text");
        settings.add("label_column", options->columns.label, "Name or number of the label column");
        settings.add("limit", options->limit, "Train on this many texts; 0: all", {.least = 0});
        settings.add("max_length", options->max_length, "Maximum tokens of a text; longer ones are truncated", {.least = 4, .most = 1e6});
        declare(settings, options->vocabulary);
        return [name, options](const JobOptions& chosen) { return make_sentences_task(name, *options, chosen); };
      }};
}

}  // namespace

TaskKind sentiment_kind() {
  return kind("sentiment", "Classification of sentences", "opinions",
              {"data=opinions", "data=sst2/train.tsv.gz epochs=5", "data=reviews.csv from=runs/pretrain/001/best rate=1e-4"});
}

TaskKind pairs_kind() {
  return kind("pairs", "Classification of sentence pairs: does the second follow from the first?", "entailment",
              {"data=entailment", "data=nli.jsonl pair_column=hypothesis"});
}

}  // namespace heed
