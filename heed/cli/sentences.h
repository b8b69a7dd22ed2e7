// Sentences for commands: arguments, a file of lines, a table or standard input, some thousands at a time, so that memory stays small
// and answers begin early. What is not UTF-8 is refused with the file and the line.
#pragma once

#include <chrono>
#include <fstream>
#include <string>
#include <vector>

#include "heed/cli/command.h"
#include "heed/data/text_rows.h"
#include "heed/io/unpack.h"
#include "heed/text/batches.h"

namespace heed::cli {

struct SentenceOptions {
  std::vector<std::string> texts = {};  // arguments; "-" alone: standard input
  std::string file = {};                // --file; "-": standard input
  bool pairs = false;                   // --pairs: two sentences with a tab between them, or two columns of a table
  TextColumns columns = {};             // of a table
  bool are_paths = false;               // what is read is paths, of images for example: which need not be UTF-8
  bool pairs_by_name = false;           // of a table: pairs also where its columns are called so, sentence1 and sentence2 for example
};

// SENTENCE..., --file and, where pairs make sense, --pairs and --pair-column. name: of the first where they may be other things too
void add_sentence_flags(Flags& flags, SentenceOptions& options, bool pairs, const std::string& name = "sentence");

// --text-column and the like, for the columns named here, as they are called in column_settings(). with_short: also --text
void add_column_flags(Flags& flags, TextColumns& columns, const std::vector<std::string>& settings, bool with_short = false);
// Takes words like text_column=review out of `words`.
void take_column_words(std::vector<std::string>& words, TextColumns& columns);
bool names_any(const TextColumns& columns);
void tell_columns(const std::string& file, const ChosenColumns& chosen);  // on standard error; nothing where there are none

// An argument that names a file is not a sentence. One .txt, .csv, .tsv or .jsonl file (also .gz) becomes options.file, which standard
// error says; one among other arguments is a UsageError. Images and the like are FileErrors; what may be a word as well as another file
// stays a sentence, with a warning. command: begins messages
void take_file_argument(SentenceOptions& options, const std::string& command);

class SentenceReader {
 public:
  // command: begins messages about wrong usage. Standard input is read where nothing else is given, unless it is a terminal.
  SentenceReader(const SentenceOptions& options, const std::string& command);
  SentenceReader(const SentenceReader&) = delete;
  SentenceReader& operator=(const SentenceReader&) = delete;

  // The next sentences in order; none at the end. An empty line is an empty sentence; a source without any line is an error.
  std::vector<Sentence> next();

  const TextRows* table() const { return rows_ ? &*rows_ : nullptr; }  // null: no table is read
  size_t first_row() const { return first_row_; }                      // in the table, of what next() gave last

 private:
  void open(const std::string& path);
  size_t read(char* to, size_t bytes);  // fewer: the end
  std::vector<Sentence> next_rows();
  bool next_line(std::string& line);  // false at the end
  Sentence checked(std::string line) const;
  std::string place() const;  // "FILE: line 3" or "argument 3"

  const bool pairs_, are_paths_;
  std::vector<std::string> texts_ = {};  // the arguments, where they are the sentences
  std::optional<TextRows> rows_ = {};
  size_t first_row_ = 0, next_row_ = 0;
  std::ifstream file_ = {};
  std::istream* in_ = nullptr;  // null: arguments, or a table
  std::shared_ptr<const MappedFile> packed_ = {};
  std::unique_ptr<Unpacker> unpacker_ = {};  // of a packed file, in place of in_
  bool ended_ = false;
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
