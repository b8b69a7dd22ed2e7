// The predictions of a model for an input of heed inspect.
#include <algorithm>
#include <numeric>

#include "heed/cli/inspection.h"
#include "heed/ops/ops.h"

namespace heed::cli {
namespace {

constexpr int64_t kBest = 5;

// The most probable tokens at one position. logits: (1, N, V)
Prediction tokens_at(const Tensor& logits, int64_t position, const std::string& about, const std::function<std::string(int64_t id)>& name) {
  const std::vector<float> scores = softmax(slice(logits, 1, position, position + 1)).to_vector<float>();
  std::vector<int64_t> order(scores.size());
  std::iota(order.begin(), order.end(), int64_t{0});
  const auto end = order.begin() + std::min(kBest, std::ssize(order));
  const auto score = [&](int64_t id) { return scores[static_cast<size_t>(id)]; };
  std::partial_sort(order.begin(), end, order.end(),
                    [&](int64_t a, int64_t b) { return score(a) != score(b) ? score(a) > score(b) : a < b; });
  Prediction out{.about = about};
  for (auto id = order.begin(); id != end; ++id) out.labels.push_back({name(*id), *id, score(*id)});
  return out;
}

}  // namespace

std::vector<Prediction> predictions_in(const Model& model, const TensorMap& outputs, std::span<const int64_t> ids,
                                       const std::function<std::string(int64_t id)>& name, int64_t mask) {
  const ModelTask task = model.traits().task;
  const auto logits = outputs.find("logits"), words = outputs.find("prediction_logits"), pair = outputs.find("seq_relationship_logits");
  std::vector<Prediction> out;
  const auto add_labels = [&](const Tensor& of, const std::string& about) {  // (1, C)
    const Labels labels(model);
    out.push_back({.about = about, .labels = labels(of, kBest)[0], .probabilities = labels.kind() != Labels::Kind::value});
  };
  const auto add_masks = [&](const Tensor& of) {
    for (size_t i = 0; i < ids.size(); ++i)
      if (ids[i] == mask) out.push_back(tokens_at(of, static_cast<int64_t>(i), name(mask), name));
  };
  if (words != outputs.end()) add_masks(words->second);
  if (pair != outputs.end()) add_labels(pair->second, "next sentence");
  for (const auto& [output, about] : {std::pair("start_logits", "start of the answer"), std::pair("end_logits", "end of the answer")})
    if (const auto found = outputs.find(output); found != outputs.end())  // (1, N): the probabilities of tokens
      out.push_back(tokens_at(reshape(found->second, {1, 1, -1}), 0, about, [&](int64_t i) { return name(ids[static_cast<size_t>(i)]); }));
  if (logits == outputs.end()) return out;
  if (logits->second.rank() == 2) {
    add_labels(logits->second, task == ModelTask::next_sentence ? "next sentence" : "class");
    if (!out.back().probabilities) out.back().about = "value";
  } else if (task == ModelTask::token_classification) {
    const Labels labels(model);
    const auto predictions = labels(reshape(logits->second, {-1, logits->second.size(2)}), 1);
    for (size_t i = 0; i < ids.size(); ++i) out.push_back({.about = name(ids[i]), .labels = predictions[i]});
  } else if (task == ModelTask::masked_lm) {
    add_masks(logits->second);
  } else {
    out.push_back(tokens_at(logits->second, logits->second.size(1) - 1, "next token", name));
  }
  return out;
}

}  // namespace heed::cli
