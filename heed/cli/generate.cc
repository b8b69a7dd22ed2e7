// heed generate: continues a prompt with a language model.
#include <unistd.h>

#include <chrono>
#include <iomanip>
#include <iostream>
#include <memory>
#include <optional>

#include "heed/cli/int8_flag.h"
#include "heed/cli/model_name.h"
#include "heed/cli/nonfinite_flag.h"
#include "heed/cli/print_json.h"
#include "heed/cli/sentence_reader.h"
#include "heed/cli/text_output.h"
#include "heed/io/paths.h"
#include "heed/models/beam.h"

namespace heed::cli {
namespace {

struct GenerateFlags {
  std::string model;
  SentenceOptions prompts;
  std::vector<std::string> ids;
  std::optional<float> temperature, top_p, min_p, repetition_penalty, length_penalty;
  std::optional<int64_t> top_k, no_repeat, beams, max_new_tokens, min_new_tokens, count;
  std::optional<uint64_t> seed;
  std::string precision = "bf16";
  bool int8 = false, nonfinite = false, greedy = false, stream = false, no_stream = false, json = false;
};

template <class T>
void override_with(T& value, const std::optional<T>& flag) {
  if (flag) value = *flag;
}

// generation_config.json, overridden by the flags.
GenerationOptions generation(const Model& model, const GenerateFlags& flags) {
  GenerationOptions out = generation_options_in(flags.model, model);
  override_with(out.repetition_penalty, flags.repetition_penalty);
  override_with(out.no_repeat, flags.no_repeat);
  override_with(out.length_penalty, flags.length_penalty);
  override_with(out.min_new_tokens, flags.min_new_tokens);
  override_with(out.beams, flags.beams);
  override_with(out.count, flags.count);
  override_with(out.sampling.temperature, flags.temperature);
  override_with(out.sampling.top_k, flags.top_k);
  override_with(out.sampling.top_p, flags.top_p);
  override_with(out.sampling.min_p, flags.min_p);
  override_with(out.sampling.seed, flags.seed);
  out.precision = flags.precision == "f32" ? DType::f32 : DType::bf16;
  const bool many_beams = flags.beams && *flags.beams > 1, zero_temperature = flags.temperature && *flags.temperature == 0;
  const bool sampling_flags = flags.temperature || flags.top_k || flags.top_p || flags.min_p || flags.seed;
  check<UsageError>(!many_beams || !sampling_flags, "generate: found --beams and sampling flags, expected one of the two");
  check<UsageError>(!flags.greedy || (!many_beams && !sampling_flags && !flags.count),
                    "generate: found --greedy and flags of sampling or beams, expected one of the two");
  if (sampling_flags || (flags.count && *flags.count > 1 && !many_beams)) {
    out.sample = true;
    if (!many_beams) out.beams = 1;
  }
  if (many_beams || flags.greedy || zero_temperature) out.sample = false;
  if (flags.greedy || zero_temperature) out.beams = out.count = 1;
  check<UsageError>(!many_beams || out.count <= out.beams, "generate: found --count ", out.count, " of ", out.beams,
                    " beams, expected at most the number of beams");
  return out;
}

// --max-new-tokens, or the limit of generation_config.json, or 64, within the positions of the model.
void set_length(GenerationOptions& options, const Model& model, const GenerateFlags& flags, int64_t prompt) {
  const int64_t start_length = model.decoder().encoder ? 1 : prompt, limit = max_tokens(model);
  const Json json = generation_settings(model);
  if (flags.max_new_tokens) {
    options.max_length = 0;
    options.max_new_tokens = *flags.max_new_tokens;
  } else if (options.max_length <= start_length && !json.contains("max_new_tokens")) {
    options.max_length = 0;
    options.max_new_tokens = std::min<int64_t>(64, limit - start_length);
  }
}

std::vector<int32_t> parse_prompt_ids(const std::string& text, const Model& model) {
  std::vector<int32_t> out;
  std::istringstream in(text);
  const int64_t limit = word_table(model).size(0);
  for (std::string word; in >> word;) {
    if (word.ends_with(',')) word.pop_back();
    const bool whole = !word.empty() && word.size() < 10 && word.find_first_not_of("0123456789") == word.npos;
    check<UsageError>(whole && std::stoll(word) < limit, "generate: found ", in_quotes(word, 20),
                      " among the ids, expected token ids below ", limit);
    out.push_back(std::stoi(word));
  }
  return out;
}

bool has_tokenizer(const Path& folder) {
  for (const char* name :
       {"tokenizer.json", "vocab.txt", "vocab.json", "encoder.json", "spiece.model", "sentencepiece.bpe.model", "tokenizer.model"})
    if (path_exists(folder / name)) return true;
  return false;
}

Tokenizer tokenizer_of(const GenerateFlags& flags) {
  try {
    return Tokenizer::open(flags.model);
  } catch (const FileError& error) {
    if (!flags.ids.empty()) throw;
    fail<FileError>(error.what(), "; without a tokenizer, --ids '5 6 7' gives the prompt as token ids");
  }
}

struct Prompt {
  std::string text;
  std::vector<int32_t> ids;
};

class Generator {
 public:
  explicit Generator(const GenerateFlags& flags)
      : flags_(flags),
        model_(load_text_generator(flags.model, flags.int8, flags.nonfinite)),
        options_(generation(model_, flags)),
        encoder_(model_.decoder().encoder) {
    if (!flags.ids.empty() && !has_tokenizer(flags.model)) return;
    source_.emplace(tokenizer_of(flags));
    target_.emplace(encoder_ ? Tokenizer::open_target(flags.model) : *source_);
    streams_ =
        !flags.json && !flags.no_stream && (flags.stream || isatty(STDOUT_FILENO) != 0) && options_.beams == 1 && options_.count == 1;
  }

