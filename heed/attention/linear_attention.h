// Linear attention: the softmax becomes a product of features, phi(q).phi(k), so sums over keys are computed once for all queries:
// linear in the tokens. Katharopoulos et al. 2020; random features: Choromanski et al., Performers, 2021.
#pragma once

#include <optional>

#include "heed/attention/linear_attention_kernels.h"
#include "heed/core/api.h"
#include "heed/core/autograd.h"

namespace HEED_API heed {

namespace op {
inline constexpr OpName linear_attention{"linear_attention"};
}

// Options of linear attention. map: the features phi (linear_attention_kernels.h)
struct LinearAttentionOptions {
  FeatureMap map = FeatureMap::elu;
  bool causal = false;             // query i sees the keys j <= i; needs as many keys as queries
  std::optional<float> beta = {};  // q and k are multiplied by sqrt(beta); default: 1, or 1 / sqrt(D) for random features
  Tensor projection = {};          // (R, D) of random features, not learned; see random_projection
  Tensor lengths = {};             // (B) i64: item b has only its first lengths[b] keys
  bool quadratic = false;          // phi(q) phi(k)^T first: the same sums in the other order, N M (D + E) and the whole map in memory
};

// phi(q_i) S / phi(q_i).z with S = sum of phi(k_j) v_j^T and z = sum of phi(k_j) over the keys that i sees, in O((N + M) D E).
// q: (B, H, N, D), k: (B, G, M, D), v: (B, G, M, E), H a multiple of G -> (B, H, N, E)
// A query that sees no key gives zeros and gets no gradient.
Tensor linear_attention(const Tensor& q, const Tensor& k, const Tensor& v, const LinearAttentionOptions& options = {});

// phi, computed with plain ops. Random features are divided by the largest of each token, whose logarithm is `gain`: phi = features
// e^gain.
struct LinearAttentionFeatures {
  Tensor features;  // (..., R)
  Tensor gain;      // (..., 1) detached; undefined for the other maps
};
LinearAttentionFeatures linear_attention_features(const Tensor& x, const LinearAttentionOptions& options);  // x: (..., D)

// Rows for random features: normal, in blocks of D that are orthogonal (a smaller variance) unless `orthogonal` is false. -> (R, D)
Tensor random_projection(int64_t features, int64_t width, Rng& rng, bool orthogonal = true);

// The sums over all keys so far: takes the place of a KV cache, but its size is constant. No gradients.
struct LinearAttentionState {
  LinearAttentionOptions options = {};  // causal and lengths are ignored
  Tensor sums = {};                     // S: (B, G, R, E), undefined before the first key
  Tensor weights = {};                  // z: (B, G, R)
  Tensor top = {};                      // (B, G): S and z are divided by e^top; 0 except for random features

  void append(const Tensor& k, const Tensor& v);  // k: (B, G, M, D), v: (B, G, M, E)
};

// Appends the new keys, each before the query at its position: gives the same rows as causal linear attention.
// q: (B, H, N, D), k: (B, G, N, D), v: (B, G, N, E) -> (B, H, N, E)
Tensor linear_attention_step(const Tensor& q, const Tensor& k, const Tensor& v, LinearAttentionState& state);

}  // namespace heed
