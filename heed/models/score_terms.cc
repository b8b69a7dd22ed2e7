#include "heed/models/score_terms.h"

#include <cmath>

#include "heed/attention/probabilities.h"
#include "heed/models/architecture.h"
#include "heed/models/choices.h"
#include "heed/models/variant.h"
#include "heed/ops/storage.h"

namespace heed {
namespace {

// The first item of a batch. (B, H, N, D) -> (H, N, D)
Tensor first_of_batch(const Tensor& x) { return reshape(widen(slice(x, 0, 0, 1)).to(kCpu), {x.size(1), x.size(2), x.size(3)}); }

// (H, N, D) -> (N, D)
Tensor head_of(const Tensor& x, int64_t head) { return reshape(slice(x, 0, head, head + 1), {x.size(1), x.size(2)}); }

// "rotary: rotates pairs of features of queries and keys by the position": the position encodings of the model and what they do.
std::string positions_of_model(const Model& model) {
  const Choices& list = choices("positions");
  std::vector<std::string> names;
  for (const Chosen& each : chosen_in(Config(model.config(), "config.json").below("heed"), "positions")) names.push_back(each.choice->name);
  if (names.empty() && !model.family().default_position.empty()) names.push_back(model.family().default_position);
  std::string out;
  for (const std::string& name : names) out += (out.empty() ? "" : "; ") + name + ": " + list.find(name)->summary;
  return out.empty() ? "none of them" : out;
}

std::string positions_on_tokens() {
  std::string out;
  for (const Choice& each : choices("positions").all)
    if (each.on_tokens) out += (out.empty() ? "" : ", ") + each.name;
  return out;
}

}  // namespace

ScoreTerms::ScoreTerms(const AttentionTap::Operands& places, const AttentionTap::Operands& given) : masking_(given) {
  check(places.q.shape() == given.q.shape() && places.k.shape() == given.k.shape(), "score_terms: queries ", places.q.shape(), " and ",
        given.q.shape(), ", keys ", places.k.shape(), " and ", given.k.shape(), ", expected equal ones");
  const float beta = given.options.beta.number_for(given.q.size(3));
  q_[1] = first_of_batch(places.q);
  k_[1] = first_of_batch(places.k);
  q_[0] = (first_of_batch(given.q) - q_[1]) * beta;
  k_[0] = first_of_batch(given.k) - k_[1];
  q_[1] = q_[1] * beta;
  masking_.options.beta = 0.0f;
  masking_.options.hard = Hard::no;
}

std::array<std::vector<float>, 4> ScoreTerms::of(int64_t head, const std::vector<int64_t>& rows) const {
  const int64_t heads = q_[0].size(0), key_heads = k_[0].size(0);
  check(0 <= head && head < heads, "score_terms: head ", head, " of ", heads);
  std::array<std::vector<float>, 4> out;
  for (size_t term = 0; term < out.size(); ++term) {
    Tensor q = head_of(q_[term / 2], head);
    if (!rows.empty()) q = index_select(q, 0, Tensor::from(rows, {std::ssize(rows)}, kCpu));
    out[term] = matmul(q, transpose(head_of(k_[term % 2], head / (heads / key_heads)), 0, 1)).to_vector<float>();
  }
  return out;
}

std::vector<uint8_t> ScoreTerms::seen(int64_t head) const {
  const std::vector<float> weights =
      slice(attention_probabilities(masking_.q, masking_.k, masking_.options, {head}), 0, 0, 1).to_vector<float>();
  std::vector<uint8_t> out;
  for (const float weight : weights) out.push_back(weight > 0);
  return out;
}

std::array<double, 4> ScoreTerms::shares(int64_t head) const {
  const std::array<std::vector<float>, 4> terms = of(head);
  const std::vector<uint8_t> sees = seen(head);
  const auto M = static_cast<size_t>(k_[0].size(1));
  std::array<double, 4> covariance{};
  for (size_t row = 0; row < sees.size(); row += M) {
    std::array<double, 4> mean{};
    double keys = 0;
    for (size_t j = row; j < row + M; ++j) keys += sees[j];
    for (size_t j = row; j < row + M; ++j)
      for (size_t t = 0; t < mean.size(); ++t) mean[t] += sees[j] * static_cast<double>(terms[t][j]) / std::max(keys, 1.0);
    for (size_t j = row; j < row + M; ++j) {
      std::array<double, 4> difference{};
      double score = 0;
      for (size_t t = 0; t < mean.size(); ++t) score += difference[t] = sees[j] * (static_cast<double>(terms[t][j]) - mean[t]);
      for (size_t t = 0; t < mean.size(); ++t) covariance[t] += difference[t] * score;
    }
  }
  const double variance = covariance[0] + covariance[1] + covariance[2] + covariance[3];
  for (double& each : covariance) each = variance > 0 ? each / variance : 0;
  return covariance;
}

std::vector<AttentionTap::Operands> position_parts(const Model& model, const std::function<void()>& run) {
  std::vector<AttentionTap::Operands> out;
  int64_t turns = 1;
  for (int64_t turn = 0; turn < turns; ++turn) {
    const MovedTokens moved(turn);
    const AttentionTap tap({.calls = {-1}, .operands = true});
    run();
    check<UsageError>(moved.longest() > 0, "inspect: the four terms of scores need positions that are added to tokens (",
                      positions_on_tokens(), "); ", model.architecture(), " has ", positions_of_model(model));
    turns = std::min(moved.longest(), MovedTokens::kRotations);
    for (size_t call = 0; call < tap.operands().size(); ++call) {
      const auto& [q, k, options] = tap.operands()[call];
      const float share = 1 / static_cast<float>(turns);
      if (turn == 0)
        out.push_back({q * share, k * share, options});
      else
        out[call].q = out[call].q + q * share, out[call].k = out[call].k + k * share;
    }
  }
  return out;
}

std::vector<ScoreTerms> score_terms(const std::vector<AttentionTap::Operands>& places, const std::vector<AttentionTap::Operands>& given) {
  check(places.size() == given.size(), "score_terms: ", places.size(), " and ", given.size(),
        " calls of attention, expected equal numbers");
  std::vector<ScoreTerms> out;
  for (size_t call = 0; call < places.size(); ++call) out.emplace_back(places[call], given[call]);
  return out;
}

}  // namespace heed
