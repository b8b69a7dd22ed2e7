#include "heed/cli/sentence_reader.h"

#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <iomanip>
#include <iostream>

#include "heed/cli/run_columns.h"
#include "heed/core/nearest.h"
#include "heed/core/parse.h"
#include "heed/dist/split_work.h"
#include "heed/io/file_kind.h"
#include "heed/io/image_files.h"
#include "heed/io/json.h"
#include "heed/io/paths.h"
#include "heed/io/printable.h"
#include "heed/io/utf8.h"
#include "heed/train/data_fingerprint.h"

namespace heed::cli {
namespace {

constexpr size_t kChunkSentences = 4096;
constexpr size_t kChunkBytes = size_t{16} << 20;
constexpr size_t kLongestLine = size_t{64} << 20;  // bounds memory if the input is not text

// For a misspelt setting such as text_colum=review: the setting that was meant; else nothing.
std::string meant_setting(const std::vector<std::string>& arguments) {
  std::vector<std::string> names;
  for (const auto& [setting, column] : column_settings()) names.emplace_back(setting);
  for (const std::string& argument : arguments)
    if (const std::optional<KeyValue> given = parse_key_value(argument))
      if (const std::string advice = did_you_mean(given->key, names); !advice.empty()) return advice;
  return {};
}

}  // namespace

void add_sentence_flags(Flags& flags, SentenceOptions& options, bool pairs, const std::string& name) {
  std::string shown_name = name;
  for (char& letter : shown_name) letter = static_cast<char>(std::toupper(static_cast<unsigned char>(letter)));
  // one_value(): CLI11 would parse "[MASK] a, b" as a list in brackets.
  flags.option(name, options.texts, "Input; - or nothing: standard input, one sentence per line")
      .usage(shown_name + "...")
      .many()
      .one_value();
  flags.option("--file", options.file, "Input file: one sentence per line, or a .csv, .tsv or .jsonl table; also .gz").value("FILE");
  if (pairs) flags.flag("--pairs", options.pairs, "Pairs of sentences: lines with a tab between them, or two columns of a table");
  if (pairs)
    add_column_flags(flags, options.columns, {"text_column", "pair_column"});
  else
    add_column_flags(flags, options.columns, {"text_column", "source_column"});
}

void add_column_flags(Flags& flags, TextColumns& columns, const std::vector<std::string>& settings, bool with_short) {
  for (const auto& [setting, column] : column_settings()) {
    if (std::find(settings.begin(), settings.end(), setting) == settings.end()) continue;
    std::string flag = std::string("--") + setting;
    std::replace(flag.begin(), flag.end(), '_', '-');
    const std::string role = flag.substr(2, flag.find('-', 2) - 2);
    flags
        .option(
            flag, columns.*column,
            "Of tables: the column of the " + (role == "pair" ? "second text" : role) + ", by name or number; also as " + setting + "=NAME")
        .value("COLUMN")
        .no_default();
    if (with_short) flags.option("--" + role, columns.*column, "The same as " + flag).hidden();
  }
}

void take_column_settings(std::vector<std::string>& arguments, TextColumns& columns) {
  std::erase_if(arguments, [&](const std::string& argument) {
    const std::optional<KeyValue> given = parse_key_value(argument);
    for (const auto& [setting, column] : column_settings()) {
      if (!given || given->key != setting) continue;
      columns.*column = given->value;
      return true;
    }
    return false;
  });
}

bool any_column_set(const TextColumns& columns) {
  for (const auto& [setting, column] : column_settings())
    if (!(columns.*column).empty()) return true;
  return false;
}

void print_columns(const std::string& file, const ChosenColumns& chosen) {
  if (chosen.empty()) return;
  std::cout.flush();
  std::cerr << "heed: " << columns_text(file, chosen) << '\n';
}

void take_file_argument(SentenceOptions& options, const std::string& command) {
  for (const std::string& text : options.texts) {
    std::error_code ignored;
    const bool is_path = text.size() < 4096 && text.find('\n') == std::string::npos;
    const std::string bare = text.ends_with(".gz") ? text.substr(0, text.size() - 3) : text;
    const bool is_text = is_table_file(text) || bare.ends_with(".txt");
    if (!is_path || !std::filesystem::exists(text, ignored)) {
      check<FileError>(!(is_text || is_image_name(text)) || text.find_first_of(" \t\n") != text.npos, text,
                       ": there is no such file; to read this as a sentence, pass it on standard input");
      continue;
    }
    const bool folder = std::filesystem::is_directory(text, ignored), is_file = std::filesystem::is_regular_file(text, ignored);
    if ((is_file && is_text) || std::filesystem::is_fifo(text, ignored)) {  // heed predict MODEL <(command)
      check<UsageError>(options.texts.size() == 1, command, ": found the file ", in_quotes(text), " among ", options.texts.size(),
                        " arguments, expected one file alone, or sentences", meant_setting(options.texts));
      std::cerr << "heed: " << command << " reads the file " << printable(text)
                << (is_table_file(text) ? "\n" : ", one sentence per line\n");
      options.file = text;
      options.texts.clear();
      return;
    }
    const std::string kind = is_file ? kind_of_file(text) : "";
    check<FileError>(kind.empty(), text, ": found ", kind, ", expected sentences, or a file of them: .txt, .csv, .tsv or .jsonl",
                     advice_for(kind, text));
    std::cerr << "heed: warning: " << in_quotes(text) << " is read as a sentence, but there is a " << (folder ? "folder" : "file")
              << " of that name" << (folder ? "" : "; --file reads it") << '\n';
  }
}

SentenceReader::SentenceReader(const SentenceOptions& requested, const std::string& command)
    : pairs_(requested.pairs), are_paths_(requested.are_paths) {
  SentenceOptions options = requested;
  take_column_settings(options.texts, options.columns);
  const bool dash = options.texts == std::vector<std::string>{"-"};
  check<UsageError>(options.texts.empty() || options.file.empty(), command, ": found ", options.texts.size(),
                    " sentences and a --file, expected one of the two");
  if (!dash && !options.are_paths) take_file_argument(options, command);
  const bool is_table = !options.are_paths && options.file != "-" && is_table_file(options.file);
  check<UsageError>(is_table || !any_column_set(options.columns), command,
                    ": found a column name without a table, expected a .csv, .tsv or .jsonl file, also .gz");
  if (!options.texts.empty() && !dash) {
    texts_ = options.texts;
  } else if (is_table) {
    source_ = options.file;
    add_columns_of_run(options.model, source_, options.columns);
    rows_ = read_text_rows(source_, options.columns,
                           options.questions       ? PairMode::context
                           : options.pairs         ? PairMode::yes
                           : options.pairs_by_name ? PairMode::if_named
                                                   : PairMode::no);
    print_columns(source_, rows_->chosen);
  } else if (!options.file.empty() && options.file != "-") {
    open(options.file);
  } else {
    check<UsageError>(dash || !options.file.empty() || isatty(STDIN_FILENO) == 0, command,
                      are_paths_ ? ": found no images, expected files or folders, --file LIST, or names on standard input"
                                 : ": found no sentences, expected arguments, --file FILE, or lines on standard input");
    std::ios::sync_with_stdio(false);  // otherwise every character is read through the C library
    source_ = "standard input";
    in_ = &std::cin;
  }
}

void SentenceReader::open(const std::string& path) {
  source_ = path;
  check<FileError>(!is_folder(source_), source_, ": is a folder, expected a file with one sentence per line");
  file_.open(source_, std::ios::binary);
  check<FileError>(file_.good(), source_, path_exists(source_) ? ": cannot be read" : ": there is no such file");
  in_ = &file_;
  if (!std::filesystem::is_regular_file(path) || kind_of_file(path) != "gzip data") return;
  packed_ = MappedFile::open(path);
  unpacker_ = std::make_unique<GzipReader>(std::span(packed_->data(), static_cast<size_t>(packed_->size())), path);
}

std::string SentenceReader::place() const {
  return in_ ? source_ + ": line " + std::to_string(count_) : "argument " + std::to_string(count_);
}

size_t SentenceReader::read(char* to, size_t bytes) {
  if (unpacker_) return unpacker_->read(std::as_writable_bytes(std::span(to, bytes)));
  in_->read(to, static_cast<std::streamsize>(bytes));
  check<FileError>(!in_->bad(), source_, ": cannot be read");
  return static_cast<size_t>(in_->gcount());
}

bool SentenceReader::next_line(std::string& line) {
  size_t end = buffer_.find('\n', at_);
  while (end == std::string::npos && !ended_) {
    buffer_.erase(0, at_);
    at_ = 0;
    const size_t had = buffer_.size();
    if (had > kLongestLine) break;
    const size_t more = std::max<size_t>(had, size_t{1} << 16);
    buffer_.resize(had + more);
    const size_t got = read(buffer_.data() + had, more);
    buffer_.resize(had + got);
    ended_ = got < more;
    end = buffer_.find('\n', had);
    if (count_ > 0 || had > 0) continue;
    const std::string kind = kind_of_bytes(buffer_);
    check<FileError>(kind.empty(), source_, ": found ", kind, ", expected UTF-8 text, one sentence per line", advice_for(kind, source_));
  }
  if (end == std::string::npos) end = buffer_.size();
  if (at_ >= buffer_.size()) return false;
  ++count_;
  check<FileError>(end - at_ <= kLongestLine, place(), ": found more than ", kLongestLine, " bytes, expected a sentence");
  line.assign(buffer_, at_, end - at_);
  at_ = end + 1;
  return true;
}

Sentence SentenceReader::checked(std::string line) const {
  if (line.ends_with('\r')) line.pop_back();
  if (count_ == 1 && in_ && line.starts_with("\xEF\xBB\xBF")) line.erase(0, 3);  // a byte order mark
  const size_t invalid = are_paths_ ? std::string::npos : find_bad_utf8(line);
  check<FileError>(invalid == std::string::npos, place(), ": found ", in_quotes(line.substr(std::min(invalid, line.size()), 4)),
                   " at byte ", invalid, ", expected UTF-8");
  if (!pairs_) return {std::move(line)};
  const auto tabs = std::count(line.begin(), line.end(), '\t');
  check<FileError>(tabs == 1, place(), ": found ", tabs, " tabs, expected one, between two sentences", in_ ? "" : ": $'one\\ttwo' in bash");
  const size_t tab = line.find('\t');
  return {line.substr(0, tab), line.substr(tab + 1)};
}

std::vector<Sentence> SentenceReader::next_rows() {
  std::vector<Sentence> out;
  size_t bytes = 0;
  first_row_ = next_row_;
  for (; next_row_ < rows_->table.rows.size() && out.size() < kChunkSentences && bytes < kChunkBytes; ++next_row_) {
    const TableRow& row = rows_->table.rows[next_row_];
    out.push_back({rows_->cell(row, rows_->text)});
    if (rows_->pair != kNoColumn) out.back().pair = rows_->cell(row, rows_->pair);
    bytes += out.back().text.size();
  }
  return out;
}

std::vector<Sentence> SentenceReader::next() {
  std::vector<Sentence> out = next_everywhere();
  FinishedParts* const finished = FinishedParts::current();
  if (!finished) return out;
  std::vector<std::string> texts;
  for (const Sentence& each : out) texts.push_back(each.pair ? each.text + '\t' + *each.pair : each.text);
  finished->check_same("input", fingerprint_of(texts).dump());
  return out;
}

// Launchers give standard input to the first process only.
std::vector<Sentence> SentenceReader::next_everywhere() {
  if (rows_) return next_rows();
  if (in_ != &std::cin || world().size() == 1) return next_sentences();
  Json lines = Json::array();
  if (world().is_first())
    for (Sentence& each : next_sentences()) lines.push_back({each.text, each.pair ? Json(*each.pair) : Json()});
  const std::vector<uint8_t> bytes = Json::to_cbor(lines);
  std::vector<Sentence> out;
  for (const Json& line : Json::from_cbor(world().broadcast(std::string(bytes.begin(), bytes.end()), 0)))
    out.push_back({line.at(0), line.at(1).is_null() ? std::nullopt : std::optional(line.at(1).get<std::string>())});
  return out;
}

std::vector<Sentence> SentenceReader::next_sentences() {
  std::vector<Sentence> out;
  size_t bytes = 0;
  while (out.size() < kChunkSentences && bytes < kChunkBytes) {
    std::string line;
    if (in_ ? !next_line(line) : static_cast<size_t>(count_) == texts_.size()) break;
    if (!in_) line = texts_[static_cast<size_t>(count_++)];
    bytes += line.size();
    out.push_back(checked(std::move(line)));
  }
  check<FileError>(count_ > 0, source_, ": is empty, expected one ", are_paths_ ? "image or folder" : "sentence", " per line");
  return out;
}

SentenceCounter::SentenceCounter() : live_(isatty(STDERR_FILENO) != 0), start_(Clock::now()), drawn_(start_) {}

void SentenceCounter::clear() {
  if (shown_) std::cerr << "\r\x1b[K" << std::flush;
  shown_ = false;
}

void SentenceCounter::add(int64_t sentences) {
  count_ += sentences;
  const Clock::time_point now = Clock::now();
  const auto since = [&](Clock::time_point then) { return std::chrono::duration<double>(now - then).count(); };
  if (!live_ || since(drawn_) < 0.5) return;
  std::cerr << "\r\x1b[K" << count_ << " done, " << std::fixed << std::setprecision(0) << static_cast<double>(count_) / since(start_)
            << " per second" << std::flush;
  drawn_ = now;
  shown_ = true;
}

void print_truncated(int64_t cut, int64_t max_tokens) {
  if (cut == 0) return;
  std::cout.flush();
  std::cerr << "heed: " << cut << (cut == 1 ? " sentence was" : " sentences were") << " longer than " << max_tokens
            << " tokens and truncated\n";
}

}  // namespace heed::cli
