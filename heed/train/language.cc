// Language modelling: next-token prediction (Radford et al. 2019).
#include <algorithm>
#include <cmath>
#include <numbers>

#include "heed/data/draws.h"
#include "heed/dist/split_work.h"
#include "heed/models/cost.h"
#include "heed/models/generate.h"
#include "heed/train/batch_order.h"
#include "heed/train/data_fingerprint.h"
#include "heed/train/evaluate.h"
#include "heed/train/labels.h"
#include "heed/train/vocabulary.h"

namespace heed {
namespace {

constexpr int64_t kLanguageEvaluationTokens = 2048;  // tokens per batch; logits are (tokens, vocabulary)
constexpr int64_t kTrackedTokens = 24;

struct LanguageOptions {
  std::string data = "opinions";
  VocabularyOptions vocabulary = {.kind = "bpe", .size = 4000, .lowercase = false};
  int64_t length = 128;
};

struct Texts {
  std::vector<std::string> train = {}, validation = {};
};

// Holds out random texts, or the end of each text if there are only a few.
Texts read_parts(const std::string& data, const TrainOptions& train_options) {
  Texts out;
  if (data == "opinions") {
    for (LabelledText& opinion : synthetic_opinions(8000, 1)) out.train.push_back(std::move(opinion.text));
    for (LabelledText& opinion : synthetic_opinions(1000, 1, DataPart::validation)) out.validation.push_back(std::move(opinion.text));
    return out;
  }
  std::vector<NamedText> all = read_texts(data);
  const double share = std::clamp(static_cast<double>(train_options.validation), 1e-6, 0.9);
  if (share * static_cast<double>(all.size()) >= 1) {
    const Split parts = split(std::ssize(all), share, train_options.seed);
    for (const int64_t i : parts.kept) out.train.push_back(std::move(all[static_cast<size_t>(i)].text));
    for (const int64_t i : parts.held_out) out.validation.push_back(std::move(all[static_cast<size_t>(i)].text));
    return out;
  }
  for (NamedText& each : all) {
    const std::string& text = each.text;
    const auto from = static_cast<size_t>(static_cast<double>(text.size()) * (1 - share));
    size_t cut = std::min(text.find('\n', from), text.size() - 1) + 1;  // cut after a line, or at least not inside a character
    if (cut == text.size())
      for (cut = from; cut > 0 && (static_cast<unsigned char>(text[cut]) & 0xC0) == 0x80;) --cut;
    out.validation.push_back(text.substr(cut));
    each.text.resize(cut);
    out.train.push_back(std::move(each.text));
  }
  return out;
}

// The token between texts.
int32_t end_token(const Json& config, const Tokenizer& tokenizer) {
  if (const auto found = config.find("eos_token_id"); found != config.end() && found->is_number_integer()) return found->get<int32_t>();
  fail<UsageError>("language: the model has no end-of-text token, expected eos_token_id in config.json; the tokenizer has ",
                   tokenizer.id_limit(), " tokens");
}

struct Stream {
  std::vector<int32_t> tokens = {};  // an end token before every text and after the last
  std::vector<int64_t> begins = {};  // of texts
  double bytes = 0;                  // of all texts
};

Stream stream_of(const std::vector<std::string>& texts, const Tokenizer& tokenizer, int32_t end) {
  Stream out{.tokens = {end}};
  const std::vector<Encoding> encodings = tokenizer.encode_all(texts, {.add_special_tokens = false});
  for (size_t i = 0; i < texts.size(); ++i) {
    out.begins.push_back(std::ssize(out.tokens));
    out.tokens.insert(out.tokens.end(), encodings[i].ids.begin(), encodings[i].ids.end());
    out.tokens.push_back(end);
    out.bytes += static_cast<double>(texts[i].size());
  }
  return out;
}

// State shared by the task's functions.
struct Language {
  Stream train, validation;
  TaskTokenizer tokenizer;
  TrainOptions train_options;
  std::shared_ptr<Model> model;
  int64_t length;        // tokens per window
  int32_t end;           // of texts
  double multiply_adds;  // of one window

  // Windows per epoch; the same for every offset.
  int64_t windows() const { return std::max<int64_t>((std::ssize(train.tokens) - length + 1) / length, 1); }
  int64_t offset(int64_t epoch) const {
    Draws draws(sample_key(train_options.seed, epoch, 0));
    return draws.below(std::min(length, std::ssize(train.tokens) - windows() * length + 1));
  }

  static TensorMap inputs(const Stream& stream, const std::vector<int64_t>& begins, int64_t tokens) {
    std::vector<int64_t> ids;
    for (const int64_t begin : begins) ids.insert(ids.end(), stream.tokens.begin() + begin, stream.tokens.begin() + begin + tokens);
    const Tensor all = Tensor::from(ids, {std::ssize(begins), tokens}, kCpu);
    return {{"input_ids", all}, {"labels", all}};
  }

