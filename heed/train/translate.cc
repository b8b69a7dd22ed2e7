// Translation: an encoder-decoder learns from sentences in two languages.
#include <algorithm>
#include <cmath>

#include "heed/models/cost.h"
#include "heed/models/inspect.h"
#include "heed/models/translate.h"
#include "heed/ops/ops.h"
#include "heed/train/data_print.h"
#include "heed/train/labels.h"
#include "heed/train/order.h"
#include "heed/train/scores.h"
#include "heed/train/translate_data.h"
#include "heed/train/vocabulary.h"

namespace heed {
namespace {

constexpr int64_t kEvaluatedAtOnce = 32;  // words of every token are computed, not only their loss
constexpr int64_t kShown = 8, kTold = 20;
constexpr int64_t kNoLabel = -100;

struct TranslateOptions {
  ParallelOptions data = {};
  VocabularyOptions vocabulary = {.kind = "bpe"};
  int64_t max_length = 100, beams = 4;
  float length_penalty = 1;
};

// Everything that the functions of the task share.
struct SentencePairs {
  EncodedPairs train, validation, test;
  int64_t left_out;  // of the training part, for their length
  TaskTokenizer tokenizer;
  Tokenizer target;
  LearnOptions learn;
  std::shared_ptr<Model> model;
  int64_t pad, limit;  // limit: tokens that the model has positions for
  GenerationOptions writing = {};
  Json generation = {};                                      // generation_config.json of a model from scratch
  std::map<std::pair<int64_t, int64_t>, double> costs = {};  // multiply-adds of one pair by tokens read and written

  Named inputs(const EncodedPairs& pairs, std::span<const int64_t> which) const {
    const Tensor tokens = padded_rows(pairs.source, which, pad);
    std::vector<int64_t> mask;
    for (const int64_t i : which)
      for (int64_t j = 0; j < tokens.size(1); ++j) mask.push_back(j < std::ssize(pairs.source[static_cast<size_t>(i)]));
    return {{"input_ids", tokens},
            {"attention_mask", Tensor::from(mask, tokens.shape())},
            {"labels", padded_rows(pairs.target, which, kNoLabel)}};
  }

  double cost(int64_t read, int64_t written) {
    const auto [at, is_new] = costs.try_emplace({read, written});
    if (is_new) at->second = static_cast<double>(cost_of(*model, {.batch = 1, .tokens = read, .target = written}).total.multiply_adds);
    return at->second;
  }

  Outcome learn_from(const Batch& batch, Ask ask) {
    ask.loss_only = true;
    ask.label_smoothing = learn.label_smoothing;
    const double one = cost(batch.inputs.at("input_ids").size(1), batch.inputs.at("labels").size(1));
    return {.loss = (*model)(batch.inputs, ask).at("loss"), .multiply_adds = one * static_cast<double>(batch.samples)};
  }

  Evaluation evaluate(const EncodedPairs& pairs) const {
    double loss = 0;
    Share right;
    for (const std::vector<int64_t>& which : batches_of_like_length(pairs.lengths(), kEvaluatedAtOnce, 0, 0)) {
      const Named given = inputs(pairs, which), out = (*model)(given);
      const std::vector<int64_t> labels = given.at("labels").to_vector<int64_t>();
      const std::vector<int64_t> guesses = argmax(out.at("logits")).to_vector<int64_t>();
      double tokens = 0;
      for (size_t i = 0; i < labels.size(); ++i) {
        tokens += labels[i] != kNoLabel;
        right.sum += labels[i] == guesses[i];
      }
      loss += static_cast<double>(out.at("loss").item()) * tokens;
      right.of += tokens;
    }
    loss /= right.of;
    return {.figures = {{"loss", loss}, {"perplexity", std::exp(loss)}, {"accuracy", right.sum / right.of}},
            .detail = {{"left_out", left_out}}};
  }

  std::vector<Translated> translations(const EncodedPairs& pairs, int64_t count) const {
    EncodeOptions how;
    how.max_length = limit;
    std::vector<std::string> sources;
    for (int64_t i = 0; i < std::min(count, pairs.count()); ++i) sources.push_back(pairs.texts[static_cast<size_t>(i)].source);
    return translate(*model, {tokenizer.tokenizer, target, pad}, tokenizer.tokenizer.encode_all(sources, how), writing);
  }

