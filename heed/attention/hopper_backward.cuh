// Fused attention backward on Hopper in two passes, so that nothing is summed by several blocks: the same bits in every run.
//   query gradient: a tile of queries over the keys,   S = Q K^T,   dP = dO V^T,   dQ += dS K, and the gradient of the term
//   key gradient:   a tile of keys over the queries,   S^T = K Q^T, dP^T = V dO^T, dV += P^T dO, dK += dS^T Q
// with P = e^(S - log_sum), dS = P (dP - delta). P and dS go from registers into the next product, never to memory.
#pragma once

#include "heed/attention/hopper_features.cuh"
#include "heed/attention/hopper_table.cuh"
#include "heed/cuda/block_reduce.cuh"

namespace heed::cuda {

struct BackwardMaps {
  CUtensorMap q, k, v, g, query_features, key_features;
};

// log_sum, in units of log 2, and delta in rows of `stride` floats; past the last query infinity, so that P = 0, and 0.
struct RowStatistics {
  const float *log_sum, *delta;  // (B, H, stride)
  int stride;
};

}  // namespace heed::cuda
