// How good classifications, language models and translations are.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "heed/train/task.h"

namespace heed {

// Of a figure by its name; of losses, perplexities, errors and bits per byte less is better.
bool larger_is_better(std::string_view figure);
bool is_better(std::string_view figure, double value, double other);  // any number is better than none

// Collects what a classifier said about every sample.
class ClassScores {
 public:
  explicit ClassScores(std::vector<std::string> classes);
  void add(std::span<const float> logits, std::span<const int64_t> labels);  // logits: (B, C) of B labels
  // figures: loss, accuracy, top5 (of more than 5 classes), f1 (mean of the classes'), calibration_error (15 bins of confidence, Guo et al.
  // 2017). detail: "class_count"; "per_class": [{"class", "precision", "recall", "f1", "count"}]; "calibration": [{"confidence",
  // "accuracy", "count"}] of the bins that hold samples; "most_confused": [{"truth", "guess", "count", "share"}], the most frequent
  // mistakes, share of the truth's samples. Of at most kMatrixClasses classes also "classes" and "confusion": C rows of C counts, rows are
  // the truth. Of more than kListedClasses, "per_class" has those with the most samples alone: what is written stays small, whatever C is.
  Evaluation evaluation() const;

  static constexpr size_t kMatrixClasses = 200, kListedClasses = 1000, kListedMistakes = 100;

 private:
  Json matrix() const;         // "confusion"
  Json most_confused() const;  // the most frequent mistakes first

  std::vector<std::string> classes_;
  std::vector<int64_t> truths_, guesses_, hits_;               // (C): samples of a class, samples taken for it, both
  std::map<std::pair<uint32_t, uint32_t>, int64_t> mistakes_;  // (truth, guess) -> how often; few of the C x C pairs occur
  struct Bin {
    double confidence = 0, right = 0, count = 0;
  };
  std::vector<Bin> bins_;
  double loss_ = 0, top5_ = 0, count_ = 0;
};

// BLEU (Papineni et al. 2002) of a whole set with one reference each, as sacreBLEU computes it: tokens of mteval-v13a, 4-grams,
// exponential smoothing, in percent. And chrF2 (Popovic 2015): characters, 6-grams, beta 2.
struct BleuScore {
  double bleu = 0, brevity = 0;
  std::vector<double> precisions = {};  // in percent
};
BleuScore bleu(std::span<const std::string> written, std::span<const std::string> references);
double chrf(std::span<const std::string> written, std::span<const std::string> references);
std::vector<std::string> tokens_13a(std::string_view line);

}  // namespace heed
