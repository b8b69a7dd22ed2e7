// What heed predict's two halves share, for sentences and for pictures: the flags, and labels as a table or as JSON.
#pragma once

#include <optional>

#include "heed/cli/print_json.h"
#include "heed/cli/sentences.h"
#include "heed/io/json.h"
#include "heed/models/classify.h"

namespace heed::cli {

struct PredictOptions {
  std::string model;
  SentenceOptions inputs;   // for pictures: files and folders
  int64_t top = 0;          // 0: as suits the model
  int64_t max_length = 0;   // tokens
  std::string output = {};  // a file for the answers
  bool json = false;
  bool int8 = false;
  bool agreement = false;  // with int8: floats compute too, and the two are compared
  bool skip_bad = false;   // pictures that cannot be read
  bool nonfinite = false;  // weights that are NaN or infinite are let through
};

void predict_text(const PredictOptions& options, Model model);
void predict_pictures(const PredictOptions& options, const Model& model);

// How far the answers of a model in bytes are those of the same model in floats.
class Agreement {
 public:
  void add(const std::vector<Label>& bytes, const std::vector<Label>& floats);  // all labels of one input, the best first
  void tell() const;                                                            // on standard error

 private:
  int64_t inputs_ = 0, same_ = 0;
  float apart_ = 0;  // the most that a score moved
};

// Rows of a label, its score, and what it is said about, which stands in the first row of its own alone.
class LabelTable {
 public:
  LabelTable(const std::string& label, const std::vector<std::string>& names, Labels::Kind kind, const std::string& about);
  void add(const std::vector<Label>& labels, const std::string& about) const;

 private:
  int64_t width_ = 0;
  Labels::Kind kind_;
};

Json to_json(const std::vector<Label>& labels, const char* name = "label");
std::string percent(float probability);  // "99.98%"

}  // namespace heed::cli
