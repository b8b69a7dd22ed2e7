#include "heed/train/scores.h"

#include <algorithm>
#include <cmath>

namespace heed {
namespace {

constexpr size_t kBins = 15;

double share_of(double part, double whole) { return whole > 0 ? part / whole : 0; }

}  // namespace

bool larger_is_better(std::string_view figure) {
  for (const std::string_view end : {"loss", "perplexity", "error", "bits_per_byte"})
    if (figure.ends_with(end)) return false;
  return true;
}

bool is_better(std::string_view figure, double value, double other) {
  if (!std::isfinite(other)) return std::isfinite(value);
  return larger_is_better(figure) ? value > other : value < other;
}

ClassScores::ClassScores(std::vector<std::string> classes)
    : classes_(std::move(classes)), confusion_(classes_.size() * classes_.size()), bins_(kBins) {
  check(!classes_.empty(), "scores: found 0 classes, expected 1 or more");
}

void ClassScores::add(std::span<const float> logits, std::span<const int64_t> labels) {
  const size_t C = classes_.size();
  check(logits.size() == labels.size() * C, "scores: found ", logits.size(), " logits of ", labels.size(), " samples, expected ",
        labels.size() * C, ", one a class");
  for (size_t sample = 0; sample < labels.size(); ++sample) {
    const std::span<const float> row = logits.subspan(sample * C, C);
    check(labels[sample] >= 0 && labels[sample] < static_cast<int64_t>(C), "scores: found the label ", labels[sample], ", expected 0 to ",
          C - 1);
    const auto label = static_cast<size_t>(labels[sample]);
    const auto best = static_cast<size_t>(std::max_element(row.begin(), row.end()) - row.begin());  // the first of equals
    double sum = 0;
    size_t better = 0;  // classes before the label
    for (size_t i = 0; i < C; ++i) {
      sum += std::exp(static_cast<double>(row[i]) - static_cast<double>(row[best]));
      better += row[i] > row[label] || (row[i] == row[label] && i < label);
    }
    const double confidence = 1 / sum;
    loss_ += std::log(sum) + static_cast<double>(row[best]) - static_cast<double>(row[label]);
    top5_ += better < 5;
    ++confusion_[label * C + best];
    // Bins are open below and closed above, as in the paper. What is no number goes into the first.
    const double place = std::ceil(confidence * static_cast<double>(kBins)) - 1;
    Bin& bin = bins_[place > 0 ? std::min(static_cast<size_t>(place), kBins - 1) : 0];
    bin.confidence += confidence;
    bin.right += best == label;
    ++bin.count;
    ++count_;
  }
}

Evaluation ClassScores::evaluation() const {
  check(count_ > 0, "scores: found 0 samples, expected 1 or more");
  const size_t C = classes_.size();
  Json confusion = Json::array(), per_class = Json::array(), calibration = Json::array();
  double right = 0, f1_sum = 0, seen = 0, apart = 0;
  for (size_t i = 0; i < C; ++i) {
    double truths = 0, guesses = 0;
    for (size_t j = 0; j < C; ++j) {
      truths += static_cast<double>(confusion_[i * C + j]);
      guesses += static_cast<double>(confusion_[j * C + i]);
    }
    const auto hits = static_cast<double>(confusion_[i * C + i]);
    const double f1 = share_of(2 * hits, truths + guesses);
    right += hits;
    f1_sum += f1;
    seen += truths + guesses > 0;  // a class that nobody met says nothing about the classifier
    confusion.push_back(
        std::vector<int64_t>(confusion_.begin() + static_cast<int64_t>(i * C), confusion_.begin() + static_cast<int64_t>(i * C + C)));
    per_class.push_back({{"class", classes_[i]},
                         {"precision", share_of(hits, guesses)},
                         {"recall", share_of(hits, truths)},
                         {"f1", f1},
                         {"count", static_cast<int64_t>(truths)}});
  }
  for (const Bin& bin : bins_) {
    if (bin.count == 0) continue;
    apart += std::abs(bin.right - bin.confidence);
    calibration.push_back(
        {{"confidence", bin.confidence / bin.count}, {"accuracy", bin.right / bin.count}, {"count", static_cast<int64_t>(bin.count)}});
  }
  Evaluation out;
  out.figures = {{"loss", loss_ / count_}, {"accuracy", right / count_}};
  if (C > 5) out.figures.emplace_back("top5", top5_ / count_);
  out.figures.emplace_back("f1", f1_sum / seen);
  out.figures.emplace_back("calibration_error", apart / count_);
  out.detail = {{"classes", classes_}, {"confusion", confusion}, {"per_class", per_class}, {"calibration", calibration}};
  return out;
}

}  // namespace heed
