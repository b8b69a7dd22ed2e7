// Changing attention while a network runs, without a change in the network: sharper or flatter, without some keys, without some heads.
#pragma once

#include <map>
#include <set>
#include <utility>
#include <vector>

#include "heed/attention/attention.h"
#include "heed/core/api.h"

namespace HEED_API heed {

// While one of these lives, every attention() on this thread is changed. The newest counts.
class AttentionEdit {
 public:
  struct Changes {
    float beta = 1;                                  // factor on the inverse temperature
    std::vector<int64_t> hidden = {};                // keys that no query sees
    std::set<int64_t> hidden_calls = {};             // calls where they are hidden, counted as AttentionTap counts them; empty: all
    std::set<std::pair<int64_t, int64_t>> off = {};  // call and head whose output is 0
    std::map<int64_t, Tensor> gates = {};            // by call: (H), factors of the outputs of its heads, which may take a gradient
    int64_t period = 0;                              // calls of one pass of the network, to count anew in the next; 0: one pass only

    bool empty() const { return beta == 1 && hidden.empty() && off.empty() && gates.empty(); }
  };

  explicit AttentionEdit(Changes changes);
  ~AttentionEdit();
  AttentionEdit(const AttentionEdit&) = delete;
  AttentionEdit& operator=(const AttentionEdit&) = delete;

  // For attention() alone: the edit that counts on this thread, or null, and the changed call.
  static AttentionEdit* newest() { return newest_; }
  Tensor call(const Tensor& q, const Tensor& k, const Tensor& v, AttentionOptions options);

 private:
  static inline thread_local AttentionEdit* newest_ = nullptr;

  Changes changes_;
  int64_t calls_ = 0;
  AttentionEdit* outer_;
};

}  // namespace heed
