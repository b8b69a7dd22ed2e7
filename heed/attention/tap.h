// Looking into a network while it runs: probabilities of attention calls, without a change in the network or its output.
#pragma once

#include <vector>

#include "heed/attention/attention.h"

namespace heed {

// While one of these lives, every attention() on this thread also leaves its probabilities here. The output still comes
// from the fused kernels, bit for bit. Taps may nest; each sees every call. A checkpoint runs its calls again in backward:
// hold a tap around the forward pass alone.
class AttentionTap {
 public:
  struct Choice {                  // empty: all
    std::vector<int64_t> calls{};  // counted from 0 since the tap began: layers, in the order they run
    std::vector<int64_t> heads{}, rows{};
  };
  struct Look {
    int64_t call;
    Tensor probabilities;  // (B, heads, rows, M), as attention_probabilities() gives them
  };

  AttentionTap() : AttentionTap(Choice()) {}
  explicit AttentionTap(Choice choice);
  ~AttentionTap();
  AttentionTap(const AttentionTap&) = delete;
  AttentionTap& operator=(const AttentionTap&) = delete;

  struct Shapes {
    Shape q, k;  // (B, H, N, D), (B, G, M, D)
  };
  const std::vector<Shapes>& shapes() const { return shapes_; }  // of every call
  const std::vector<Look>& looks() const { return looks_; }
  int64_t calls() const { return calls_; }  // seen so far, chosen or not

  // For attention() alone: the tap that began last on this thread, or null, and what a call has to show to all of them.
  static AttentionTap* newest() { return newest_; }
  static void look(const Tensor& q, const Tensor& k, const AttentionOptions& options);

 private:
  static inline thread_local AttentionTap* newest_ = nullptr;

  Choice choice_;
  std::vector<Look> looks_;
  std::vector<Shapes> shapes_;
  int64_t calls_ = 0;
  AttentionTap* outer_;
};

}  // namespace heed
