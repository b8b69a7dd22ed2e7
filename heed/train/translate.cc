// Translation with an encoder-decoder.
#include <algorithm>
#include <cmath>

#include "heed/models/cost.h"
#include "heed/models/inspect.h"
#include "heed/models/translate.h"
#include "heed/ops/ops.h"
#include "heed/train/batch_order.h"
#include "heed/train/data_fingerprint.h"
#include "heed/train/labels.h"
#include "heed/train/next_token_scores.h"
#include "heed/train/padded_rows.h"
#include "heed/train/scores.h"
#include "heed/train/translate_data.h"
#include "heed/train/vocabulary.h"

namespace heed {
namespace {

constexpr int64_t kEvaluationPairs = 32;  // sentences; evaluation computes full logits
constexpr int64_t kShownSamples = 8, kListedTranslations = 20;

struct TranslateOptions {
  ParallelOptions data = {};
  VocabularyOptions vocabulary = {.kind = "bpe"};
  int64_t max_length = 100, beams = 4;
  float length_penalty = 1;
};

// State shared by the task's functions.
struct SentencePairs {
  EncodedPairs train, validation, test;
  int64_t left_out;  // training pairs dropped for their length
  TaskTokenizer tokenizer;
  Tokenizer target;
  TrainOptions train_options;
  std::shared_ptr<Model> model;
  int64_t pad, limit;  // limit: positions of the model
  GenerationOptions decoding = {};
  Json generation = {};                                      // generation_config.json of a new model
  std::map<std::pair<int64_t, int64_t>, double> costs = {};  // multiply-adds of one pair by source and target tokens

  TensorMap inputs(const EncodedPairs& pairs, std::span<const int64_t> which) const {
    const Tensor tokens = padded_rows(pairs.source, which, pad);
    return {{"input_ids", tokens},
            {"attention_mask", padding_mask(pairs.source, which)},
            {"labels", padded_rows(pairs.target, which, kNoLabel)}};
  }

  // Multiply-adds of one pair, interpolated between lengths that are multiples of kCostStep: a count takes some milliseconds.
  double cost(int64_t read, int64_t written) {
    constexpr int64_t kCostStep = 16;
    const auto up = [&](int64_t length) { return std::min((length + kCostStep - 1) / kCostStep * kCostStep, limit); };
    const int64_t M = up(read), N = up(written);
    const auto [at, is_new] = costs.try_emplace({M, N});
    if (is_new) at->second = static_cast<double>(cost_of(*model, {.batch = 1, .tokens = M, .target = N}).total.training_multiply_adds);
    return at->second * static_cast<double>(read + written) / static_cast<double>(M + N);
  }

  StepOutput forward(const Batch& batch, ForwardOptions forward_options) {
    forward_options.loss_only = true;
    forward_options.label_smoothing = train_options.label_smoothing;
    const double one = cost(batch.inputs.at("input_ids").size(1), batch.inputs.at("labels").size(1));
    return {.loss = (*model)(batch.inputs, forward_options).at("loss"), .multiply_adds = one * static_cast<double>(batch.samples)};
  }

  Evaluation evaluate(const EncodedPairs& pairs) const {
    Evaluation out = evaluate_next_tokens(*model, length_bucketed_batches(pairs.lengths(), kEvaluationPairs, 0, 0),
                                          [&](std::span<const int64_t> which) { return inputs(pairs, which); });
    out.detail = {{"left_out", left_out}};
    return out;
  }

  std::vector<Translated> translations(const EncodedPairs& pairs, int64_t count) const {
    EncodeOptions encode_options;
    encode_options.max_length = limit;
    std::vector<std::string> sources;
    for (int64_t i = 0; i < std::min(count, pairs.count()); ++i) sources.push_back(pairs.texts[static_cast<size_t>(i)].source);
    return translate(*model, {tokenizer.tokenizer, target, pad}, tokenizer.tokenizer.encode_all(sources, encode_options), decoding);
  }

  Evaluation test_in_detail() const {
    Evaluation out = evaluate(test);
    std::vector<std::string> written, references;
    for (Translated& each : translations(test, test.count())) written.push_back(std::move(each.text));
    RunningMean exact{0, static_cast<double>(test.count())};
    Json listed = Json::array();
    for (size_t i = 0; i < written.size(); ++i) {
      const auto& [source, reference] = test.texts[i];
      references.push_back(reference);
      exact.sum += written[i] == reference;
      if (std::ssize(listed) < kListedTranslations)
        listed.push_back({{"source", source}, {"reference", reference}, {"written", written[i]}});
    }
    // BLEU is undefined if no reference has four words, e.g. German numbers.
    if (std::any_of(references.begin(), references.end(), [](const std::string& each) { return tokens_13a(each).size() >= 4; }))
      out.figures.emplace_back("bleu", bleu(written, references).bleu);
    out.figures.emplace_back("chrf", chrf(written, references));
    out.figures.emplace_back("exact", exact.sum / exact.count);
    out.detail["translations"] = listed;
    return out;
  }

