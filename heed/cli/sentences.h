// Sentences for commands: arguments, a file or standard input, one a line, some thousands at a time, so that memory stays small
// and answers begin early. What is not UTF-8 is refused with the file and the line.
#pragma once

#include <chrono>
#include <fstream>
#include <string>
#include <vector>

#include "heed/cli/command.h"
#include "heed/text/batches.h"

namespace heed::cli {

struct SentenceOptions {
  std::vector<std::string> texts = {};  // arguments; "-" alone: standard input
  std::string file = {};                // --file; "-": standard input
  bool pairs = false;                   // --pairs: two sentences with a tab between them
  bool any_bytes = false;               // names of files, which need not be UTF-8
};

// SENTENCE..., --file and, where pairs make sense, --pairs. name: of the first where they may be other things too
void add_sentence_flags(Flags& flags, SentenceOptions& options, bool pairs, const std::string& name = "sentence");

class SentenceReader {
 public:
  // command: begins messages about wrong usage. Standard input is read where nothing else is given, unless it is a terminal.
  SentenceReader(const SentenceOptions& options, const std::string& command);
  SentenceReader(const SentenceReader&) = delete;
  SentenceReader& operator=(const SentenceReader&) = delete;

  // The next sentences in order; none at the end. An empty line is an empty sentence; a source without any line is an error.
  std::vector<Sentence> next();

 private:
  bool next_line(std::string& line);  // false at the end
  Sentence checked(std::string line) const;
  std::string place() const;  // "FILE: line 3" or "argument 3"

  const bool pairs_, any_bytes_;
  std::vector<std::string> texts_ = {};  // the arguments, where they are the sentences
  std::ifstream file_ = {};
  std::istream* in_ = nullptr;  // null: arguments
  std::string source_ = {}, buffer_ = {};
  size_t at_ = 0;  // in buffer_
  int64_t count_ = 0;
};

// Shows on a terminal's standard error how far the work is; nothing elsewhere.
class SentenceCounter {
 public:
  SentenceCounter();
  ~SentenceCounter() { clear(); }
  SentenceCounter(const SentenceCounter&) = delete;
  SentenceCounter& operator=(const SentenceCounter&) = delete;
  void add(int64_t sentences);
  void clear();  // before anything else is printed

 private:
  using Clock = std::chrono::steady_clock;
  const bool live_;
  const Clock::time_point start_;
  Clock::time_point drawn_;
  int64_t count_ = 0;
  bool shown_ = false;
};

// Says on standard error how many sentences were too long, if any.
void tell_cut(int64_t cut, int64_t most_tokens);

// A sentence as a table shows it: at most so many characters, nothing that a terminal would obey.
std::string shown(const std::string& sentence, size_t longest = 60);
std::string padded(const std::string& text, int64_t width);  // with spaces behind it, as a column of so many characters

}  // namespace heed::cli
