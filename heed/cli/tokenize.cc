// heed tokenize: encodes text with the tokenizer of a model, or decodes ids.
#include <algorithm>
#include <chrono>
#include <iomanip>
#include <iostream>
#include <memory>
#include <span>
#include <sstream>
#include <string>
#include <vector>

#include "heed/cli/model_name.h"
#include "heed/cli/parts_file.h"
#include "heed/cli/sentence_reader.h"
#include "heed/io/json.h"
#include "heed/text/tokenizer.h"
#include "heed/train/data_fingerprint.h"

namespace heed::cli {
namespace {

struct TokenizeFlags {
  std::string model;
  std::vector<std::string> texts;
  std::string pair, parts;
  bool ids = false, decode = false, lines = false, count = false, json = false, offsets = false, plain = false, keep_special = false;
  int64_t max_length = 0;
};

EncodeOptions encode_options(const TokenizeFlags& options) {
  EncodeOptions out;
  out.add_special_tokens = !options.plain;
  out.max_length = options.max_length;
  return out;
}

constexpr size_t kPartTexts = 1024, kChunkTexts = 16 * kPartTexts;

// The next lines of standard input, which launchers give to the first process only; none at the end.
std::vector<std::string> next_lines() {
  std::vector<std::string> lines;
  if (world().is_first())
    for (std::string line; lines.size() < kChunkTexts && std::getline(std::cin, line);) lines.push_back(std::move(line));
  check<FileError>(!std::cin.bad(), "standard input: cannot be read");
  if (world().size() > 1) {
    std::string all;
    for (const std::string& line : lines) all += line + '\n';
    std::istringstream stream(world().broadcast(std::move(all), 0));
    lines.clear();
    for (std::string line; std::getline(stream, line);) lines.push_back(std::move(line));
  }
  if (FinishedParts* const finished = FinishedParts::current()) finished->check_same("input", fingerprint_of(lines).dump());
  return lines;
}

using Texts = std::span<const std::string>;

// Calls write(texts, out) for some texts at a time, in the process whose turn it is, and take(what it has written) in all of them, in
// order.
template <class Write, class Take>
void split_texts(Texts texts, const Write& write, const Take& take) {
  const size_t count = (texts.size() + kPartTexts - 1) / kPartTexts;
  split_work(
      world(), static_cast<int64_t>(count),
      [&](int64_t part) {
        const size_t begin = static_cast<size_t>(part) * kPartTexts;
        std::ostringstream out;
        write(texts.subspan(begin, std::min(kPartTexts, texts.size() - begin)), out);
        return std::move(out).str();
      },
      [&](int64_t, const std::string& written) { take(written); });
}

// The same for standard input, in chunks, which bounds memory.
template <class Write, class Take>
void split_lines(const Write& write, const Take& take) {
  std::ios::sync_with_stdio(false);  // otherwise every character is read through the C library
  for (std::vector<std::string> lines = next_lines(); !lines.empty(); lines = next_lines()) split_texts(lines, write, take);
}

void print_part(const std::string& text) { std::cout << text; }

template <class List>
void print_list(const List& list, std::ostream& out) {
  std::string text;
  for (const auto& value : list) text.append(text.empty() ? "" : " ").append(std::to_string(value));
  out << text << '\n';
}

void print_offsets(const Encoding& encoding, std::ostream& out) {
  std::string text;
  for (const text::Span at : encoding.offsets)
    text.append(text.empty() ? "" : " ").append(std::to_string(at.begin)).append("-").append(std::to_string(at.end));
  out << text << '\n';
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
  const auto write = [&](Texts lines, std::ostream& out) {
    for (const std::string& ids : lines) {
      const std::vector<int32_t> tokens = parse_ids(ids);
      for (const int32_t id : tokens)
        check<UsageError>(tokenizer.has(id), "tokenize: found the id ", id, ", which the tokenizer does not have; its ids are below ",
                          tokenizer.id_limit());
      const std::string text = tokenizer.decode(tokens, !options.keep_special);
      out << (options.json ? Json{{"text", text}}.dump() : text) << '\n';
    }
  };
  if (options.lines) return split_lines(write, print_part);
  std::string all;
  for (const std::string& text : options.texts) all += text + " ";
  write(std::span(&all, 1), std::cout);
}

Json encoding_json(const Tokenizer& tokenizer, const std::string& text, const Encoding& encoding) {
  Json tokens = Json::array(), offsets = Json::array();
  for (const int32_t id : encoding.ids) tokens.push_back(tokenizer.token(id));
  for (const text::Span at : encoding.offsets) offsets.push_back({at.begin, at.end});
  return {{"text", text},       {"ids", encoding.ids},           {"tokens", tokens},
          {"offsets", offsets}, {"type_ids", encoding.type_ids}, {"special_tokens_mask", encoding.special_mask}};
}

void print_encoding(const Tokenizer& tokenizer, const std::string& text, const Encoding& encoding, const TokenizeFlags& options,
                    std::ostream& out) {
  if (options.json) {
    // error_handler_t::replace: the text may be invalid UTF-8
    out << encoding_json(tokenizer, text, encoding).dump(-1, ' ', false, Json::error_handler_t::replace) << '\n';
  } else if (options.ids || options.lines) {
    print_list(encoding.ids, out);
    if (options.offsets) print_offsets(encoding, out);
  } else {
    for (size_t i = 0; i < encoding.ids.size(); ++i) {
      const text::Span at = encoding.offsets[i];
      out << std::setw(8) << encoding.ids[i] << "  " << tokenizer.display(encoding.ids[i]);
      if (options.offsets) out << "  " << at.begin << "-" << at.end;
      out << '\n';
    }
  }
}

// Counts the tokens of standard input and measures the speed.
void count(const Tokenizer& tokenizer, const TokenizeFlags& options) {
  using Clock = std::chrono::steady_clock;
  int64_t lines = 0, bytes = 0, tokens = 0;
  double seconds = 0;  // of encoding; the processes work at the same time
  const auto measure = [&](Texts texts, std::ostream& out) {
    const Clock::time_point start = Clock::now();
    int64_t found = 0, size = 0;
    for (const Encoding& encoding : tokenizer.encode_all(texts, encode_options(options))) found += encoding.size();
    for (const std::string& line : texts) size += std::ssize(line) + 1;
    out << texts.size() << ' ' << size << ' ' << found << ' ' << std::chrono::duration<double>(Clock::now() - start).count() << '\n';
  };
  split_lines(measure, [&](const std::string& written) {
    std::istringstream numbers(written);
    int64_t part_lines = 0, part_bytes = 0, part_tokens = 0;
    double part_seconds = 0;
    numbers >> part_lines >> part_bytes >> part_tokens >> part_seconds;
    lines += part_lines;
    bytes += part_bytes;
    tokens += part_tokens;
    seconds += part_seconds / world().size();
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
  const auto write = [&](Texts texts, std::ostream& out) {
    std::vector<Encoding> encodings;
    if (options.pair.empty()) encodings = tokenizer.encode_all(texts, encode_options(options));
    for (size_t i = 0; i < texts.size(); ++i)
      print_encoding(tokenizer, texts[i],
                     options.pair.empty() ? encodings[i] : tokenizer.encode(texts[i], options.pair, encode_options(options)), options, out);
  };
  if (options.lines) return split_lines(write, print_part);
  SentenceOptions inputs{.texts = options.texts};
  take_file_argument(inputs, "tokenize");
  if (inputs.file.empty()) return split_texts(options.texts, write, print_part);
  SentenceReader reader(inputs, "tokenize");
  for (std::vector<Sentence> some = reader.next(); !some.empty(); some = reader.next()) {
    std::vector<std::string> texts;
    for (Sentence& each : some) texts.push_back(std::move(each.text));
    split_texts(texts, write, print_part);
  }
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
  add_parts_flag(flags, options->parts);
  flags.footer(
      "Examples:\n  heed tokenize minilm 'Hello, world!'\n  heed tokenize gpt2 --ids 'Hello, world!'\n  heed tokenize gpt2 --decode 15496 "
      "11 995\n"
      "  heed tokenize minilm --lines < corpus.txt > ids.txt\n  heed tokenize minilm --count < corpus.txt");
  return [options] {
    options->model = resolve_model(options->model);
    const std::unique_ptr<PartsFile> parts = parts_file(options->parts, options->model);
    run_tokenize(*options);
    if (parts) parts->remove();
  };
});

}  // namespace
}  // namespace heed::cli
