// heed translate: translates sentences with an encoder-decoder model.
#include <algorithm>
#include <iostream>
#include <memory>
#include <optional>

#include "heed/cli/int8_flag.h"
#include "heed/cli/model_name.h"
#include "heed/cli/nonfinite_flag.h"
#include "heed/cli/parts_file.h"
#include "heed/cli/sentence_reader.h"
#include "heed/cli/text_output.h"

namespace heed::cli {
namespace {

struct TranslateFlags {
  std::string model, parts;
  SentenceOptions sentences;
  std::optional<int64_t> beams, max_length;
  std::optional<float> length_penalty;
  bool int8 = false, nonfinite = false, json = false;
};

class Translator {
 public:
  explicit Translator(const TranslateFlags& flags)
      : model_(load_text_generator(flags.model, flags.int8, flags.nonfinite, "does not translate, expected an encoder and a decoder")),
        source_(Tokenizer::open(flags.model)),
        target_(Tokenizer::open_target(flags.model)) {
    check<FileError>(model_.decoder().encoder, flags.model, ": found ", model_.architecture(),
                     ", expected a model that translates: one with an encoder and a decoder");
    options_ = generation_options_in(flags.model, model_);
    options_.count = 1;
    limit_ = max_tokens(model_);
    if (flags.beams) options_.beams = *flags.beams;
    if (flags.beams && *flags.beams > 1) options_.sample = false;
    if (flags.length_penalty) options_.length_penalty = *flags.length_penalty;
    // The default of transformers, 20 tokens, is too few for a sentence.
    const Json json = generation_settings(model_);
    if (!json.contains("max_new_tokens") && options_.max_length == 0) options_.max_length = 512;
    if (flags.max_length) options_.max_length = *flags.max_length;
    if (options_.max_length > 0) options_.max_length = std::min(options_.max_length, limit_);
    pad_ = source_.padding_id().value_or(static_cast<int32_t>(options_.pad));
    check<FileError>(pad_ >= 0, flags.model,
                     ": found no padding token in tokenizer or config, expected one for batching sentences of different lengths");
  }

  // -> translations in the order of the sentences; an empty sentence gives an empty one
  std::vector<Translated> operator()(const std::vector<Sentence>& sentences, SentenceCounter& counter) {
    EncodeOptions encode_options;
    encode_options.max_length = limit_;
    EncodedSentences encoded = encode_sentences(source_, sentences, encode_options);
    cut_ += encoded.cut;
    for (size_t i = 0; i < sentences.size(); ++i)
      if (sentences[i].text.find_first_not_of(" \t") == std::string::npos) encoded.encodings[i] = {};
    return translate(model_, {source_, target_, pad_}, encoded.encodings, options_, [&](int64_t count) { counter.add(count); });
  }

  int64_t cut() const { return cut_; }  // truncated sentences
  int64_t limit() const { return limit_; }

 private:
  Model model_;
  Tokenizer source_, target_;
  GenerationOptions options_;
  int64_t pad_ = 0, limit_ = 0, cut_ = 0;
};

void run_translate(const TranslateFlags& flags) {
  SentenceReader reader(flags.sentences, "translate");
  Translator translator(flags);
  {
    SentenceCounter counter;
    for (std::vector<Sentence> some = reader.next(); !some.empty(); some = reader.next()) {
      const std::vector<Translated> translations = translator(some, counter);
      for (size_t i = 0; i < some.size(); ++i) {
        if (!flags.json) {
          std::cout << translations[i].text << '\n';
          continue;
        }
        Json line{{"sentence", some[i].text}, {"translation", translations[i].text}, {"tokens", translations[i].tokens}};
        if (translations[i].score) line["score"] = *translations[i].score;
        std::cout << line.dump(-1, ' ', false, Json::error_handler_t::replace) << '\n';
      }
      std::cout.flush();
    }
  }
  print_truncated(translator.cut(), translator.limit());
}

const Command translate_command("translate", "Translate sentences with an encoder-decoder model", [](Flags& flags) {
  auto options = std::make_shared<TranslateFlags>();
  flags.option("model", options->model, "Folder of a model, Marian's for example, or of a run").value("MODEL").required();
  add_sentence_flags(flags, options->sentences, false);
  flags.option("--beams", options->beams, "Beam search with N beams; by default as in generation_config.json, or 1")
      .value("N")
      .must_be(whole_within(1, 256));
  flags.option("--length-penalty", options->length_penalty, "For beam search: above 0 favours long translations").value("X");
  flags.option("--max-length", options->max_length, "Maximum number of tokens").value("N").must_be(within(2.0, 1e9));
  add_parts_flag(flags, options->parts);
  add_int8_flag(flags, options->int8);
  add_nonfinite_flag(flags, options->nonfinite);
  flags.flag("--json", options->json, "One JSON object per sentence");
  flags.footer(
      "Prints one line per sentence, in order.\n\nExamples:\n  heed translate opus-mt-en-de 'Good morning.' 'How are you?'\n"
      "  heed translate opus-mt-en-de --file english.txt --beams 4 > german.txt\n"
      "  heed translate opus-mt-en-mul '>>deu<< Good morning.' --json");
  return [options] {
    options->model = options->sentences.model = resolve_model(options->model);
    const std::unique_ptr<PartsFile> parts = parts_file(options->parts, options->model);
    run_translate(*options);
    if (parts) parts->remove();
  };
});

}  // namespace
}  // namespace heed::cli
