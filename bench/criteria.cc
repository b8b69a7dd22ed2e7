// Performance targets. A missed target is reported; it fails nothing.
#include <algorithm>
#include <cmath>

#include "bench/pattern.h"
#include "bench/report.h"
#include "bench/timing.h"

namespace heed::bench {
namespace {

struct Criterion {
  const char* what;
  const char* pattern;                   // benchmark names
  std::optional<double> Result::*value;  // the value that is compared
  double average, each;                  // targets for the average and for each benchmark; 0: none
  bool median = false;                   // the average is the median, otherwise the geometric mean
};

const Criterion kCriteria[] = {
    {"linear forward, PyTorch's time / heed's", "^linear/forward/", &Result::peer, 1.0, 0.9},
    {"linear forward and backward, PyTorch's time / heed's", "^linear/train/", &Result::peer, 1.0, 0.9},
    {"linear forward, share of bare sgemm", "^linear/forward/", &Result::baseline, 0, 0.95},
    {"linear forward and backward, share of bare sgemm", "^linear/train/", &Result::baseline, 0, 0.95},
    {"layer_norm, PyTorch's time / heed's", "^layer_norm/train/", &Result::peer, 0, 1.3},
    {"add_layer_norm, PyTorch's time / heed's", "^add_layer_norm/train/", &Result::peer, 0, 1.3},
    {"rms_norm, PyTorch's time / heed's", "^rms_norm/train/", &Result::peer, 0, 1.3},
    {"gelu, PyTorch's time / heed's", "^gelu/train/", &Result::peer, 0, 1.3},
    {"gelu_tanh, PyTorch's time / heed's", "^gelu_tanh/train/", &Result::peer, 0, 1.3},
    {"softmax, PyTorch's time / heed's", "^softmax/train/", &Result::peer, 0, 1.3},
    {"cross_entropy, PyTorch's time / heed's", "^cross_entropy/train/", &Result::peer, 0, 1.3},
    {"dropout, PyTorch's time / heed's", "^dropout/train/", &Result::peer, 0, 1.3},
    {"AdamW step, PyTorch's time / heed's", "^adamw/step/cifar/", &Result::peer, 0, 1.5},
    {"attention, plain and causal, PyTorch's time / heed's", "^(causal_)?attention/", &Result::peer, 1.5, 1.2, true},
    {"attention with a learned term, PyTorch's time / heed's", "^(relative|gaussian)_attention/train/", &Result::peer, 0, 3.0},
    {"a window of 256, share of full attention's speed", "^window_attention/", &Result::baseline, 0, 8.0},
    {"position-only attention, share of the composed form's speed", "^position_attention/train/", &Result::baseline, 0, 5.0},
    {"whole models, PyTorch's time / heed's", "^(vit_b16|bert_base|gpt2)/.*/torch/", &Result::peer, 0, 1.2},
    {"whole models, ONNX Runtime's time / heed's", "^(vit_b16|bert_base|gpt2)/.*/onnx/", &Result::peer, 0, 1.0},
    {"int8 models, ONNX Runtime's time with f32 / heed's", "_int8/", &Result::peer, 0, 2.0},
    {"training steps, eager PyTorch's time / heed's", "/train/eager/", &Result::peer, 0, 1.5},
    {"training steps, compiled PyTorch's time / heed's", "/train/compiled/", &Result::peer, 0, 1.2},
    {"training steps, eager PyTorch's memory / heed's", "/train/eager/", &Result::peer_over_memory, 0, 1 / 0.7},
    {"training steps, compiled PyTorch's memory / heed's", "/train/compiled/", &Result::peer_over_memory, 0, 1 / 0.7},
    {"training steps, share of peak", "/train/(eager|compiled)/", &Result::of_peak, 0, 0.5},
    {"graph overhead, PyTorch's time / heed's", "^graph/", &Result::peer, 0, 2.0},
    {"elementwise and norms on big tensors, share of stream", "/big/", &Result::baseline, 0, 0.8},
};

Verdict evaluate_criterion(const Criterion& criterion, const std::vector<const Result*>& results) {
  const bool share = criterion.value == &Result::baseline || criterion.value == &Result::of_peak;
  const auto text = [&](double value) { return share ? percent(value) : decimal(value, 2); };
  const double target = criterion.each > 0 ? criterion.each : criterion.average;
  double logs = 0;
  std::vector<double> values;
  Verdict verdict;
  for (const Result* result : results) {
    const double value = *(result->*criterion.value);
    logs += std::log(value);
    values.push_back(value);
    if (value < target) verdict.below += (verdict.below.empty() ? "" : ", ") + result->benchmark.name + " " + text(value);
  }
  const double average = criterion.median ? median(values) : std::exp(logs / static_cast<double>(values.size()));
  const double least = *std::min_element(values.begin(), values.end());
  verdict.what = criterion.what;
  verdict.reached = average >= criterion.average && least >= criterion.each;
  verdict.found = (criterion.median ? "median " : "mean ") + text(average) +
                  (criterion.average > 0 ? " of " + text(criterion.average) : "") + ", least " + text(least) +
                  (criterion.each > 0 ? " of " + text(criterion.each) : "");
  return verdict;
}

}  // namespace

std::vector<Verdict> evaluate_criteria(const Report& report) {
  // Of another build of heed.
  static const Criterion kNotSlower{"the other build's time / heed's", "", &Result::peer, 0, 0.97};
  const bool other_build = !report.peer.empty() && !report.peer.starts_with("PyTorch");
  std::vector<Verdict> verdicts;
  const auto evaluate = [&](const Criterion& criterion) {
    const Pattern pattern(criterion.pattern);
    std::vector<const Result*> results;
    for (const Result& result : report.results)
      if ((result.*criterion.value).has_value() && pattern.found_in(result.benchmark.name)) results.push_back(&result);
    if (!results.empty()) verdicts.push_back(evaluate_criterion(criterion, results));
  };
  for (const Criterion& criterion : kCriteria)
    if (!other_build || (criterion.value != &Result::peer && criterion.value != &Result::peer_over_memory)) evaluate(criterion);
  if (other_build) evaluate(kNotSlower);
  return verdicts;
}

}  // namespace heed::bench
