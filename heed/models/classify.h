// From logits to predictions: labels of sentences and images, labels of words, and tokens for masks.
#pragma once

#include "heed/core/api.h"
#include "heed/models/text_model.h"

namespace HEED_API heed {

// A class with its score.
struct Label {
  std::string name;
  int64_t id;   // index in the model's outputs
  float score;  // a probability; the value itself for regression
};

// Converts logits to labels according to config.json: problem_type chooses between one label (softmax), independent labels
// (sigmoid) and regression, the default if there is a single label; id2label has the names.
class Labels {
 public:
  enum class Kind { one, each, value };

  explicit Labels(const Model& model, const std::string& source = "config.json");  // source: file name for messages

  explicit Labels(std::vector<std::string> names) : kind_(Kind::one), names_(std::move(names)) {}  // of one label each

  // logits: (B, C) -> for each row the `top` best labels, the best first. 0: all. Regression values keep their order.
  std::vector<std::vector<Label>> operator()(const Tensor& logits, int64_t top = 0) const;

  // How logits are read, and the names of the labels.
  Kind kind() const { return kind_; }
  const std::vector<std::string>& names() const { return names_; }

 private:
  Kind kind_;
  std::vector<std::string> names_;
};

// Progress callback, called after every batch with its number of sentences.
using Done = std::function<void(int64_t sentences)>;

// Labels of sentences or sentence pairs, for sequence classification or next-sentence models; in the order of the sentences.
std::vector<std::vector<Label>> classify(const TextModel& model, std::span<const Encoding> encodings, int64_t top = 0,
                                         const Done& done = {});
std::vector<std::vector<Label>> classify(const TextModel& model, std::span<const Sentence> sentences, int64_t top = 0);

// A word of a sentence with its label.
struct LabelledWord {
  text::Span at;  // bytes of the sentence
  Label label;    // the best of the word's first token, as such models are trained
};
// Labels of every word, for token classification models.
std::vector<std::vector<LabelledWord>> label_words(const TextModel& model, std::span<const Encoding> encodings, const Done& done = {});

// The predictions of a masked language model for one mask.
struct FilledMask {
  text::Span at;             // bytes of the [MASK] in the sentence
  std::vector<Label> words;  // tokens of the vocabulary, the best first
};
// For masked language models. Every sentence must contain a mask.
std::vector<std::vector<FilledMask>> fill_masks(const TextModel& model, std::span<const Encoding> encodings, int64_t top = 5,
                                                const Done& done = {});

}  // namespace heed