  std::vector<Sample> samples() const {
    const EncodedPairs& pairs = test.count() > 0 ? test : validation;
    std::vector<Sample> out;
    for (const Translated& each : translations(pairs, kShownSamples)) out.push_back(explain(pairs, std::ssize(out), each));
    return out;
  }

  // Alignment: the cross-attention of the last layer.
  Sample explain(const EncodedPairs& pairs, int64_t i, const Translated& translated) const {
    const std::vector<int64_t> written(translated.tokens.begin(), translated.tokens.end());
    const Translation& pair = pairs.texts[static_cast<size_t>(i)];
    Sample sample{.truth = pair.target, .guess = translated.text, .source = pair.source};
    sample.right = sample.guess == sample.truth;
    TensorMap batch = inputs(pairs, std::span(&i, 1));
    batch["labels"] = Tensor::from(written, {1, std::ssize(written)}, kCpu);
    const TensorMap out = (*model)(batch, {.attentions = has_maps(*model)});
    sample.score = std::exp(-static_cast<double>(out.at("loss").item()) * static_cast<double>(written.size()));
    for (const int64_t id : written) sample.rows.push_back(target.display(id));
    for (const int64_t id : pairs.source[static_cast<size_t>(i)]) sample.columns.push_back(tokenizer.tokenizer.display(id));
    if (!out.contains("cross_attentions.0")) return sample;
    const AttentionMaps maps = maps_in(out, "cross_attentions.", "cross", {});
    sample.map_rows = maps.N;
    sample.map_columns = maps.M;
    sample.map = maps.mean(maps.layers.size() - 1);
    return sample;
  }

