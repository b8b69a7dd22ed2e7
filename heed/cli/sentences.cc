#include "heed/cli/sentences.h"

#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <iomanip>
#include <iostream>

#include "heed/io/paths.h"
#include "heed/text/unicode.h"

namespace heed::cli {
namespace {

constexpr size_t kSentencesAtOnce = 4096;
constexpr size_t kBytesAtOnce = size_t{16} << 20;
constexpr size_t kLongestLine = size_t{64} << 20;  // more is no sentence; without a limit it would be all memory

}  // namespace

void add_sentence_flags(Flags& flags, SentenceOptions& options, bool pairs, const std::string& name) {
  std::string shown_name = name;
  for (char& letter : shown_name) letter = static_cast<char>(std::toupper(static_cast<unsigned char>(letter)));
  // Or the parser would take "[MASK] a, b" for a list in brackets.
  flags.option(name, options.texts, "What to read; - or nothing: standard input, one sentence a line")
      .shown(shown_name + "...")
      .many()
      .one_value();
  flags.option("--file", options.file, "A file to read, one sentence a line").value("FILE");
  if (pairs) flags.flag("--pairs", options.pairs, "Every line holds two sentences with a tab between them");
}

SentenceReader::SentenceReader(const SentenceOptions& options, const std::string& command)
    : pairs_(options.pairs), any_bytes_(options.any_bytes) {
  const bool dash = options.texts == std::vector<std::string>{"-"};
  check<UsageError>(options.texts.empty() || options.file.empty(), command, ": found ", options.texts.size(),
                    " sentences and a --file, expected one of the two");
  if (!options.texts.empty() && !dash) {
    texts_ = options.texts;
  } else if (!options.file.empty() && options.file != "-") {
    source_ = options.file;
    check<FileError>(!is_folder(source_), source_, ": is a folder, expected a file with a sentence on every line");
    file_.open(source_, std::ios::binary);
    check<FileError>(file_.good(), source_, path_exists(source_) ? ": cannot be read" : ": there is no such file");
    in_ = &file_;
  } else {
    check<UsageError>(dash || !options.file.empty() || isatty(STDIN_FILENO) == 0, command,
                      ": found no sentences, expected some as arguments, --file FILE, or lines on standard input");
    std::ios::sync_with_stdio(false);  // or every character would come through the C library on its own
    source_ = "standard input";
    in_ = &std::cin;
  }
}

std::string SentenceReader::place() const {
  return in_ ? source_ + ": line " + std::to_string(count_) : "argument " + std::to_string(count_);
}

bool SentenceReader::next_line(std::string& line) {
  size_t end = buffer_.find('\n', at_);
  while (end == std::string::npos && in_->good()) {
    buffer_.erase(0, at_);
    at_ = 0;
    const size_t had = buffer_.size();
    if (had > kLongestLine) break;
    buffer_.resize(std::max<size_t>(2 * had, size_t{1} << 16));
    in_->read(buffer_.data() + had, static_cast<std::streamsize>(buffer_.size() - had));
    buffer_.resize(had + static_cast<size_t>(in_->gcount()));
    check<FileError>(!in_->bad(), source_, ": cannot be read");
    end = buffer_.find('\n', had);
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
  const size_t bad = any_bytes_ ? std::string::npos : text::find_bad_utf8(line);
  check<FileError>(bad == std::string::npos, place(), ": found ", in_quotes(line.substr(std::min(bad, line.size()), 4)), " at byte ", bad,
                   ", expected UTF-8");
  if (!pairs_) return {std::move(line)};
  const auto tabs = std::count(line.begin(), line.end(), '\t');
  check<FileError>(tabs == 1, place(), ": found ", tabs, " tabs, expected one, between two sentences");
  const size_t tab = line.find('\t');
  return {line.substr(0, tab), line.substr(tab + 1)};
}

std::vector<Sentence> SentenceReader::next() {
  std::vector<Sentence> out;
  size_t bytes = 0;
  while (out.size() < kSentencesAtOnce && bytes < kBytesAtOnce) {
    std::string line;
    if (in_ ? !next_line(line) : static_cast<size_t>(count_) == texts_.size()) break;
    if (!in_) line = texts_[static_cast<size_t>(count_++)];
    bytes += line.size();
    out.push_back(checked(std::move(line)));
  }
  check<FileError>(count_ > 0, source_, ": is empty, expected a sentence on every line");
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
            << " a second" << std::flush;
  drawn_ = now;
  shown_ = true;
}

void tell_cut(int64_t cut, int64_t most_tokens) {
  if (cut == 0) return;
  std::cout.flush();
  std::cerr << "heed: " << cut << (cut == 1 ? " sentence was" : " sentences were") << " longer than " << most_tokens << " tokens and cut\n";
}

std::string shown(const std::string& sentence, size_t longest) {
  std::string out;
  size_t at = 0;
  for (size_t letters = 0; at < sentence.size() && letters < longest; ++letters) {
    const char32_t c = text::next_char(sentence, at);
    if (text::classes_of(c) & text::kControl)
      out += ' ';
    else
      text::append_utf8(out, c);
  }
  return at < sentence.size() ? out + "..." : out;
}

std::string padded(const std::string& text, int64_t width) {
  return text + std::string(static_cast<size_t>(std::max<int64_t>(0, width - text::count_chars(text))), ' ');
}

}  // namespace heed::cli
