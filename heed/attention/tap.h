// Captures the attention probabilities of a network while it runs, without changing the network or its output.
#pragma once

#include <vector>

#include "heed/attention/attention.h"
#include "heed/core/api.h"

namespace HEED_API heed {

// While a tap exists, every attention() on this thread also stores its probabilities here. The output still comes from the fused kernels,
// bit for bit. Taps may be nested; each sees every call. checkpoint() repeats its calls in backward, so a tap should exist during the
// forward pass only.
class AttentionTap {
 public:
  struct Choice {                  // empty: all
    std::vector<int64_t> calls{};  // numbered from 0 since the construction of the tap: layers in the order of execution
    std::vector<int64_t> heads{}, rows{};
    bool operands = false;  // also keeps the queries and keys of every call
  };
  struct Look {
    int64_t call;
    Tensor probabilities;  // (B, heads, rows, M), as from attention_probabilities()
  };

  AttentionTap() : AttentionTap(Choice()) {}
  // Looks at chosen calls, heads and rows.
  explicit AttentionTap(Choice choice);
  ~AttentionTap();
  AttentionTap(const AttentionTap&) = delete;
  AttentionTap& operator=(const AttentionTap&) = delete;

  // Shapes of one call.
  struct Shapes {
    Shape q, k;  // (B, H, N, D), (B, G, M, D)
  };
  const std::vector<Shapes>& shapes() const { return shapes_; }  // of every call
  // What the scores of one call are computed from: beta q k^T and the terms of the options.
  struct Operands {
    Tensor q, k;  // (B, H, N, D), (B, G, M, D)
    AttentionOptions options;
  };
  const std::vector<Operands>& operands() const { return operands_; }  // of every call, with Choice::operands
  // What it has seen, in the order of the calls.
  const std::vector<Look>& looks() const { return looks_; }
  int64_t calls() const { return calls_; }  // so far, selected or not

  // For attention() only: the newest tap of this thread, or null, and the function that passes a call to all taps.
  static AttentionTap* newest() { return newest_; }
  static void look(const Tensor& q, const Tensor& k, const AttentionOptions& options);

 private:
  static inline thread_local AttentionTap* newest_ = nullptr;

  Choice choice_;
  std::vector<Look> looks_;
  std::vector<Shapes> shapes_;
  std::vector<Operands> operands_;
  int64_t calls_ = 0;
  AttentionTap* outer_;
};

}  // namespace heed
