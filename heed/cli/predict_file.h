// Predictions for sentences as a file: the columns of the input, then the labels.
#pragma once

#include "heed/cli/predict.h"

namespace heed::cli {

// A row as an object, in the order of its columns: those of a table, or "text" and "pair". For .jsonl input, the object of the line.
nlohmann::ordered_json row_json(const Sentence& sentence, const TableRow* row, const std::vector<std::string>& columns);

// .csv, .tsv or .jsonl, by file name. The input columns are followed by label and probability (regression: label and value), with --top K
// also label_2, probability_2 and so on. If the input has a column of that name, the new one is called predicted_label and so on. A table
// without a header gets one: column_1, column_2, ... Tabs and newlines inside cells become spaces in .tsv. The file is written atomically.
class LabelFile {
 public:
  // columns: of the input. labels: number of labels per row
  LabelFile(const std::string& path, std::vector<std::string> columns, Labels::Kind kind, int64_t labels);
  void add(const Sentence& sentence, const TableRow* row, const std::vector<Label>& labels);  // row: null if the input is not a table
  void finish();
  int64_t rows() const { return rows_; }

  static void check_name(const std::string& path);  // throws a UsageError for any other extension

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