  Batch batch(int64_t epoch, const std::vector<int64_t>& which) const {
    std::vector<int64_t> begins;
    for (const int64_t i : which) begins.push_back(offset(epoch) + i * length);
    return {.inputs = inputs(train, begins, length), .samples = std::ssize(which), .same_work = true};
  }

  StepOutput forward(const Batch& batch, ForwardOptions options) const {
    options.loss_only = true;
    options.label_smoothing = train_options.label_smoothing;
    return {.loss = (*model)(batch.inputs, options).at("loss"), .multiply_adds = multiply_adds * static_cast<double>(batch.samples)};
  }

  // Scores every token of the validation stream except the first once.
  Evaluation evaluate() const {
    const auto score_windows = [&](const std::vector<int64_t>& begins, int64_t tokens) -> std::vector<double> {
      const TensorMap batch_inputs = inputs(validation, begins, tokens), out = (*model)(batch_inputs);
      const auto count = static_cast<double>(std::ssize(begins) * (tokens - 1));
      RunningMean right;
      const std::vector<int64_t> guesses = argmax(out.at("logits")).to_vector<int64_t>(),
                                 ids = batch_inputs.at("labels").to_vector<int64_t>();
      for (size_t i = 1; i < ids.size(); ++i)
        if (static_cast<int64_t>(i) % tokens != 0) right.add({guesses[i - 1] == ids[i] ? 1.0 : 0.0, 1});
      return {static_cast<double>(out.at("loss").item()) * count, count, right.sum, right.count};
    };
    const int64_t targets = std::ssize(validation.tokens) - 1, whole = targets / (length - 1), rest = targets % (length - 1);
    Batches batches = batches_in_order(whole, std::max<int64_t>(kLanguageEvaluationTokens / length, 1));
    const int64_t full = std::ssize(batches);
    if (rest > 0) batches.push_back({whole});
    for (std::vector<int64_t>& begins : batches)
      for (int64_t& begin : begins) begin *= length - 1;
    RunningMean loss, right;
    split_work(
        world(), std::ssize(batches),
        [&](int64_t i) { return bytes_of_numbers(score_windows(batches[static_cast<size_t>(i)], i < full ? length : rest + 1)); },
        [&](int64_t, const std::string& sums) {
          const std::vector<double> numbers = numbers_in<double>(sums);
          loss.add({numbers[0], numbers[1]});
          right.add({numbers[2], numbers[3]});
        });
    const double mean = loss.sum / loss.count;
    return {.figures = {{"loss", mean},
                        {"perplexity", std::exp(mean)},
                        {"accuracy", right.sum / right.count},
                        {"bits_per_byte", loss.sum / std::numbers::ln2 / validation.bytes}}};
  }

