// What heed predict's two halves share, for sentences and for pictures: the flags, and labels as a table or as JSON.
#pragma once

#include <optional>

#include "heed/cli/sentences.h"
#include "heed/io/json.h"
#include "heed/models/classify.h"

namespace heed::cli {

struct PredictOptions {
  std::string model;
  SentenceOptions inputs;  // for pictures: files and folders
  int64_t top = 0;         // 0: as suits the model
  int64_t max_length = 0;  // tokens
  bool json = false;
  bool skip_bad = false;  // pictures that cannot be read
};

void predict_text(const PredictOptions& options, Model model);
void predict_pictures(const PredictOptions& options, const Model& model);

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
void print_json(const Json& json);       // on a line of its own

}  // namespace heed::cli
