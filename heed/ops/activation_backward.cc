// On the CPU: the elementwise kernel, then the sum over rows.
#include "heed/ops/activation_backward.h"

namespace heed {

void cpu::activation_backward(const ActivationBackward& a) {
  elementwise_backward({.op = a.op, .x = a.z, .g = a.g, .dx = a.dz, .count = a.rows * a.columns, .dtype = a.dtype});
  FoldForward f = a.fold();
  for (auto* results = static_cast<float*>(a.workspace);; results += f.reduced * f.inner) {
    f.blocks = cpu_fold_parts(f.reduced, f.inner);
    f.y = f.blocks == 1 ? a.db : results;
    fold_forward(f);
    if (f.blocks == 1) return;
    f.x = results;
    f.dtype = DType::f32;
    f.reduced = f.blocks;
  }
}

}  // namespace heed
