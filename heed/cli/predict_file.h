// Answers about sentences as a file: the columns of the input, then the labels.
#pragma once

#include "heed/cli/predict.h"

namespace heed::cli {

// The values of a row by their columns, in order: those of a table, or "text" and "pair". Of .jsonl it is the object of the line.
nlohmann::ordered_json row_json(const Sentence& sentence, const TableRow* row, const std::vector<std::string>& columns);

// .csv, .tsv or .jsonl, by the name. Behind the columns of the input come label and probability (of values: label and value), with --top
// K also label_2, probability_2 and so on; where the input has a column of that name, ours is called predicted_label and the like. A table
// without a header gets one: column_1, column_2, ... Tabs and line ends inside cells become spaces in .tsv. Written whole or not at all.
class LabelFile {
 public:
  // columns: of the input. labels: how many a row has
  LabelFile(const std::string& path, std::vector<std::string> columns, Labels::Kind kind, int64_t labels);
  void add(const Sentence& sentence, const TableRow* row, const std::vector<Label>& labels);  // row: null where no table is read
  void finish();
  int64_t rows() const { return rows_; }

  static void check_name(const std::string& path);  // a UsageError where the ending is none of the three

 private:
  enum class Kind { csv, tsv, jsonl };
  static Kind kind_of(const std::string& path);
  void write_line(const std::vector<std::string>& cells);

  const Kind kind_;
  const std::vector<std::string> columns_;
  std::vector<std::string> added_ = {};  // label, probability, label_2, ...
  FileWriter out_;
  int64_t rows_ = 0;
};

}  // namespace heed::cli
