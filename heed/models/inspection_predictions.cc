// The predictions of a model for one input, and its maps as JSON.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "heed/models/inspection.h"
#include "heed/ops/ops.h"

namespace heed {
namespace {

// The most probable tokens at one position. logits: (1, N, V)
Prediction tokens_at(const Tensor& logits, int64_t position, const std::string& about, const std::function<std::string(int64_t id)>& name,
                     int64_t top) {
  const std::vector<float> scores = softmax(slice(logits, 1, position, position + 1)).to_vector<float>();
  std::vector<int64_t> order(scores.size());
  std::iota(order.begin(), order.end(), int64_t{0});
  const auto end = order.begin() + std::min(top, std::ssize(order));
  const auto score = [&](int64_t id) { return scores[static_cast<size_t>(id)]; };
  std::partial_sort(order.begin(), end, order.end(),
                    [&](int64_t a, int64_t b) { return score(a) != score(b) ? score(a) > score(b) : a < b; });
  Prediction out{.about = about, .token = position};
  for (auto id = order.begin(); id != end; ++id) out.labels.push_back({name(*id), *id, score(*id)});
  return out;
}

std::vector<int64_t> rows_or_all(const AttentionMaps& maps, std::span<const int64_t> rows) {
  std::vector<int64_t> out(rows.begin(), rows.end());
  if (!out.empty()) return out;
  out.resize(static_cast<size_t>(maps.N));
  std::iota(out.begin(), out.end(), int64_t{0});
  return out;
}

Json row_json(std::span<const float> map, int64_t row, int64_t M) {
  Json out = Json::array();
  for (int64_t j = 0; j < M; ++j) out.push_back(std::round(map[static_cast<size_t>(row * M + j)] * 1e6) / 1e6);
  return out;
}

}  // namespace

std::vector<Prediction> predictions_in(const Model& model, const TensorMap& outputs, std::span<const int64_t> ids,
                                       const std::function<std::string(int64_t id)>& name, const PredictionOptions& options) {
  const ModelTask task = model.traits().task;
  const auto logits = outputs.find("logits"), words = outputs.find("prediction_logits"), pair = outputs.find("seq_relationship_logits");
  std::vector<Prediction> out;
  const auto add_labels = [&](const Tensor& of, const std::string& about) {  // (1, C)
    const Labels labels(model);
    out.push_back({.about = about, .labels = labels(of, options.top)[0], .probabilities = labels.kind() != Labels::Kind::value});
  };
  const auto add_masks = [&](const Tensor& of) {
    for (size_t i = 0; i < ids.size(); ++i)
      if (ids[i] == options.mask) out.push_back(tokens_at(of, static_cast<int64_t>(i), name(options.mask), name, options.top));
  };
  if (words != outputs.end()) add_masks(words->second);
  if (pair != outputs.end()) add_labels(pair->second, "next sentence");
  for (const auto& [output, about] : {std::pair("start_logits", "start of the answer"), std::pair("end_logits", "end of the answer")})
    if (const auto found = outputs.find(output); found != outputs.end()) {  // (1, N): the probabilities of tokens
      out.push_back(tokens_at(
          reshape(found->second, {1, 1, -1}), 0, about, [&](int64_t i) { return name(ids[static_cast<size_t>(i)]); }, options.top));
      out.back().token = -1;
    }
  if (logits == outputs.end()) return out;
  if (logits->second.rank() == 2) {
    add_labels(logits->second, task == ModelTask::next_sentence ? "next sentence" : "class");
    if (!out.back().probabilities) out.back().about = "value";
  } else if (task == ModelTask::token_classification) {
    const Labels labels(model);
    const auto predictions = labels(reshape(logits->second, {-1, logits->second.size(2)}), 1);
    for (size_t i = 0; i < ids.size(); ++i)
      out.push_back({.about = name(ids[i]), .labels = predictions[i], .token = static_cast<int64_t>(i)});
  } else if (task == ModelTask::masked_lm) {
    add_masks(logits->second);
  } else {
    const int64_t last = logits->second.size(1) - 1;
    for (int64_t i = options.every_token ? 0 : last; i <= last; ++i)
      out.push_back(tokens_at(logits->second, i, "next token", name, options.top));
  }
  return out;
}

Json maps_json(const AttentionMaps& maps, std::span<const int64_t> rows) {
  const std::vector<int64_t> chosen = rows_or_all(maps, rows);
  Json weights = Json::array();
  for (size_t layer = 0; layer < maps.layers.size(); ++layer) {
    weights.push_back(Json::array());
    for (size_t head = 0; head < maps.heads.size(); ++head) {
      weights.back().push_back(Json::array());
      const std::span<const float> map = maps.map(layer, head);
      for (const int64_t i : chosen) weights.back().back().push_back(row_json(map, i, maps.M));
    }
  }
  return {{"kind", maps.kind},     {"queries", maps.rows}, {"keys", maps.columns},
          {"layers", maps.layers}, {"heads", maps.heads},  {"weights", std::move(weights)}};
}

Json terms_json(const Inspection& inspection, const AttentionMaps& maps, std::span<const int64_t> rows) {
  const std::vector<int64_t> chosen = rows_or_all(maps, rows);
  Json heads = Json::array();
  for (size_t layer = 0; layer < maps.layers.size(); ++layer)
    for (size_t head = 0; head < maps.heads.size(); ++head) {
      const ScoreTerms& split = terms_of(inspection, maps, maps.layers[layer]);
      const std::array<std::vector<float>, 4> terms = split.of(maps.heads[head], chosen);
      const std::array<double, 4> shares = split.shares(maps.heads[head]);
      std::vector<float> sums(terms[0].size());
      for (size_t i = 0; i < sums.size(); ++i) sums[i] = terms[0][i] + terms[1][i] + terms[2][i] + terms[3][i];
      Json each{{"layer", maps.layers[layer]}, {"head", maps.heads[head]}, {"scores", Json::array()}, {"weights", Json::array()}};
      for (size_t term = 0; term < terms.size(); ++term) {
        std::string name = kScoreTermNames[term];
        std::replace(name.begin(), name.end(), '-', '_');
        each["shares"][name] = std::round(shares[term] * 1e6) / 1e6;
        for (int64_t i = 0; i < std::ssize(chosen); ++i) each["terms"][name].push_back(row_json(terms[term], i, maps.M));
      }
      for (int64_t i = 0; i < std::ssize(chosen); ++i) each["scores"].push_back(row_json(sums, i, maps.M));
      for (const int64_t i : chosen) each["weights"].push_back(row_json(maps.map(layer, head), i, maps.M));
      heads.push_back(std::move(each));
    }
  return {{"kind", maps.kind}, {"queries", maps.rows}, {"keys", maps.columns}, {"rows", chosen}, {"heads", std::move(heads)}};
}

}  // namespace heed
