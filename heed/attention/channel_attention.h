// Attention between channels instead of tokens, in groups: Ding et al., DaViT, 2022.
#pragma once

#include <optional>

#include "heed/core/api.h"
#include "heed/core/tensor.h"

namespace HEED_API heed {

// Options of channel attention.
struct ChannelOptions {
  std::optional<float> beta = {};  // inverse temperature; by default 1 / sqrt(channels of a key), as in the paper
};

// softmax(beta q^T k) over channels, applied to the channels of v: out[n, c] = sum over d of a[c, d] v[n, d].
// q: (B, G, N, C), k: (B, G, N, D), v: (B, G, M, D) -> (B, G, M, C): G independent groups; usually C = D, N = M.
// Costs G N C D for the scores and G M C D for the result: linear in the tokens.
Tensor channel_attention(const Tensor& q, const Tensor& k, const Tensor& v, const ChannelOptions& options = {});

}  // namespace heed
