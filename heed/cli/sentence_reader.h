// The sentences a command reads: from arguments, a file of lines, a table or standard input. They come in chunks of some thousand, which
// bounds memory and gives early results. Invalid UTF-8 is an error that names the file and the line.
#pragma once

#include <chrono>
#include <fstream>
#include <string>
#include <vector>

#include "heed/cli/command.h"
#include "heed/data/text_rows.h"
#include "heed/io/gzip_reader.h"
#include "heed/text/batches.h"

namespace heed::cli {

struct SentenceOptions {
  std::vector<std::string> texts = {};  // arguments; "-" alone: standard input
  std::string file = {};                // --file; "-": standard input
  bool pairs = false;                   // --pairs: two sentences with a tab between them, or two columns of a table
  TextColumns columns = {};             // of a table
  std::string model = {};               // of a run: columns that are not set are those of the run, where the table has them
  bool are_paths = false;               // the inputs are paths (of images), which need not be UTF-8
  bool pairs_by_name = false;           // of a table: read pairs if its column names say so, for example sentence1 and sentence2
  bool questions = false;               // the pairs are questions and texts
};

// Adds SENTENCE..., --file and, with `pairs`, --pairs and --pair-column. name: of the positional argument
void add_sentence_flags(Flags& flags, SentenceOptions& options, bool pairs, const std::string& name = "sentence");

// Adds --text-column and so on. settings: names from column_settings(). with_short: --text and so on mean the same
void add_column_flags(Flags& flags, TextColumns& columns, const std::vector<std::string>& settings, bool with_short = false);
// Moves arguments such as text_column=review from `arguments` to `columns`.
void take_column_settings(std::vector<std::string>& arguments, TextColumns& columns);
bool any_column_set(const TextColumns& columns);
void print_columns(const std::string& file, const ChosenColumns& chosen);  // on standard error; nothing if `chosen` is empty

// Handles arguments that name files. A single .txt, .csv, .tsv or .jsonl file (also .gz) becomes options.file, with a note on standard
// error; together with other arguments it is a UsageError. Images and other binary files are FileErrors. Any other existing name is read as
// a sentence, with a warning. command: prefix of messages
void take_file_argument(SentenceOptions& options, const std::string& command);

class SentenceReader {
 public:
  // command: prefix of usage errors. Standard input is read if nothing else is given, unless it is a terminal.
  SentenceReader(const SentenceOptions& options, const std::string& command);
  SentenceReader(const SentenceReader&) = delete;
  SentenceReader& operator=(const SentenceReader&) = delete;

  // The next chunk, in order; empty at the end. An empty line is an empty sentence; a source without lines is an error.
  std::vector<Sentence> next();

  const TextRows* table() const { return rows_ ? &*rows_ : nullptr; }  // null: the input is not a table
  size_t first_row() const { return first_row_; }                      // index in the table of the first row of the last chunk

 private:
  void open(const std::string& path);
  size_t read(char* to, size_t bytes);  // fewer bytes only at the end
  std::vector<Sentence> next_everywhere(), next_rows(), next_sentences();
  bool next_line(std::string& line);  // false at the end
  Sentence checked(std::string line) const;
  std::string place() const;  // "FILE: line 3" or "argument 3"

  const bool pairs_, are_paths_;
  std::vector<std::string> texts_ = {};  // sentences given as arguments
  std::optional<TextRows> rows_ = {};
  size_t first_row_ = 0, next_row_ = 0;
  std::ifstream file_ = {};
  std::istream* in_ = nullptr;  // null: arguments, or a table
  std::shared_ptr<const MappedFile> packed_ = {};
  std::unique_ptr<GzipReader> unpacker_ = {};  // of a gzip file, used instead of in_
  bool ended_ = false;
  std::string source_ = {}, buffer_ = {};
  size_t at_ = 0;  // in buffer_
  int64_t count_ = 0;
};

// A progress counter on standard error, if it is a terminal.
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

// Prints on standard error how many sentences were truncated, if any.
void print_truncated(int64_t cut, int64_t max_tokens);

}  // namespace heed::cli
