// Scores of classifiers and translations.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "heed/train/task.h"

namespace heed {

// By metric name: smaller is better for losses, perplexities, errors and bits per byte.
bool larger_is_better(std::string_view figure);
bool is_better(std::string_view figure, double value, double other);  // finite values beat non-finite ones

// Accumulates the predictions of a classifier.
class ClassScores {
 public:
  explicit ClassScores(std::vector<std::string> classes);
  void add(std::span<const float> logits, std::span<const int64_t> labels);  // logits: (B, C), labels: (B)
  // figures: loss, accuracy, top5 (if C > 5), f1 (macro average), calibration_error (15 confidence bins, Guo et al. 2017).
  // detail: "class_count"; "per_class": [{"class", "precision", "recall", "f1", "count"}]; "calibration": [{"confidence", "accuracy",
  // "count"}] of non-empty bins; "most_confused": [{"truth", "guess", "count", "share"}], the most frequent mistakes, share of the true
  // class's samples. Up to kMatrixClasses classes also "classes" and "confusion": C rows (truth) of C counts. Above kListedClasses classes,
  // "per_class" lists only those with the most samples, to bound the file size.
  Evaluation evaluation() const;

  static constexpr size_t kMatrixClasses = 200, kListedClasses = 1000, kListedMistakes = 100;

 private:
  Json matrix() const;         // "confusion"
  Json most_confused() const;  // most frequent first

  std::vector<std::string> classes_;
  std::vector<int64_t> truths_, guesses_, hits_;               // (C): samples of a class, predictions of it, correct predictions
  std::map<std::pair<uint32_t, uint32_t>, int64_t> mistakes_;  // (truth, guess) -> count; sparse
  struct Bin {
    double confidence = 0, right = 0, count = 0;
  };
  std::vector<Bin> bins_;
  double loss_ = 0, top5_ = 0, count_ = 0;
};

// Corpus BLEU (Papineni et al. 2002) with one reference each, as in sacreBLEU: mteval-v13a tokens, 4-grams, exponential smoothing, in
// percent. chrF2 (Popovic 2015): characters, 6-grams, beta 2.
struct BleuScore {
  double bleu = 0, brevity = 0;
  std::vector<double> precisions = {};  // in percent
};
BleuScore bleu(std::span<const std::string> written, std::span<const std::string> references);
// With several references of each line: an n-gram counts as often as in the reference that has most of it, and the reference whose length
// is closest counts for the brevity penalty, the shorter of two.
BleuScore bleu_of_several(std::span<const std::string> written, std::span<const std::vector<std::string>> references);
double chrf(std::span<const std::string> written, std::span<const std::string> references);
std::vector<std::string> tokens_13a(std::string_view line);

}  // namespace heed