  const Model& model() const { return model_; }
  std::vector<int32_t> encode(const std::string& text) const { return source_->encode(text).ids; }

  void write(Prompt prompt) {
    if (prompt.ids.empty() && options_.start >= 0) prompt.ids.push_back(static_cast<int32_t>(options_.start));
    ++number_;
    const int64_t limit = max_tokens(model_);
    check<FileError>(!prompt.ids.empty(), "prompt ", number_, ": is empty, expected at least one token");
    check<FileError>(std::ssize(prompt.ids) < limit, "prompt ", number_, ": found ", prompt.ids.size(), " tokens, expected fewer than ",
                     limit, ", the positions of ", flags_.model);
    set_length(options_, model_, flags_, std::ssize(prompt.ids));
    const Tensor tokens = Tensor::from(std::vector<int64_t>(prompt.ids.begin(), prompt.ids.end()), {1, std::ssize(prompt.ids)}, kCpu);
    using Clock = std::chrono::steady_clock;
    const Clock::time_point start = Clock::now();
    Beams beams;
    if (streams_) {
      beams.tokens = streamed(prompt, tokens);
    } else if (options_.beams > 1) {
      beams = beam_search(model_, {{"input_ids", tokens}}, options_);
    } else {
      beams.tokens = generate(model_, {{"input_ids", tokens}}, options_);
    }
    const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
    print_result(prompt, beams, seconds);
  }

 private:
  // The prompt is part of the text, except for encoder-decoder models.
  std::vector<int32_t> context(const Prompt& prompt) const { return encoder_ ? std::vector<int32_t>() : prompt.ids; }
  std::string shown_prompt(const Prompt& prompt) const { return encoder_ ? "" : text_of(*source_, prompt.ids); }

  Tensor streamed(const Prompt& prompt, const Tensor& tokens) {
    TextStream stream(*target_, context(prompt));
    std::cout << shown_prompt(prompt) << std::flush;
    options_.on_tokens = [&](std::span<const int64_t> next) {
      const auto id = static_cast<int32_t>(next[0]);
      std::cout << stream.add({&id, 1}) << std::flush;
    };
    const Tensor out = generate(model_, {{"input_ids", tokens}}, options_);
    options_.on_tokens = {};
    std::cout << stream.finish() << '\n';
    return out;
  }

  void print_result(const Prompt& prompt, const Beams& beams, double seconds) const {
    const int64_t start_length = encoder_ ? 1 : std::ssize(prompt.ids), rows = beams.tokens.size(0);
    int64_t count = 0;
    std::vector<std::vector<int32_t>> written;
    for (int64_t i = 0; i < rows; ++i) {
      written.push_back(generated_tokens(beams.tokens, i, start_length, options_));
      count += std::ssize(written.back());
    }
    const double speed = seconds > 0 ? static_cast<double>(count) / seconds : 0;
    for (size_t i = 0; i < written.size(); ++i) {
      std::string text;
      if (target_) {
        TextStream stream(*target_, context(prompt));
        text = stream.add(written[i]) + stream.finish();
      }
      if (flags_.json) {
        Json line{{"prompt", prompt.text}, {"prompt_tokens", prompt.ids}, {"tokens", written[i]}, {"tokens_per_second", speed}};
        if (target_) line["text"] = text;
        if (!beams.scores.empty()) line["score"] = beams.scores[i];
        print_json_line(line);
      } else if (!streams_) {
        if (rows > 1) std::cout << i + 1 << (beams.scores.empty() ? "" : " (" + std::to_string(beams.scores[i]) + ")") << ": ";
        if (target_) std::cout << shown_prompt(prompt) << text;
        for (size_t k = 0; !target_ && k < written[i].size(); ++k) std::cout << (k ? " " : "") << written[i][k];
        std::cout << '\n';
      }
    }
    if (flags_.json) return;
    std::cout.flush();
    std::cerr << count << " tokens in " << std::fixed << std::setprecision(2) << seconds << " s, " << std::setprecision(1) << speed
              << " tokens/s\n";
  }

