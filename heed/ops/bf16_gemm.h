// Matrix products whose operands are rounded to bf16, eight bits of mantissa, while sums stay f32: mixed precision as in Kalamkar et al.
// 2019. Weights, gradients and everything between products are f32 as ever.
#pragma once

#include "heed/ops/gemm.h"

namespace heed {

bool has_bf16();  // whether this machine has instructions for them; without, they are computed in f32 from rounded numbers

// One product, not added to what is there: of Products, `batch` is 1 and `add` false.
void gemm_bf16(const Products& products);
void gemm_bf16(int64_t M, int64_t N, int64_t K, Matrix a, Matrix b, Matrix c);

// While one of these lives, linear layers that this thread runs, and their gradients later, are such products.
class Bf16Layers {
 public:
  Bf16Layers() : before_(active_) { active_ = true; }
  ~Bf16Layers() { active_ = before_; }
  Bf16Layers(const Bf16Layers&) = delete;
  Bf16Layers& operator=(const Bf16Layers&) = delete;

  static bool active() { return active_; }

 private:
  bool before_;
  static thread_local bool active_;
};

}  // namespace heed
