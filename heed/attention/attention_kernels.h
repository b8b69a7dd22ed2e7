// Arguments of the attention kernels. Read by g++ and nvcc.
#pragma once

#include "heed/attention/term_list.h"
#include "heed/core/dtype.h"
#include "heed/core/kernel.h"
#include "heed/core/philox.h"

namespace heed {

// Scores and weights: beta q k^T, then the terms, then softmax and dropout.
struct ScoreArgs {
  AttentionSizes sizes{};
  float beta = 1;
  TermSequence terms{};
  bool hard = false;  // one-hot rows instead of softmax
  float dropout = 0;  // probability
  RandomKey dropout_key{};
  Device device{};

  // Rows [i0, i1) of the queries at their positions.
  HEED_HOST_DEVICE ScoreBlock block(int64_t b, int64_t h, int64_t i0, int64_t i1, int64_t j0, int64_t j1) const {
    return {b, h, sizes.first_query + i0, sizes.first_query + i1, j0, j1, sizes.first_query};
  }

  // Pairs of query and key that masks keep, in all heads and items. Masks in memory are read only if the host can access them; otherwise,
  // and in a dry run, they count as keeping all pairs.
  int64_t visible_pairs() const;
  int64_t score_width() const;  // multiply-adds of one score
};

struct AttentionForward {
  ScoreArgs scores;
  TokenRows q, k, v, out;  // (B, H, N, D), (B, G, M, D), (B, G, M, width_e), (B, H, N, E)
  float *log_sum, *peak;   // (B, H, N): log of the sum of e^s, infinity where every key is masked; hard: (B, H, N, 2), else null:
                           // the largest score and 1 / how many keys have it
  int64_t width_e;         // E, padded by padded_width()
  DType dtype;             // of q, k, v and out
  void* workspace = nullptr;

  int64_t multiply_adds() const { return scores.visible_pairs() * (scores.score_width() + scores.sizes.E); }
  int64_t workspace_bytes(Device device) const;
};
HEED_KERNEL(attention_forward, AttentionForward);

// Few queries, as in decoding; q is dense, the rest as above with width_e = E.
struct FewQueriesForward {
  ScoreArgs scores;
  const void* q;  // (B, H, N, D)
  TokenRows k, v;
  void* out;              // (B, H, N, E)
  float *log_sum, *peak;  // as above
  DType dtype;            // of q, k, v and out
  void* workspace = nullptr;

  int64_t multiply_adds() const { return scores.visible_pairs() * (scores.score_width() + scores.sizes.E); }
  int64_t workspace_bytes(Device device) const;
};
HEED_KERNEL(few_queries_forward, FewQueriesForward);

struct AttentionDelta {  // delta = sum over E of g out
  TokenRows g, out;      // (B, H, N, E)
  float* delta;          // (B, H, N)
  AttentionSizes sizes;
  DType dtype;  // of g and out
};
HEED_KERNEL(attention_delta, AttentionDelta);

inline constexpr int64_t kQueryTile = 64;  // queries of a tile on GPUs

// Where the gradient of one tensor of a term is summed: separate sums per head and part of the keys, on GPUs part of the queries. Initially
// zero.
struct GradientSink {
  float* data = nullptr;
  int64_t per_part = 0, per_head = 0;
  HEED_HOST_DEVICE float* at(int64_t part, int64_t head) const { return data ? data + part * per_part + head * per_head : nullptr; }
};

struct AttentionBackward {
  ScoreArgs scores;
  TokenRows q, k, v, g;                 // (B, H, N, width_d), (B, G, M, width_d), (B, G, M, width_e), (B, H, N, width_e)
  const float *log_sum, *delta, *peak;  // delta is null if scores get no gradient; peak is null unless hard
  TokenRows dq, dk, dv;                 // (B, H, N, width_d) of the first part, (B, G, M, D), (B, G, M, E)
  int64_t dq_part;                      // stride between the dq of parts
  int64_t width_d, width_e;             // D and E, padded by padded_width()
  int64_t parts;                        // of the keys, each with its own dq and sinks: backward_parts()
  int64_t query_parts = 1;              // on GPUs: of the queries, tile by tile in turn, each with its own sinks
  GradientSink sinks[kMaxTerms][2];     // of every term; null: not needed
  DType dtype;                          // of q, k, v, g, dk and dv, and of dq where there is one part of width D; else it is f32
  void* workspace = nullptr;

  int64_t multiply_adds() const {  // recomputed scores, and values; with delta also gradients of weights, queries and keys
    const int64_t width = scores.score_width(), E = scores.sizes.E;
    return scores.visible_pairs() * (width + E + (delta ? E + 2 * width : 0));
  }
  int64_t workspace_bytes(Device device) const;
};
HEED_KERNEL(attention_backward, AttentionBackward);

// The attention map, for selected heads and rows.
struct AttentionProbabilities {
  ScoreArgs scores;
  const float* q;               // (B, H, N, D)
  TokenRows k;                  // (B, G, M, D), f32
  float* out;                   // (B, head_count, row_count, M)
  const int64_t *heads, *rows;  // (head_count), (row_count)
  int64_t head_count, row_count;
};
HEED_KERNEL(attention_probabilities_forward, AttentionProbabilities);

}  // namespace heed
