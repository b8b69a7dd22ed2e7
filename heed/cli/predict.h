// Shared by the two halves of heed predict, sentences and images: the flags, and labels as a table or as JSON.
#pragma once

#include <optional>

#include "heed/cli/image_size_flag.h"
#include "heed/cli/print_json.h"
#include "heed/cli/sentence_reader.h"
#include "heed/io/json.h"
#include "heed/models/classify.h"

namespace heed::cli {

struct PredictOptions {
  std::string model;
  SentenceOptions inputs;                // for images: files and folders
  std::vector<std::string> labels = {};  // texts that are compared with images
  int64_t top = 0;                       // 0: depends on the model
  int64_t max_length = 0;                // tokens
  std::string output = {};               // a file for the predictions
  std::string parts = {};                // a file for results of finished parts
  bool json = false;
  bool int8 = false;
  bool agreement = false;  // with int8: also runs f32 weights and compares the two
  bool skip_bad = false;   // skip images that cannot be read
  bool nonfinite = false;  // accept NaN and infinite weights
  ImageSizeFlag image = {};
};

void predict_text(const PredictOptions& options, Model model);
void predict_images(const PredictOptions& options, const Model& model);
void predict_captions(const PredictOptions& options, const Model& model);
void predict_images_by_texts(const PredictOptions& options, Model model);  // options.labels are the labels

// Compares the predictions of an int8 model with those of the same model in f32.
class Agreement {
 public:
  void add(const std::vector<Label>& int8, const std::vector<Label>& f32);  // all labels of one input, best first
  // The same as JSON, and the sum of two.
  Json json() const { return {inputs_, same_, max_difference_}; }
  void add(const Json& other);
  void print() const;  // on standard error

 private:
  int64_t inputs_ = 0, same_ = 0;
  float max_difference_ = 0;  // of a score
};

// Rows of label, score and input; the input is printed only in the first row of its labels.
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
