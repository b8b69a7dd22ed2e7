// heed translate: sentences into another language, with an encoder-decoder.
#include <algorithm>
#include <iostream>
#include <memory>
#include <optional>

#include "heed/cli/int8_flag.h"
#include "heed/cli/sentences.h"
#include "heed/cli/written.h"
#include "heed/models/beam.h"

namespace heed::cli {
namespace {

struct Options {
  std::string model;
  SentenceOptions sentences;
  std::optional<int64_t> beams, max_length;
  std::optional<float> length_penalty;
  bool int8 = false, json = false;
};

struct Translation {
  std::vector<int32_t> tokens;
  std::string text;
  std::optional<float> score;
};

class Translator {
 public:
  explicit Translator(const Options& flags)
      : model_(load_writer(flags.model, flags.int8)), source_(Tokenizer::open(flags.model)), target_(Tokenizer::open_target(flags.model)) {
    check<FileError>(model_.decoder().encoder, flags.model, ": found ", model_.architecture(),
                     ", expected a model that translates: MarianMTModel");
    options_ = generation_options_in(flags.model, model_);
    options_.count = 1;
    limit_ = position_limit(model_);
    if (flags.beams) options_.beams = *flags.beams;
    if (flags.beams && *flags.beams > 1) options_.sample = false;
    if (flags.length_penalty) options_.length_penalty = *flags.length_penalty;
    // Twenty tokens, what transformers takes where nothing is said, are too few for a sentence.
    const Json& json = model_.generation().is_null() ? model_.config() : model_.generation();
    if (!json.contains("max_new_tokens") && options_.max_length == 0) options_.max_length = 512;
    if (flags.max_length) options_.max_length = *flags.max_length;
    if (options_.max_length > 0) options_.max_length = std::min(options_.max_length, limit_);
    const int64_t pad = source_.padding_id().value_or(static_cast<int32_t>(options_.pad));
    check<FileError>(pad >= 0, flags.model,
                     ": found no padding token in tokenizer and config, expected one for sentences of different lengths");
    padding_.id = pad;
  }

  // Sentences of like length together, answers in the order of the sentences. An empty sentence stays one.
  std::vector<Translation> operator()(const std::vector<Sentence>& sentences, SentenceCounter& counter) {
    EncodeOptions how;
    how.max_length = limit_;
    EncodedSentences encoded = encode_sentences(source_, sentences, how);
    cut_ += encoded.cut;
    std::vector<Translation> out(sentences.size());
    constexpr int64_t most_tokens = 4096;
    for (const std::vector<size_t>& places : batches_by_length(encoded.encodings, most_tokens / options_.beams)) {
      std::vector<size_t> filled;
      std::vector<Encoding> batch;
      for (const size_t place : places)
        if (sentences[place].text.find_first_not_of(" \t") != std::string::npos) {
          filled.push_back(place);
          batch.push_back(std::move(encoded.encodings[place]));
        }
      if (!batch.empty()) translate(batch, filled, out);
      counter.add(std::ssize(places));
    }
    return out;
  }

  int64_t cut() const { return cut_; }  // sentences that were too long
  int64_t limit() const { return limit_; }

 private:
  void translate(const std::vector<Encoding>& batch, const std::vector<size_t>& places, std::vector<Translation>& out) const {
    const EncodedBatch texts = source_.batch(batch, padding_);
    const Named inputs{{"input_ids", texts.input_ids}, {"attention_mask", texts.attention_mask}};
    Beams found;
    if (options_.beams > 1) {
      found = beam_search(model_, inputs, options_);
    } else {
      found.tokens = generate(model_, inputs, options_);
    }
    for (size_t i = 0; i < places.size(); ++i) {
      Translation& each = out[places[i]];
      each.tokens = tokens_written(found.tokens, static_cast<int64_t>(i), 1, options_);
      each.text = text_of(target_, each.tokens);
      if (!found.scores.empty()) each.score = found.scores[i];
    }
  }

  Model model_;
  Tokenizer source_, target_;
  GenerationOptions options_;
  Padding padding_;
  int64_t limit_ = 0, cut_ = 0;
};

void run_translate(const Options& flags) {
  SentenceReader reader(flags.sentences, "translate");
  Translator translator(flags);
  {
    SentenceCounter counter;
    for (std::vector<Sentence> some = reader.next(); !some.empty(); some = reader.next()) {
      const std::vector<Translation> answers = translator(some, counter);
      for (size_t i = 0; i < some.size(); ++i) {
        if (!flags.json) {
          std::cout << answers[i].text << '\n';
          continue;
        }
        Json line{{"sentence", some[i].text}, {"translation", answers[i].text}, {"tokens", answers[i].tokens}};
        if (answers[i].score) line["score"] = *answers[i].score;
        std::cout << line.dump(-1, ' ', false, Json::error_handler_t::replace) << '\n';
      }
      std::cout.flush();
    }
  }
  tell_cut(translator.cut(), translator.limit());
}

const Command translate_command("translate", "Translate sentences with an encoder-decoder", [](Flags& flags) {
  auto options = std::make_shared<Options>();
  flags.option("model", options->model, "Folder of a model, Marian's for example").value("MODEL").required();
  add_sentence_flags(flags, options->sentences, false);
  flags.option("--beams", options->beams, "Search with so many beams; as generation_config.json says, or 1")
      .value("N")
      .must_be(whole_within(1, 256));
  flags.option("--length-penalty", options->length_penalty, "Of beams: above 0 favours long translations").value("X");
  flags.option("--max-length", options->max_length, "At most so many tokens").value("N").must_be(within(2.0, 1e9));
  add_int8_flag(flags, options->int8);
  flags.flag("--json", options->json, "One JSON object for each sentence");
  flags.footer(
      "One line for each sentence, in order.\n\nExamples:\n  heed translate opus-mt-en-de 'Good morning.' 'How are you?'\n"
      "  heed translate opus-mt-en-de --file english.txt --beams 4 > german.txt\n"
      "  heed translate opus-mt-en-mul '>>deu<< Good morning.' --json");
  return [options] { run_translate(*options); };
});

}  // namespace
}  // namespace heed::cli
