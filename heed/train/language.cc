// Language models: the next token of a text is told from those before it (Radford et al. 2019).
#include <algorithm>
#include <cmath>
#include <numbers>

#include "heed/data/draws.h"
#include "heed/models/cost.h"
#include "heed/models/generate.h"
#include "heed/train/data_print.h"
#include "heed/train/evaluate.h"
#include "heed/train/labels.h"
#include "heed/train/order.h"
#include "heed/train/vocabulary.h"

namespace heed {
namespace {

constexpr int64_t kEvaluatedTokens = 2048;  // at once: the words that each of them may be are many numbers
constexpr int64_t kFollowedTokens = 24;

struct LanguageOptions {
  std::string data = "opinions";
  VocabularyOptions vocabulary = {.kind = "bpe", .size = 4000, .lowercase = false};
  int64_t length = 128;
};

struct Texts {
  std::vector<std::string> train = {}, validation = {};
};

// Whole texts by chance are held out, or the end of each where there are only a few.
Texts read_parts(const std::string& data, const LearnOptions& learn) {
  Texts out;
  if (data == "opinions") {
    for (LabelledText& made : made_opinions(8000, 1)) out.train.push_back(std::move(made.text));
    for (LabelledText& made : made_opinions(1000, 1, DataPart::validation)) out.validation.push_back(std::move(made.text));
    return out;
  }
  std::vector<NamedText> all = read_texts(data);
  const double share = std::clamp(static_cast<double>(learn.validation), 1e-6, 0.9);
  if (share * static_cast<double>(all.size()) >= 1) {
    const Split parts = split(std::ssize(all), share, learn.seed);
    for (const int64_t i : parts.kept) out.train.push_back(std::move(all[static_cast<size_t>(i)].text));
    for (const int64_t i : parts.held_out) out.validation.push_back(std::move(all[static_cast<size_t>(i)].text));
    return out;
  }
  for (NamedText& each : all) {
    const std::string& text = each.text;
    const auto from = static_cast<size_t>(static_cast<double>(text.size()) * (1 - share));
    size_t cut = std::min(text.find('\n', from), text.size() - 1) + 1;  // at the end of a line, or at least of a character
    if (cut == text.size())
      for (cut = from; cut > 0 && (static_cast<unsigned char>(text[cut]) & 0xC0) == 0x80;) --cut;
    out.validation.push_back(text.substr(cut));
    each.text.resize(cut);
    out.train.push_back(std::move(each.text));
  }
  return out;
}

// The token that parts texts.
int32_t end_token(const Json& config, const Tokenizer& tokenizer) {
  if (const auto found = config.find("eos_token_id"); found != config.end() && found->is_number_integer()) return found->get<int32_t>();
  fail<UsageError>("language: the model names no token that ends texts, expected eos_token_id in config.json; there are ",
                   tokenizer.id_limit(), " tokens");
}

struct Stream {
  std::vector<int32_t> tokens = {};  // an end token before every text and behind the last
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

// Everything that the functions of the task share.
struct Language {
  Stream train, validation;
  TaskTokenizer tokenizer;
  LearnOptions learn;
  std::shared_ptr<Model> model;
  int64_t length;        // of pieces
  int32_t end;           // of texts
  double multiply_adds;  // of one piece

  // As many as there are wherever the first begins.
  int64_t pieces() const { return std::max<int64_t>((std::ssize(train.tokens) - length + 1) / length, 1); }
  int64_t offset(int64_t epoch) const {
    Draws chance(sample_key(learn.seed, epoch, 0));
    return chance.below(std::min(length, std::ssize(train.tokens) - pieces() * length + 1));
  }

  static Named inputs(const Stream& stream, const std::vector<int64_t>& begins, int64_t tokens) {
    std::vector<int64_t> ids;
    for (const int64_t begin : begins) ids.insert(ids.end(), stream.tokens.begin() + begin, stream.tokens.begin() + begin + tokens);
    const Tensor all = Tensor::from(ids, {std::ssize(begins), tokens});
    return {{"input_ids", all}, {"labels", all}};
  }

