// What models say about sentences and pictures, in words: labels of whole ones, of every word, and words for masked places.
#pragma once

#include "heed/models/text_model.h"

namespace heed {

struct Label {
  std::string name;
  int64_t id;   // its place among the model's outputs
  float score;  // a probability; of a regression the value itself
};

// From logits to labels as config.json says: problem_type chooses between one of the labels, a yes or no for each, and values
// (also where there is a single label and nothing is said); id2label has the names.
class Labels {
 public:
  enum class Kind { one, each, value };

  explicit Labels(const Model& model, const std::string& source = "config.json");  // source: for messages

  // logits: (B, C) -> for each row the best first, at most `top` of them. 0: all. Values stay in their order.
  std::vector<std::vector<Label>> operator()(const Tensor& logits, int64_t top = 0) const;

  Kind kind() const { return kind_; }
  const std::vector<std::string>& names() const { return names_; }

 private:
  Kind kind_;
  std::vector<std::string> names_;
};

// Called after every batch with the number of its sentences.
using Done = std::function<void(int64_t sentences)>;

// Of whole sentences or pairs, by models for sequence classification or next sentences; in the order of the sentences.
std::vector<std::vector<Label>> classify(const TextModel& model, std::span<const Encoding> encodings, int64_t top = 0,
                                         const Done& done = {});
std::vector<std::vector<Label>> classify(const TextModel& model, std::span<const Sentence> sentences, int64_t top = 0);

struct LabelledWord {
  text::Span at;  // bytes of the sentence
  Label label;    // the best of the word's first token, which is what such models are trained on
};
// Of every word, by models for token classification.
std::vector<std::vector<LabelledWord>> label_words(const TextModel& model, std::span<const Encoding> encodings, const Done& done = {});

struct FilledMask {
  text::Span at;             // bytes of the sentence: where it says [MASK]
  std::vector<Label> words;  // tokens of the vocabulary, the best first
};
// By masked language models. Every sentence must have a mask.
std::vector<std::vector<FilledMask>> fill_masks(const TextModel& model, std::span<const Encoding> encodings, int64_t top = 5,
                                                const Done& done = {});

}  // namespace heed