  Evaluation test_in_detail() const {
    Evaluation out = evaluate(test);
    std::vector<std::string> written, references;
    for (Translated& each : translations(test, test.count())) written.push_back(std::move(each.text));
    Share exact{0, static_cast<double>(test.count())};
    Json told = Json::array();
    for (size_t i = 0; i < written.size(); ++i) {
      const auto& [source, reference] = test.texts[i];
      references.push_back(reference);
      exact.sum += written[i] == reference;
      if (std::ssize(told) < kTold) told.push_back({{"source", source}, {"reference", reference}, {"written", written[i]}});
    }
    // Without a row of four words in any reference, as of German numbers, there is no BLEU.
    if (std::any_of(references.begin(), references.end(), [](const std::string& each) { return tokens_13a(each).size() >= 4; }))
      out.figures.emplace_back("bleu", bleu(written, references).bleu);
    out.figures.emplace_back("chrf", chrf(written, references));
    out.figures.emplace_back("exact", exact.sum / exact.of);
    out.detail["translations"] = told;
    return out;
  }

  std::vector<Sample> samples() const {
    const EncodedPairs& pairs = test.count() > 0 ? test : validation;
    std::vector<Sample> out;
    for (const Translated& each : translations(pairs, kShown)) out.push_back(look_at(pairs, std::ssize(out), each));
    return out;
  }