  Batch batch(int64_t epoch, const std::vector<int64_t>& which) const {
    std::vector<int64_t> begins;
    for (const int64_t i : which) begins.push_back(offset(epoch) + i * length);
    return {.inputs = inputs(train, begins, length), .samples = std::ssize(which)};
  }

  Outcome learn_from(const Batch& batch, Ask ask) const {
    ask.loss_only = true;
    ask.label_smoothing = learn.label_smoothing;
    return {.loss = (*model)(batch.inputs, ask).at("loss"), .multiply_adds = multiply_adds * static_cast<double>(batch.samples)};
  }

  // Every token of the held-out stream but the first is told once.
  Evaluation evaluate() const {
    Share loss, right;
    const auto judge_pieces = [&](const std::vector<int64_t>& begins, int64_t tokens) {
      const Named given = inputs(validation, begins, tokens), out = (*model)(given);
      const auto count = static_cast<double>(std::ssize(begins) * (tokens - 1));
      loss.add({static_cast<double>(out.at("loss").item()) * count, count});
      const std::vector<int64_t> guesses = argmax(out.at("logits")).to_vector<int64_t>(), ids = given.at("labels").to_vector<int64_t>();
      for (size_t i = 1; i < ids.size(); ++i)
        if (static_cast<int64_t>(i) % tokens != 0) right.add({guesses[i - 1] == ids[i] ? 1.0 : 0.0, 1});
    };
    const int64_t told = std::ssize(validation.tokens) - 1, whole = told / (length - 1), rest = told % (length - 1);
    for (std::vector<int64_t> begins : batches_in_order(whole, std::max<int64_t>(kEvaluatedTokens / length, 1))) {
      for (int64_t& begin : begins) begin *= length - 1;
      judge_pieces(begins, length);
    }
    if (rest > 0) judge_pieces({whole * (length - 1)}, rest + 1);
    const double mean = loss.sum / loss.of;
    return {.figures = {{"loss", mean},
                        {"perplexity", std::exp(mean)},
                        {"accuracy", right.sum / right.of},
                        {"bits_per_byte", loss.sum / std::numbers::ln2 / validation.bytes}}};
  }

