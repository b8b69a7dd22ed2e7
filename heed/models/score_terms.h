// Attention scores of models that add positions to tokens, as the sum of four terms: A = (Z + P) W_q W_k^T (Z + P)^T multiplied out.
#pragma once

#include <array>
#include <functional>
#include <vector>

#include "heed/attention/tap.h"
#include "heed/models/model.h"

namespace heed {

inline constexpr std::array kScoreTermNames{"content-content", "content-position", "position-content", "position-position"};

// The scores of one attention call. The position part of a query or key is its mean over the rotations of the input's tokens (MovedTokens):
// what its place has, whichever of the tokens is there. The content part is the rest. The first word in the name of a term is the part of
// the query.
class ScoreTerms {
 public:
  // places: the position parts
  ScoreTerms(const AttentionTap::Operands& places, const AttentionTap::Operands& given);

  // The terms of a head. They add up to beta q k^T. rows: which queries; empty: all -> (rows, M) each
  std::array<std::vector<float>, 4> of(int64_t head, const std::vector<int64_t>& rows = {}) const;
  // Whether masks let a query of the head see a key. -> (N, M) of 1 and 0
  std::vector<uint8_t> seen(int64_t head) const;
  // The shares of the terms in the variance of the scores of a query over the keys that it sees, for all queries of the head together: the
  // covariance of the term and the score, divided by the variance of the score. They add up to 1; that of a term which works against the
  // others is negative. All 0 if the scores of no query vary.
  std::array<double, 4> shares(int64_t head) const;

 private:
  std::array<Tensor, 2> q_, k_;     // content part, position part: (H, N, D), times beta; (G, M, D)
  AttentionTap::Operands masking_;  // without content, so that it has a weight for every key that is seen
};

// The position parts of the queries and keys of every attention call of `run`, which calls the model: once for every rotation. A UsageError
// if the model adds no positions to tokens.
std::vector<AttentionTap::Operands> position_parts(const Model& model, const std::function<void()>& run);
// The terms of every call.
std::vector<ScoreTerms> score_terms(const std::vector<AttentionTap::Operands>& places, const std::vector<AttentionTap::Operands>& given);

}  // namespace heed
