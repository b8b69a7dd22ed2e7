#include "heed/train/scores.h"

#include <algorithm>
#include <cmath>
#include <numeric>

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
    : classes_(std::move(classes)), truths_(classes_.size()), guesses_(classes_.size()), hits_(classes_.size()), bins_(kBins) {
  check(!classes_.empty(), "scores: found 0 classes, expected 1 or more");
}

void ClassScores::add(std::span<const float> logits, std::span<const int64_t> labels) {
  const size_t C = classes_.size();
  check(logits.size() == labels.size() * C, "scores: found ", logits.size(), " logits of ", labels.size(), " samples, expected ",
        labels.size() * C, ", one per class");
  for (size_t sample = 0; sample < labels.size(); ++sample) {
    const std::span<const float> row = logits.subspan(sample * C, C);
    check(labels[sample] >= 0 && labels[sample] < static_cast<int64_t>(C), "scores: found the label ", labels[sample], ", expected 0 to ",
          C - 1);
    const auto label = static_cast<size_t>(labels[sample]);
    const auto best = static_cast<size_t>(std::max_element(row.begin(), row.end()) - row.begin());  // the first of equal values
    double sum = 0;
    size_t better = 0;  // classes ranked before the label
    for (size_t i = 0; i < C; ++i) {
      sum += std::exp(static_cast<double>(row[i]) - static_cast<double>(row[best]));
      better += row[i] > row[label] || (row[i] == row[label] && i < label);
    }
    const double confidence = 1 / sum;
    loss_ += std::log(sum) + static_cast<double>(row[best]) - static_cast<double>(row[label]);
    top5_ += better < 5;
    ++truths_[label];
    ++guesses_[best];
    ++(label == best ? hits_[label] : mistakes_[{static_cast<uint32_t>(label), static_cast<uint32_t>(best)}]);
    // Bins are open below and closed above, as in the paper. NaN goes into the first.
    const double place = std::ceil(confidence * static_cast<double>(kBins)) - 1;
    Bin& bin = bins_[place > 0 ? std::min(static_cast<size_t>(place), kBins - 1) : 0];
    bin.confidence += confidence;
    bin.right += best == label;
    ++bin.count;
    ++count_;
  }
}

Json ClassScores::matrix() const {
  const size_t C = classes_.size();
  std::vector<std::vector<int64_t>> rows(C, std::vector<int64_t>(C));
  for (size_t i = 0; i < C; ++i) rows[i][i] = hits_[i];
  for (const auto& [pair, count] : mistakes_) rows[pair.first][pair.second] = count;
  return rows;
}

Json ClassScores::most_confused() const {
  std::vector<std::pair<std::pair<uint32_t, uint32_t>, int64_t>> all(mistakes_.begin(), mistakes_.end());
  const auto kept = static_cast<std::ptrdiff_t>(std::min(all.size(), kListedMistakes));
  std::partial_sort(all.begin(), all.begin() + kept, all.end(),
                    [](const auto& a, const auto& b) { return std::pair(-a.second, a.first) < std::pair(-b.second, b.first); });
  all.resize(static_cast<size_t>(kept));
  Json out = Json::array();
  for (const auto& [pair, count] : all)
    out.push_back({{"truth", classes_[pair.first]},
                   {"guess", classes_[pair.second]},
                   {"count", count},
                   {"share", static_cast<double>(count) / static_cast<double>(truths_[pair.first])}});
  return out;
}

Evaluation ClassScores::evaluation() const {
  check(count_ > 0, "scores: found 0 samples, expected 1 or more");
  const size_t C = classes_.size();
  std::vector<size_t> listed(C);
  std::iota(listed.begin(), listed.end(), size_t{0});
  if (C > kListedClasses) {
    std::stable_sort(listed.begin(), listed.end(), [&](size_t a, size_t b) { return truths_[a] > truths_[b]; });
    listed.resize(kListedClasses);
    std::sort(listed.begin(), listed.end());
  }
  Json per_class = Json::array(), calibration = Json::array();
  double right = 0, f1_sum = 0, seen = 0, calibration_gap = 0;
  const auto number = [](int64_t count) { return static_cast<double>(count); };
  const auto f1_of = [&](size_t i) { return share_of(2 * number(hits_[i]), number(truths_[i] + guesses_[i])); };
  for (size_t i = 0; i < C; ++i) {
    right += number(hits_[i]);
    f1_sum += f1_of(i);
    seen += truths_[i] + guesses_[i] > 0;  // classes that never occur do not count
  }
  for (const size_t i : listed)
    per_class.push_back({{"class", classes_[i]},
                         {"precision", share_of(number(hits_[i]), number(guesses_[i]))},
                         {"recall", share_of(number(hits_[i]), number(truths_[i]))},
                         {"f1", f1_of(i)},
                         {"count", truths_[i]}});
  for (const Bin& bin : bins_) {
    if (bin.count == 0) continue;
    calibration_gap += std::abs(bin.right - bin.confidence);
    calibration.push_back(
        {{"confidence", bin.confidence / bin.count}, {"accuracy", bin.right / bin.count}, {"count", static_cast<int64_t>(bin.count)}});
  }
  Evaluation out;
  out.figures = {{"loss", loss_ / count_}, {"accuracy", right / count_}};
  if (C > 5) out.figures.emplace_back("top5", top5_ / count_);
  out.figures.emplace_back("f1", f1_sum / seen);
  out.figures.emplace_back("calibration_error", calibration_gap / count_);
  out.detail = {{"class_count", C}, {"per_class", per_class}, {"calibration", calibration}, {"most_confused", most_confused()}};
  if (C <= kMatrixClasses) out.detail.update({{"classes", classes_}, {"confusion", matrix()}});
  return out;
}

}  // namespace heed