  // How the model goes on where held-out texts begin, or where a long one is entered.
  std::vector<Sample> samples() const {
    constexpr int64_t count = 8, most_read = 24, most_written = 48;
    const int64_t all = std::ssize(validation.tokens), read = std::min({most_read, length / 2, all / 2});
    std::vector<Sample> out;
    for (int64_t k = 0; k < count; ++k) {
      const int64_t texts = std::ssize(validation.begins);
      const int64_t begin = texts >= count ? validation.begins[static_cast<size_t>(k * texts / count)] : 1 + k * (all - 1) / count;
      std::vector<int64_t> ids{end};  // what a text begins behind
      for (int64_t i = begin; i < all && std::ssize(ids) <= read && validation.tokens[static_cast<size_t>(i)] != end; ++i)
        ids.push_back(validation.tokens[static_cast<size_t>(i)]);
      // Of a short text, half: something must be left to write.
      const bool ends = std::ssize(ids) <= read;
      if (ends) ids.resize(static_cast<size_t>((std::ssize(ids) + 1) / 2));
      const int64_t written = std::min(most_written, most_tokens(*model) - std::ssize(ids));
      if (ids.size() < 2 || written < 1) continue;
      const auto after = static_cast<size_t>(begin) + ids.size() - 1;
      std::vector<int32_t> truth, guess;
      for (size_t i = after; i < validation.tokens.size() && std::ssize(truth) < written && validation.tokens[i] != end; ++i)
        truth.push_back(validation.tokens[i]);
      GenerationOptions how{.max_new_tokens = written, .end = {end}, .pad = end, .sample = true};
      how.sampling = {.temperature = 0.8f, .top_k = 40, .seed = learn.seed + static_cast<uint64_t>(k)};
      const Tensor given = Tensor::from(ids, {1, std::ssize(ids)});
      const std::vector<int64_t> text = generate(*model, {{"input_ids", given}}, how).to_vector<int64_t>();
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

Json config_for(const Chosen& chosen, int64_t length, const Tokenizer& tokenizer) {
  if (!chosen.from.empty()) return read_json(Path(chosen.from) / "config.json");
  Json config = model_config(chosen.model);
  set_vocabulary(config, tokenizer);
  const char* places = config.contains("n_positions") ? "n_positions" : "max_position_embeddings";
  if (!chosen.model.model.contains(places)) config[places] = std::max(config.value(places, int64_t{0}), length);
  return config;
}

Task make_task(const LanguageOptions& options, const Chosen& chosen) {
  const Texts texts = read_parts(options.data, chosen.learn);
  TaskTokenizer tokenizer = tokenizer_for(chosen, options.vocabulary, texts.train);
  const Json config = config_for(chosen, options.length, tokenizer.tokenizer);
  const auto model = model_for(chosen, config, {});
  model->decoder();  // an error where it writes no texts
  check<UsageError>(options.length <= most_tokens(*model), "language: length=", options.length, ", but the model reads ",
                    most_tokens(*model), " tokens at most");
  const int32_t end = end_token(config, tokenizer.tokenizer);
  Stream train = stream_of(texts.train, tokenizer.tokenizer, end), validation = stream_of(texts.validation, tokenizer.tokenizer, end);
  check<FileError>(train.tokens.size() > 2 && validation.tokens.size() > 2, options.data, ": found ", train.tokens.size(),
                   " tokens to learn from and ", validation.tokens.size(), " held out, expected more of both");
  const int64_t length = std::min(options.length, std::ssize(train.tokens));
  const auto multiply_adds = static_cast<double>(cost_of(*model, {.tokens = length}).total.multiply_adds);
  const auto all = std::make_shared<Language>(Language{.train = std::move(train),
                                                       .validation = std::move(validation),
                                                       .tokenizer = std::move(tokenizer),
                                                       .learn = chosen.learn,
                                                       .model = model,
                                                       .length = length,
                                                       .end = end,
                                                       .multiply_adds = multiply_adds});
  Task task{.name = "language", .model = model, .metric = "loss"};
  task.counts = {{"train", all->pieces()}, {"validation", (std::ssize(all->validation.tokens) + length - 3) / (length - 1)}};
  task.data = {{"train", print_of(texts.train)}, {"validation", print_of(texts.validation)}};
  task.batches = [all](int64_t epoch) { return shuffled_batches(all->pieces(), all->learn.batch, all->learn.seed, epoch); };
  task.batch = [all](int64_t epoch, const std::vector<int64_t>& which) { return all->batch(epoch, which); };
  task.learn = [all](const Batch& batch, const Ask& ask) { return all->learn_from(batch, ask); };
  task.evaluate = [all] { return all->evaluate(); };
  task.samples = [all] { return all->samples(); };
  const int64_t read = std::min({kFollowedTokens, length, std::ssize(all->validation.tokens)});
  task.followed = followed_text(Language::inputs(all->validation, {0}, read), all->tokenizer.tokenizer);
  task.save_beside = [all](const Path& folder) { all->tokenizer.save(folder); };
  return task;
}

}  // namespace

TaskKind language_kind() {
  return {.name = "language",
          .summary = "The next token of plain text, with a model that writes",
          .preset = "gpt-mini",
          .families = {"gpt"},
          .examples = {"data=book.txt epochs=5", "data=book.txt tokenizer=characters length=256", "data=texts preset=llama-mini",
                       "data=mine.txt from=gpt2-folder rate=5e-5"},
          .declare = [](Settings& settings) {
            const auto options = std::make_shared<LanguageOptions>();
            settings.heading("Text");
            settings.add("data", options->data, "Text file, or folder of them; opinions: made by rule",
                         {.path = true, .made = {"opinions"}});
            settings.add("length", options->length, "Tokens of the pieces that texts are cut into", {.least = 2, .most = 65536});
            declare(settings, options->vocabulary);
            return [options](const Chosen& chosen) { return make_task(*options, chosen); };
          }};
}

}  // namespace heed