  void save_preprocessing(const Path& folder) const {
    tokenizer.save(folder);
    if (!generation.is_null()) write_json(folder / "generation_config.json", generation);
  }
};

Json translate_config(const JobOptions& chosen, const Tokenizer& tokenizer) {
  if (!chosen.from.empty()) return config_from(chosen.from, ModelTask::seq2seq_lm);
  Json config = model_config(chosen.model);
  set_vocabulary(config, tokenizer);
  return config;
}

std::vector<std::string> lines_of_both(const std::vector<Translation>& pairs) {
  std::vector<std::string> out;
  for (const Translation& each : pairs) out.insert(out.end(), {each.source, each.target});
  return out;
}

// Generation settings: from the model's files, else a limit of 1.5 times the longest training target.
void set_decoding(SentencePairs& all, const TranslateOptions& options, const JobOptions& chosen) {
  size_t longest = 0;
  for (const std::vector<int64_t>& row : all.train.target) longest = std::max(longest, row.size());
  const int64_t max_length = std::min(static_cast<int64_t>(longest) * 3 / 2 + 10, all.limit);
  if (chosen.from.empty()) {
    const Json& config = all.model->config();
    all.generation = {{"num_beams", options.beams},
                      {"length_penalty", options.length_penalty},
                      {"max_length", max_length},
                      {"bad_words_ids", {{all.pad}}},  // padding is never generated
                      {"decoder_start_token_id", config.at("decoder_start_token_id")},
                      {"eos_token_id", config.at("eos_token_id")},
                      {"pad_token_id", all.pad}};
    all.decoding = generation_options(all.generation, "generation_config.json");
    return;
  }
  all.decoding = generation_options(*all.model);
  all.decoding.count = 1;
  all.decoding.sample = false;
  all.decoding.beams = options.beams;
  all.decoding.length_penalty = options.length_penalty;
  all.decoding.max_length = all.decoding.max_length > 0 ? std::min(all.decoding.max_length, all.limit) : max_length;
}

Task make_translate_task(const TranslateOptions& options, const JobOptions& chosen) {
  ParallelTexts texts = read_parallel_texts(options.data, static_cast<double>(chosen.train_options.validation), chosen.train_options.seed);
  const Json data{{"train", fingerprint_of(lines_of_both(texts.train))},
                  {"validation", fingerprint_of(lines_of_both(texts.validation))},
                  {"test", fingerprint_of(lines_of_both(texts.test))}};
  TaskTokenizer tokenizer = tokenizer_for(chosen, options.vocabulary, lines_of_both(texts.train), true);
  Tokenizer target = chosen.from.empty() ? tokenizer.tokenizer : Tokenizer::open_target(chosen.from);
  const auto model = model_for(chosen, translate_config(chosen, tokenizer.tokenizer));
  const int64_t limit = max_tokens(*model), count = std::ssize(texts.train);
  check<UsageError>(options.max_length <= limit, "translate: found max_length=", options.max_length, ", expected at most ", limit,
                    ", the model's limit");
  const auto encoded = [&](std::vector<Translation>& part, int64_t most) {
    return encode_pairs(std::move(part), tokenizer.tokenizer, target, most);
  };
  EncodedPairs train = drop_long_pairs(encoded(texts.train, 0), options.max_length);
  check<FileError>(train.count() > 0, "translate: found no pair of at most ", options.max_length, " tokens among ", count,
                   ", expected some; increase max_length");
  const int64_t left_out = count - train.count();
  const std::optional<int32_t> padding = tokenizer.tokenizer.padding_id();
  const int64_t pad = padding ? *padding : model->config().value("pad_token_id", int64_t{0});
  const auto all = std::make_shared<SentencePairs>(SentencePairs{.train = std::move(train),
                                                                 .validation = encoded(texts.validation, limit),
                                                                 .test = encoded(texts.test, limit),
                                                                 .left_out = left_out,
                                                                 .tokenizer = std::move(tokenizer),
                                                                 .target = std::move(target),
                                                                 .train_options = chosen.train_options,
                                                                 .model = model,
                                                                 .pad = pad,
                                                                 .limit = limit});
  set_decoding(*all, options, chosen);
  Task task{.name = "translate", .model = model, .metric = "loss"};
  if (!texts.columns.empty()) task.notes.push_back(texts.columns);
  task.counts = {{"train", all->train.count()}, {"validation", all->validation.count()}, {"test", all->test.count()}};
  task.data = data;
  task.batches = [all](int64_t epoch) {
    return length_bucketed_batches(all->train.lengths(), all->train_options.batch, all->train_options.seed, epoch);
  };
  task.batch = [all](int64_t, const std::vector<int64_t>& which) {
    return Batch{.inputs = all->inputs(all->train, which), .samples = std::ssize(which)};
  };
  task.forward = [all](const Batch& batch, const ForwardOptions& forward_options) { return all->forward(batch, forward_options); };
  task.evaluate = [all] { return all->evaluate(all->validation); };
  if (all->test.count() > 0) task.test = [all] { return all->test_in_detail(); };
  task.samples = [all] { return all->samples(); };
  if (all->validation.count() > 0) {
    const int64_t first = 0;
    task.tracked = tracked_text(all->inputs(all->validation, std::span(&first, 1)), all->tokenizer.tokenizer);
    for (const int64_t id : all->validation.target[0]) task.tracked.rows.push_back(all->target.display(id));
  }
  task.save_preprocessing = [all](const Path& folder) { all->save_preprocessing(folder); };
  return task;
}

// Defaults for data=numbers; written to config.toml.
void fill_for_numbers(Settings& settings) {
  const std::pair<const char*, const char*> defaults[] = {
      {"source", "english"}, {"target", "german"}, {"count", "20000"}, {"vocabulary", "400"}};
  for (const auto& [key, value] : defaults) settings.set(key, value, Settings::By::preset);
}

}  // namespace

TaskKind translate_kind() {
  return {.name = "translate",
          .summary = "Translation with an encoder-decoder",
          .preset = "transformer-small",
          .families = {"encoder-decoder"},
          .examples = {"width=128", "data=numbers source=french target=english count=50000", "data=multi30k source=en target=de epochs=20",
                       "data=pairs.tsv", "data=pairs.csv.gz source_column=english target_column=german",
                       "train_source=a.en train_target=a.de from=opus-mt-en-de rate=2e-5"},
          .declare = [](Settings& settings) {
            const auto options = std::make_shared<TranslateOptions>();
            declare(settings, options->data);
            settings.add("max_length", options->max_length, "Maximum tokens of a sentence; longer pairs are dropped from training",
                         {.least = 2, .most = 1e6});
            settings.add("beams", options->beams, "Beam size", {.least = 1, .most = 256});
            settings.add("length_penalty", options->length_penalty, "Length penalty of beam search; above 0 favours long translations");
            declare(settings, options->vocabulary);
            return [options, &settings](const JobOptions& chosen) {
              if (options->data.is_synthetic()) fill_for_numbers(settings);
              return make_translate_task(*options, chosen);
            };
          }};
}

}  // namespace heed
