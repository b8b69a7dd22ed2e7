// heed tokenize: encodes text with the tokenizer of a model, or decodes ids.
#include <algorithm>
#include <chrono>
#include <iomanip>
#include <iostream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "heed/cli/model_name.h"
#include "heed/cli/sentence_reader.h"
#include "heed/io/json.h"
#include "heed/text/tokenizer.h"

namespace heed::cli {
namespace {

struct TokenizeFlags {
  std::string model;
  std::vector<std::string> texts;
  std::string pair;
  bool ids = false, decode = false, lines = false, count = false, json = false, offsets = false, plain = false, keep_special = false;
  int64_t max_length = 0;
};

EncodeOptions encode_options(const TokenizeFlags& options) {
  EncodeOptions out;
  out.add_special_tokens = !options.plain;
  out.max_length = options.max_length;
  return out;
}

// Processes standard input in batches of lines, which bounds memory.
template <class Body>
void each_batch_of_lines(const Body& body) {
  constexpr size_t batch_size = 4096;
  std::ios::sync_with_stdio(false);  // otherwise every character is read through the C library
  std::vector<std::string> lines;
  for (std::string line; std::getline(std::cin, line);) {
    lines.push_back(std::move(line));
    if (lines.size() < batch_size) continue;
    body(lines);
    lines.clear();
  }
  if (!lines.empty()) body(lines);
}

template <class List>
void print_list(const List& list) {
  std::string text;
  for (const auto& value : list) text.append(text.empty() ? "" : " ").append(std::to_string(value));
  std::cout << text << '\n';
}

void print_offsets(const Encoding& encoding) {
  std::string text;
  for (const text::Span at : encoding.offsets)
    text.append(text.empty() ? "" : " ").append(std::to_string(at.begin)).append("-").append(std::to_string(at.end));
  std::cout << text << '\n';
}

std::vector<int32_t> parse_ids(const std::string& text) {
  std::vector<int32_t> ids;
  size_t at = 0;
  const auto is_separator = [](char c) { return c == ' ' || c == ',' || c == '\t' || c == '\r' || c == '[' || c == ']'; };
  while (at < text.size()) {
    if (is_separator(text[at])) {
      ++at;
      continue;
    }
    int64_t id = 0;
    const size_t begin = at;
    for (; at < text.size() && text[at] >= '0' && text[at] <= '9' && id < INT32_MAX; ++at) id = 10 * id + (text[at] - '0');
    check<UsageError>(at > begin && (at == text.size() || is_separator(text[at])) && id <= INT32_MAX, "tokenize: found ",
                      in_quotes(text.substr(begin), 20), ", expected token ids separated by spaces or commas");
    ids.push_back(static_cast<int32_t>(id));
  }
  return ids;
}

void decode(const Tokenizer& tokenizer, const TokenizeFlags& options) {
  const auto print = [&](const std::string& ids) {
    const std::string text = tokenizer.decode(parse_ids(ids), !options.keep_special);
    std::cout << (options.json ? Json{{"text", text}}.dump() : text) << '\n';
  };
  if (options.lines)
    return each_batch_of_lines([&](const std::vector<std::string>& lines) { std::for_each(lines.begin(), lines.end(), print); });
  std::string all;
  for (const std::string& text : options.texts) all += text + " ";
  print(all);
}

Json encoding_json(const Tokenizer& tokenizer, const std::string& text, const Encoding& encoding) {
  Json tokens = Json::array(), offsets = Json::array();
  for (const int32_t id : encoding.ids) tokens.push_back(tokenizer.token(id));
  for (const text::Span at : encoding.offsets) offsets.push_back({at.begin, at.end});
  return {{"text", text},       {"ids", encoding.ids},           {"tokens", tokens},
          {"offsets", offsets}, {"type_ids", encoding.type_ids}, {"special_tokens_mask", encoding.special_mask}};
}

void print_encoding(const Tokenizer& tokenizer, const std::string& text, const Encoding& encoding, const TokenizeFlags& options) {
  if (options.json) {
    // error_handler_t::replace: the text may be invalid UTF-8
    std::cout << encoding_json(tokenizer, text, encoding).dump(-1, ' ', false, Json::error_handler_t::replace) << '\n';
  } else if (options.ids || options.lines) {
    print_list(encoding.ids);
    if (options.offsets) print_offsets(encoding);
  } else {
    for (size_t i = 0; i < encoding.ids.size(); ++i) {
      const text::Span at = encoding.offsets[i];
      std::cout << std::setw(8) << encoding.ids[i] << "  " << tokenizer.display(encoding.ids[i]);
      if (options.offsets) std::cout << "  " << at.begin << "-" << at.end;
      std::cout << '\n';
    }
  }
}

// Counts the tokens of standard input and measures the speed.
void count(const Tokenizer& tokenizer, const TokenizeFlags& options) {
  using Clock = std::chrono::steady_clock;
  int64_t lines = 0, bytes = 0, tokens = 0;
  double seconds = 0;
  each_batch_of_lines([&](const std::vector<std::string>& batch) {
    const Clock::time_point start = Clock::now();
    const std::vector<Encoding> encodings = tokenizer.encode_all(batch, encode_options(options));
    seconds += std::chrono::duration<double>(Clock::now() - start).count();
    lines += std::ssize(batch);
    for (const std::string& line : batch) bytes += std::ssize(line) + 1;
    for (const Encoding& encoding : encodings) tokens += encoding.size();
  });
  const double speed = seconds > 0 ? static_cast<double>(bytes) / 1e6 / seconds : 0;
  if (options.json) {
    std::cout << Json{{"lines", lines}, {"bytes", bytes}, {"tokens", tokens}, {"seconds", seconds}, {"mb_per_second", speed}}.dump()
              << '\n';
  } else {
    std::cout << lines << " lines, " << bytes << " bytes, " << tokens << " tokens; " << std::fixed << std::setprecision(2) << seconds
              << " s, " << std::setprecision(1) << speed << " MB/s\n";
  }
}

void run_tokenize(const TokenizeFlags& options) {
  const bool from_input = options.lines || options.count;
  check<UsageError>(from_input == options.texts.empty(), "tokenize: found ", options.texts.size(), " texts, expected ",
                    from_input ? "none: --lines and --count read standard input" : "at least one, or --lines to read standard input");
  const Tokenizer tokenizer = Tokenizer::open(options.model);
  if (options.count) return count(tokenizer, options);
  if (options.decode) return decode(tokenizer, options);
  if (options.lines)
    return each_batch_of_lines([&](const std::vector<std::string>& lines) {
      const std::vector<Encoding> encodings = tokenizer.encode_all(lines, encode_options(options));
      for (size_t i = 0; i < lines.size(); ++i) print_encoding(tokenizer, lines[i], encodings[i], options);
    });
  const auto print_one = [&](const std::string& text) {
    const Encoding encoding = options.pair.empty() ? tokenizer.encode(text, encode_options(options))
                                                   : tokenizer.encode(text, options.pair, encode_options(options));
    print_encoding(tokenizer, text, encoding, options);
  };
  SentenceOptions inputs{.texts = options.texts};
  take_file_argument(inputs, "tokenize");
  if (!inputs.file.empty()) {
    SentenceReader reader(inputs, "tokenize");
    for (std::vector<Sentence> some = reader.next(); !some.empty(); some = reader.next())
      for (const Sentence& each : some) print_one(each.text);
    return;
  }
  for (const std::string& text : options.texts) print_one(text);
}

const Command tokenize_command("tokenize", "Encode text with the tokenizer of a model, or decode ids", [](Flags& flags) {
  auto options = std::make_shared<TokenizeFlags>();
  flags.option("model", options->model, "Folder of a model or of a run, or a tokenizer.json").value("MODEL").required();
  // one_value(): CLI11 would parse "[MASK] a, b" as a list in brackets.
  flags.option("text", options->texts, "Text to encode, or ids to decode; the name of a .txt, .csv, .tsv or .jsonl file: its texts")
      .usage("TEXT...")
      .many()
      .one_value();
  flags.flag("--ids", options->ids, "Print only ids, one line per text");
  flags.flag("--decode", options->decode, "Decode ids to text");
  flags.flag("--lines", options->lines, "Read lines from standard input and print one line for each");
  flags.flag("--count", options->count, "Count the tokens of standard input and measure the speed");
  flags.option("--pair", options->pair, "A second text, encoded together with each").value("TEXT");
  flags.option("--max-length", options->max_length, "Truncate to N tokens").value("N").must_be(non_negative());
  flags.flag("--no-special", options->plain, "Do not add special tokens like [CLS]");
  flags.flag("--keep-special", options->keep_special, "Keep special tokens when decoding");
  flags.flag("--offsets", options->offsets, "Print the byte range of each token in the text");
  flags.flag("--json", options->json, "One JSON object per line");
  flags.footer(
      "Examples:\n  heed tokenize minilm 'Hello, world!'\n  heed tokenize gpt2 --ids 'Hello, world!'\n  heed tokenize gpt2 --decode 15496 "
      "11 995\n"
      "  heed tokenize minilm --lines < corpus.txt > ids.txt\n  heed tokenize minilm --count < corpus.txt");
  return [options] {
    options->model = resolve_model(options->model);
    run_tokenize(*options);
  };
});

}  // namespace
}  // namespace heed::cli