  const GenerateFlags& flags_;
  Model model_;
  GenerationOptions options_;
  bool encoder_, streams_ = false;
  std::optional<Tokenizer> source_, target_;  // none: token ids in and out
  int64_t number_ = 0;                        // of the prompt
};

void run_generate(const GenerateFlags& flags) {
  check<UsageError>(flags.ids.empty() || (flags.prompts.texts.empty() && flags.prompts.file.empty()),
                    "generate: found --ids and prompts, expected one of the two");
  if (!flags.ids.empty()) {
    Generator generator(flags);
    for (const std::string& ids : flags.ids) generator.write({ids, parse_prompt_ids(ids, generator.model())});
    return;
  }
  SentenceReader reader(flags.prompts, "generate");
  Generator generator(flags);
  for (std::vector<Sentence> some = reader.next(); !some.empty(); some = reader.next())
    for (const Sentence& each : some) generator.write({each.text, generator.encode(each.text)});
}

constexpr const char* kGenerateHelp = R"(Without flags generation_config.json decides; without that, decoding is greedy.
Sampling is reproducible: the same --seed gives the same texts.

Examples:
  heed generate gpt2 'Once upon a time'
  heed generate gpt2 'Once upon a time' --temperature 0.8 --top-p 0.95 --count 3 --seed 7
  heed generate gpt2 'The answer is' --beams 4 --length-penalty 0.6 --max-new-tokens 20
  heed generate gpt2 --file prompts.txt --json > texts.jsonl
  heed generate tests/fixtures/gpt2-lm --ids '5 6 7')";

const Command generate_command("generate", "Continue a prompt with a language model", [](Flags& flags) {
  auto options = std::make_shared<GenerateFlags>();
  GenerateFlags& o = *options;
  const auto above = [](double low) { return within(low, 1e9); };
  flags.option("model", o.model, "Folder of a model or of a run").value("MODEL").required();
  flags.option("prompts", o.prompts.texts, "Text to continue; - or nothing: standard input, one prompt per line")
      .usage("PROMPT...")
      .many()
      .one_value();
  flags.option("--file", o.prompts.file, "A file of prompts: one per line, or a .csv, .tsv or .jsonl table; also .gz").value("FILE");
  add_column_flags(flags, o.prompts.columns, {"text_column"});
  flags.option("--ids", o.ids, "A prompt as token ids, for models without a tokenizer").usage("\"N N N\"").one_value();
  flags.option("--max-new-tokens", o.max_new_tokens, "Maximum number of new tokens; by default as configured in the model, or 64")
      .value("N")
      .must_be(above(1));
  flags.option("--min-new-tokens", o.min_new_tokens, "Minimum number of new tokens").value("N").must_be(above(0));
  flags.flag("--greedy", o.greedy, "Greedy decoding, overriding the model's files");
  flags.option("--temperature", o.temperature, "Sample with this temperature; 0 is greedy").value("T").must_be(above(0));
  flags.option("--top-k", o.top_k, "Sample among the K most probable tokens (default 50); 0: all").value("K").must_be(above(0));
  flags.option("--top-p", o.top_p, "Sample among the most probable tokens with this total probability")
      .value("P")
      .must_be(within(0.0, 1.0));
  flags.option("--min-p", o.min_p, "Sample among tokens of at least P times the highest probability").value("P").must_be(within(0.0, 1.0));
  flags.option("--seed", o.seed, "Sample with this random seed").value("N");
  flags.option("--count", o.count, "Texts per prompt").value("N").must_be(whole_within(1, 4096));
  flags.option("--beams", o.beams, "Beam search with N beams").value("N").must_be(whole_within(1, 256));
  flags.option("--length-penalty", o.length_penalty, "For beam search: above 0 favours long texts").value("X");
  flags.option("--repetition-penalty", o.repetition_penalty, "Above 1 makes tokens that already occurred less probable")
      .value("X")
      .must_be(positive());
  flags.option("--no-repeat", o.no_repeat, "No sequence of N tokens occurs twice").value("N").must_be(above(0));
  flags.flag("--stream", o.stream, "Print tokens as they are generated, even if the output is not a terminal");
  flags.flag("--no-stream", o.no_stream, "Print only complete texts");
  flags.option("--precision", o.precision, "Precision of weights, keys and values on a GPU; f32 with beams or rules such as --no-repeat")
      .value("TYPE")
      .must_be(one_of({"bf16", "f32"}));
  add_int8_flag(flags, o.int8);
  add_nonfinite_flag(flags, o.nonfinite);
  flags.flag("--json", o.json, "One JSON object per text");
  flags.footer(kGenerateHelp);
  return [options] {
    options->model = resolve_model(options->model);
    run_generate(*options);
  };
});

}  // namespace
}  // namespace heed::cli