  // Where the last layer looked in the source while it wrote, as an alignment.
  Sample look_at(const EncodedPairs& pairs, int64_t i, const Translated& translated) const {
    const std::vector<int64_t> written(translated.tokens.begin(), translated.tokens.end());
    const Translation& pair = pairs.texts[static_cast<size_t>(i)];
    Sample sample{.truth = pair.target, .guess = translated.text, .source = pair.source};
    sample.right = sample.guess == sample.truth;
    Named given = inputs(pairs, std::span(&i, 1));
    given["labels"] = Tensor::from(written, {1, std::ssize(written)});
    const Named out = (*model)(given, {.attentions = has_maps(*model)});
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

  void save_beside(const Path& folder) const {
    tokenizer.save(folder);
    if (!generation.is_null()) write_json(folder / "generation_config.json", generation);
  }
};

Json config_for(const Chosen& chosen, const Tokenizer& tokenizer) {
  if (!chosen.from.empty()) return read_json(Path(chosen.from) / "config.json");
  Json config = model_config(chosen.model);
  set_vocabulary(config, tokenizer);
  return config;
}

std::vector<std::string> lines_of_both(const std::vector<Translation>& pairs) {
  std::vector<std::string> out;
  for (const Translation& each : pairs) out.insert(out.end(), {each.source, each.target});
  return out;
}

// How translations are written: as the model's files say, or else with room for half as much again as the longest that was learned.
void set_writing(SentencePairs& all, const TranslateOptions& options, const Chosen& chosen) {
  size_t longest = 0;
  for (const std::vector<int64_t>& row : all.train.target) longest = std::max(longest, row.size());
  const int64_t room = std::min(static_cast<int64_t>(longest) * 3 / 2 + 10, all.limit);
  if (chosen.from.empty()) {
    const Json& config = all.model->config();
    all.generation = {{"num_beams", options.beams},
                      {"length_penalty", options.length_penalty},
                      {"max_length", room},
                      {"bad_words_ids", {{all.pad}}},  // padding fills what has ended, and is never written before
                      {"decoder_start_token_id", config.at("decoder_start_token_id")},
                      {"eos_token_id", config.at("eos_token_id")},
                      {"pad_token_id", all.pad}};
    all.writing = generation_options(all.generation, "generation_config.json");
    return;
  }
  all.writing = generation_options(*all.model);
  all.writing.count = 1;
  all.writing.sample = false;
  all.writing.beams = options.beams;
  all.writing.length_penalty = options.length_penalty;
  all.writing.max_length = all.writing.max_length > 0 ? std::min(all.writing.max_length, all.limit) : room;
}

Task make_task(const TranslateOptions& options, const Chosen& chosen) {
  ParallelTexts texts = read_parallel_texts(options.data, static_cast<double>(chosen.learn.validation), chosen.learn.seed);
  const Json data{{"train", print_of(lines_of_both(texts.train))},
                  {"validation", print_of(lines_of_both(texts.validation))},
                  {"test", print_of(lines_of_both(texts.test))}};
  TaskTokenizer tokenizer = tokenizer_for(chosen, options.vocabulary, lines_of_both(texts.train), true);
  Tokenizer target = chosen.from.empty() ? tokenizer.tokenizer : Tokenizer::open_target(chosen.from);
  const auto model = model_for(chosen, config_for(chosen, tokenizer.tokenizer), {});
  check<FileError>(model->decoder().encoder, chosen.from, ": found ", model->architecture(),
                   ", expected a model that translates: MarianMTModel");
  const int64_t limit = most_tokens(*model), count = std::ssize(texts.train);
  check<UsageError>(options.max_length <= limit, "translate: found max_length=", options.max_length, ", expected at most ", limit,
                    ", the positions of the model");
  const auto encoded = [&](std::vector<Translation>& part, int64_t most) {
    return encode_pairs(std::move(part), tokenizer.tokenizer, target, most);
  };
  EncodedPairs train = without_long_ones(encoded(texts.train, 0), options.max_length);
  check<FileError>(train.count() > 0, "translate: found no pair of at most ", options.max_length, " tokens among ", count,
                   ", expected some to learn from; max_length says how long they may be");
  const int64_t left_out = count - train.count();
  const std::optional<int32_t> padding = tokenizer.tokenizer.padding_id();
  const int64_t pad = padding ? *padding : model->config().value("pad_token_id", int64_t{0});
  const auto all = std::make_shared<SentencePairs>(SentencePairs{.train = std::move(train),
                                                                 .validation = encoded(texts.validation, limit),
                                                                 .test = encoded(texts.test, limit),
                                                                 .left_out = left_out,
                                                                 .tokenizer = std::move(tokenizer),
                                                                 .target = std::move(target),
                                                                 .learn = chosen.learn,
                                                                 .model = model,
                                                                 .pad = pad,
                                                                 .limit = limit});
  set_writing(*all, options, chosen);
  Task task{.name = "translate", .model = model, .metric = "loss"};
  if (!texts.columns.empty()) task.notes.push_back(texts.columns);
  task.counts = {{"train", all->train.count()}, {"validation", all->validation.count()}, {"test", all->test.count()}};
  task.data = data;
  task.batches = [all](int64_t epoch) { return batches_of_like_length(all->train.lengths(), all->learn.batch, all->learn.seed, epoch); };
  task.batch = [all](int64_t, const std::vector<int64_t>& which) {
    return Batch{.inputs = all->inputs(all->train, which), .samples = std::ssize(which)};
  };
  task.learn = [all](const Batch& batch, const Ask& ask) { return all->learn_from(batch, ask); };
  task.evaluate = [all] { return all->evaluate(all->validation); };
  if (all->test.count() > 0) task.test = [all] { return all->test_in_detail(); };
  task.samples = [all] { return all->samples(); };
  if (all->validation.count() > 0) {
    const int64_t first = 0;
    task.followed = followed_text(all->inputs(all->validation, std::span(&first, 1)), all->tokenizer.tokenizer);
    for (const int64_t id : all->validation.target[0]) task.followed.rows.push_back(all->target.display(id));
  }
  task.save_beside = [all](const Path& folder) { all->save_beside(folder); };
  return task;
}

// What goes with numbers, unless a person said otherwise; config.toml keeps it.
void fill_for_numbers(Settings& settings) {
  const std::pair<const char*, const char*> defaults[] = {
      {"source", "english"}, {"target", "german"}, {"count", "20000"}, {"vocabulary", "400"}};
  for (const auto& [key, value] : defaults) settings.set(key, value, Settings::By::preset);
}

}  // namespace

TaskKind translate_kind() {
  return {.name = "translate",
          .summary = "From one language to another, with an encoder-decoder",
          .preset = "transformer-small",
          .families = {"encoder-decoder"},
          .examples = {"width=128", "data=numbers source=french target=english count=50000", "data=multi30k source=en target=de epochs=20",
                       "data=pairs.tsv", "data=pairs.csv.gz source_column=english target_column=german",
                       "train_source=a.en train_target=a.de from=opus-mt-en-de rate=2e-5"},
          .declare = [](Settings& settings) {
            const auto options = std::make_shared<TranslateOptions>();
            declare(settings, options->data);
            settings.add("max_length", options->max_length, "Tokens of a sentence; pairs with longer ones are not learned from",
                         {.least = 2, .most = 1e6});
            settings.add("beams", options->beams, "To search translations with", {.least = 1, .most = 256});
            settings.add("length_penalty", options->length_penalty, "Of beams: above 0 favours long translations");
            declare(settings, options->vocabulary);
            return [options, &settings](const Chosen& chosen) {
              if (options->data.made()) fill_for_numbers(settings);
              return make_task(*options, chosen);
            };
          }};
}

}  // namespace heed
