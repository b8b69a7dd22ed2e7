// Evaluation of trained models: classification, language modelling, masked words, translation.
#pragma once

#include "heed/core/api.h"
#include "heed/data/text_data.h"
#include "heed/models/classify.h"
#include "heed/train/task.h"

namespace HEED_API heed {

// Maps the label names of the data to label ids of the model: by name if the model knows all of them, else by number ("1" is label 1).
// Throws a FileError that lists both sides if neither works. source: names the data in messages
std::vector<int64_t> matched_labels(const std::vector<std::string>& data, const std::vector<std::string>& model, const std::string& source);

// Returns ClassScores::evaluation() with the model's class names. A model with the names LABEL_0, LABEL_1, ... matches classes by index.
Evaluation evaluate_images(const Model& model, const Path& folder, const ImageData& data, const Done& done = {});
// Single sentences or pairs. cut: set to the number of truncated texts
Evaluation evaluate_labelled(const TextModel& model, const std::vector<LabelledText>& texts, const std::string& source,
                             int64_t* cut = nullptr, const Done& done = {});

// A text and the name of its file.
struct NamedText {
  std::string name, text;
};
std::vector<NamedText> read_texts(const Path& path);  // a file, or every .txt (.gz) of a folder sorted by name; each file is one text

// Loss and perplexity per token, bits_per_byte of the text, and accuracy of the next token. Text is cut into windows of at most `length`
// tokens; the first token of a text is not scored.
Evaluation evaluate_language(const TextModel& model, const std::vector<NamedText>& texts, int64_t length, const Done& done = {});

// Scores, and the translations that were scored.
struct TranslationEvaluation {
  Evaluation evaluation;  // bleu, chrf, exact, brevity; detail: "precisions" of 1- to 4-grams
  std::vector<std::string> written;
};
// beams, length: beam size and maximum tokens of a translation; 0: from the model's files, at most 512 tokens
TranslationEvaluation evaluate_translation(const Model& model, const Path& folder, const std::vector<Translation>& pairs, int64_t beams = 0,
                                           int64_t length = 0, const Done& done = {});

// Losses and accuracies of masked words and sentence pairs, over batches of PretrainData.
class PretrainScores {
 public:
  // by_task: the accuracy of every pair task, in addition to that of all pairs ("pair"); false: the pairs are next sentences ("next")
  PretrainScores(const Model& model, bool by_task) : model_(model), by_task_(by_task) {}

  // Runs the model on a batch.
  void add(const Batch& batch);
  // Batches 0 to count - 1, split across processes. done: called with the number of samples of each
  void add_all(int64_t count, const std::function<Batch(int64_t i)>& batch, const Done& done = {});
  Evaluation evaluation() const;  // "loss" is the sum of both losses

 private:
  void add(const std::string& name, const Tensor& logits, const Tensor& labels);  // (K, C), (K)

  const Model& model_;
  bool by_task_;
  RunningMeans means_ = {};
};

// Documents as lists of sentences: plain text as read_documents reads it, or "opinions": the test part of the synthetic documents.
std::vector<std::vector<std::string>> read_evaluation_documents(const std::string& where);
// Loss and accuracy of models with heads for masked words, next sentences, or both. The seed decides what is masked and which sentences are
// paired. length: maximum tokens of a sample
Evaluation evaluate_pretraining(const TextModel& model, const std::vector<std::vector<std::string>>& documents, const std::string& source,
                                int64_t length, uint64_t seed, const Done& done = {});

}  // namespace heed