  // Continuations of the starts of held-out texts, or of positions inside a long text.
  std::vector<Sample> samples() const {
    constexpr int64_t count = 8, most_read = 24, most_written = 48;
    const int64_t all = std::ssize(validation.tokens), read = std::min({most_read, length / 2, all / 2});
    std::vector<Sample> out;
    for (int64_t k = 0; k < count; ++k) {
      const int64_t texts = std::ssize(validation.begins);
      const int64_t begin = texts >= count ? validation.begins[static_cast<size_t>(k * texts / count)] : 1 + k * (all - 1) / count;
      std::vector<int64_t> ids{end};  // every text starts after an end token
      for (int64_t i = begin; i < all && std::ssize(ids) <= read && validation.tokens[static_cast<size_t>(i)] != end; ++i)
        ids.push_back(validation.tokens[static_cast<size_t>(i)]);
      // Use half of a short text as the prompt, so that something is left to generate.
      const bool ends = std::ssize(ids) <= read;
      if (ends) ids.resize(static_cast<size_t>((std::ssize(ids) + 1) / 2));
      const int64_t written = std::min(most_written, max_tokens(*model) - std::ssize(ids));
      if (ids.size() < 2 || written < 1) continue;
      const auto after = static_cast<size_t>(begin) + ids.size() - 1;
      std::vector<int32_t> truth, guess;
      for (size_t i = after; i < validation.tokens.size() && std::ssize(truth) < written && validation.tokens[i] != end; ++i)
        truth.push_back(validation.tokens[i]);
      GenerationOptions generation{.max_new_tokens = written, .end = {end}, .pad = end, .sample = true};
      generation.sampling = {.temperature = 0.8f, .top_k = 40, .seed = train_options.seed + static_cast<uint64_t>(k)};
      const Tensor prompt = Tensor::from(ids, {1, std::ssize(ids)}, kCpu);
      const std::vector<int64_t> text = generate(*model, {{"input_ids", prompt}}, generation).to_vector<int64_t>();
      for (size_t i = ids.size(); i < text.size() && text[i] != end; ++i) guess.push_back(static_cast<int32_t>(text[i]));
      const std::vector<int32_t> shown(ids.begin() + 1, ids.end());
      const Tokenizer& words = tokenizer.tokenizer;
      Sample sample{.truth = words.decode(truth), .guess = words.decode(guess), .source = words.decode(shown)};
      sample.right = sample.truth == sample.guess;
      out.push_back(std::move(sample));
    }
    return out;
  }
};

Json language_config(const JobOptions& chosen, int64_t length, const Tokenizer& tokenizer) {
  if (!chosen.from.empty()) return config_from(chosen.from, ModelTask::causal_lm);
  Json config = model_config(chosen.model);
  set_vocabulary(config, tokenizer);
  const std::string& key = architecture_of(Config(config, "config.json")).family->keys.positions;
  if (!chosen.model.model.contains(key)) config[key] = std::max(config.value(key, int64_t{0}), length);
  return config;
}

Task make_language_task(const LanguageOptions& options, const JobOptions& chosen) {
  const Texts texts = read_parts(options.data, chosen.train_options);
  TaskTokenizer tokenizer = tokenizer_for(chosen, options.vocabulary, texts.train);
  const Json config = language_config(chosen, options.length, tokenizer.tokenizer);
  const auto model = model_for(chosen, config);
  model->decoder();  // throws if the model does not generate text
  check<UsageError>(options.length <= max_tokens(*model), "language: length=", options.length, ", expected at most ", max_tokens(*model),
                    ", the model's limit");
  const int32_t end = end_token(config, tokenizer.tokenizer);
  Stream train = stream_of(texts.train, tokenizer.tokenizer, end), validation = stream_of(texts.validation, tokenizer.tokenizer, end);
  check<FileError>(train.tokens.size() > 2 && validation.tokens.size() > 2, options.data, ": found ", train.tokens.size(),
                   " training tokens and ", validation.tokens.size(), " held out, expected more of both");
  const int64_t length = std::min(options.length, std::ssize(train.tokens));
  const auto multiply_adds = static_cast<double>(cost_of(*model, {.tokens = length}).total.training_multiply_adds);
  const auto all = std::make_shared<Language>(Language{.train = std::move(train),
                                                       .validation = std::move(validation),
                                                       .tokenizer = std::move(tokenizer),
                                                       .train_options = chosen.train_options,
                                                       .model = model,
                                                       .length = length,
                                                       .end = end,
                                                       .multiply_adds = multiply_adds});
  Task task{.name = "language", .model = model, .metric = "loss"};
  task.counts = {{"train", all->windows()}, {"validation", (std::ssize(all->validation.tokens) + length - 3) / (length - 1)}};
  task.data = {{"train", fingerprint_of(texts.train)}, {"validation", fingerprint_of(texts.validation)}};
  task.batches = [all](int64_t epoch) {
    return shuffled_batches(all->windows(), all->train_options.batch, all->train_options.seed, epoch);
  };
  task.batch = [all](int64_t epoch, const std::vector<int64_t>& which) { return all->batch(epoch, which); };
  task.forward = [all](const Batch& batch, const ForwardOptions& forward_options) { return all->forward(batch, forward_options); };
  task.evaluate = [all] { return all->evaluate(); };
  task.samples = [all] { return all->samples(); };
  const int64_t read = std::min({kTrackedTokens, length, std::ssize(all->validation.tokens)});
  task.tracked = tracked_text(Language::inputs(all->validation, {0}, read), all->tokenizer.tokenizer);
  task.save_preprocessing = [all](const Path& folder) { all->tokenizer.save(folder); };
  return task;
}

}  // namespace

TaskKind language_kind() {
  return {.name = "language",
          .summary = "Language modelling on plain text with a decoder",
          .preset = "gpt-mini",
          .families = {"gpt"},
          .examples = {"data=book.txt epochs=5", "data=book.txt tokenizer=characters length=256", "data=texts preset=llama-mini",
                       "data=mine.txt from=gpt2-folder rate=5e-5"},
          .declare = [](Settings& settings) {
            const auto options = std::make_shared<LanguageOptions>();
            settings.heading("Text");
            settings.add("data", options->data, "Text file or folder of text files; opinions: synthetic",
                         {.path = true, .synthetic = {"opinions"}});
            settings.add("length", options->length, "Tokens per training window", {.least = 2, .most = 65536});
            declare(settings, options->vocabulary);
            return [options](const JobOptions& chosen) { return make_language_task(*options, chosen); };
          }};
}

}  // namespace heed
