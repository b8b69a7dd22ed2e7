// The loss of a head over many classes. The logits of some rows at a time become their own gradients, and these the gradients of x and the
// weight, so that the logits of all rows are never in memory.
#include <algorithm>

#include "heed/core/bf16_copy.h"
#include "heed/core/raw.h"
#include "heed/ops/cross_entropy.h"
#include "heed/ops/gemm.h"
#include "heed/ops/loss.h"
#include "heed/ops/storage.h"

namespace heed {
namespace {

// Of one part: on the CPU they should stay in the caches, on GPUs products should be large.
int64_t most_logits(Device device) { return int64_t{1} << (device == kCpu ? 22 : 27); }

// w^T (D, C), or w (C, D), packed for all parts; undefined if the device has no such layout, or w is rounded already.
Tensor packed(const Tensor& w, bool transposed, DType dtype) {
  if (w.dtype() == DType::bf16) return {};
  const int64_t N = w.size(transposed ? 0 : 1), K = w.size(transposed ? 1 : 0);
  const int64_t bytes = packed_gemm_bytes(w.device(), N, K, dtype);
  if (bytes == 0) return {};
  const Tensor out = Tensor::empty({bytes}, DType::u8, w.device());
  launch(pack_gemm, w.device(),
         {.b = {.data = Raw::bytes(w), .stride = w.size(1), .transposed = transposed},
          .N = N,
          .K = K,
          .packed = Raw::bytes(out),
          .dtype = dtype});
  return out;
}

// Rows of a dense matrix, from row `first` on.
GemmOperand rows_from(const Tensor& x, int64_t first, bool transposed = false) {
  const int64_t columns = x.size(1);
  return {.data = Raw::bytes(x) + first * columns * static_cast<int64_t>(bytes_of(x.dtype())),
          .stride = columns,
          .transposed = transposed,
          .dtype = x.dtype()};
}

}  // namespace

Tensor linear_cross_entropy(const Tensor& input, const Tensor& weight, const Tensor& bias, const Tensor& targets,
                            const CrossEntropy& options) {
  const bool tracked = bias.defined() ? tracking({&input, &weight, &bias}) : tracking({&input, &weight});
  if (!tracked || input.dtype() == DType::f16 || is_half(weight) || is_half(bias))
    return cross_entropy(linear(input, weight, bias), targets, options);
  check(input.rank() == 2 && weight.rank() == 2 && input.size(1) == weight.size(1), "linear_cross_entropy: x has shape ", input.shape(),
        ", the weight ", weight.shape());
  check(targets.rank() == 1 && targets.size(0) == input.size(0), "linear_cross_entropy: x has shape ", input.shape(), ", the targets ",
        targets.shape());
  const int64_t rows = input.size(0), C = weight.size(0), D = weight.size(1);
  check(!bias.defined() || bias.shape() == Shape{C}, "linear_cross_entropy: the bias has shape ", bias.defined() ? bias.shape() : Shape{},
        ", the weight ", weight.shape());
  const Device device = common_device("linear_cross_entropy", {&input, &weight, &bias, &targets});
  const EntropyRows entropy("linear_cross_entropy", targets, C, options);
  const Tensor x = dense_storage("linear_cross_entropy", input), wide = dense_f32("linear_cross_entropy", weight);
  const Tensor b = bias.defined() ? dense_f32("linear_cross_entropy", bias) : Tensor();
  const bool keeps_copies = device != kCpu && x.dtype() == DType::bf16;
  const Tensor w = keeps_copies ? bf16_copy(wide) : wide, narrow = keeps_copies && b.defined() ? bf16_copy(b) : Tensor();
  const Bf16* const narrow_bias = narrow.defined() && narrow.dtype() == DType::bf16 ? raw<Bf16>(narrow) : nullptr;
  const DType dtype = x.dtype();

  // Equal parts, depending on the shape alone. The gradient of the logits has the type of x.
  const int64_t parts = std::max<int64_t>(1, (rows * C + most_logits(device) - 1) / most_logits(device)), size = (rows + parts - 1) / parts;
  const Tensor z = Tensor::empty({size, C}, dtype, device), forward_w = size > 1 ? packed(w, true, dtype) : Tensor();
  const Tensor backward_w = input.needs_grad() && size >= 512 ? packed(w, false, dtype) : Tensor();
  Grads grads{input.needs_grad() ? Tensor::empty({rows, D}, dtype, device) : Tensor(),
              weight.needs_grad() ? Tensor::empty({C, D}, DType::f32, device) : Tensor()};
  if (bias.defined()) grads.push_back(bias.needs_grad() ? Tensor::zeros({C}, DType::f32, device) : Tensor());
  for (int64_t begin = 0; begin < rows; begin += size) {
    const int64_t here = std::min(size, rows - begin);
    launch(gemm, device,
           {.M = here,
            .N = C,
            .K = D,
            .a = rows_from(x, begin),
            .b = rows_from(w, 0, true),
            .c = rows_from(z, 0),
            .bias = raw_or_null<float>(b),
            .narrow_bias = narrow_bias,
            .packed_b = Raw::bytes_or_null(forward_w)});
    entropy.forward(Raw::bytes(z), dtype, begin, begin + here);
    entropy.backward(Raw::bytes(z), nullptr, Raw::bytes(z), dtype, begin, begin + here);
    if (grads[0].defined())
      launch(gemm, device,
             {.M = here,
              .N = D,
              .K = C,
              .a = rows_from(z, 0),
              .b = rows_from(w, 0),
              .c = rows_from(grads[0], begin),
              .packed_b = Raw::bytes_or_null(backward_w)});
    if (grads[1].defined())
      launch(
          gemm, device,
          {.M = C, .N = D, .K = here, .a = rows_from(z, 0, true), .b = rows_from(x, begin), .c = rows_from(grads[1], 0), .add = begin > 0});
    if (bias.defined() && grads[2].defined()) accumulate(grads[2], sum(z.view({here, C}, {C, 1}), {0}, false, DType::f32));
  }
  Tensors inputs{input, weight};
  if (bias.defined()) inputs.push_back(bias);
  return record(op::linear_cross_entropy, entropy.loss(), std::move(inputs), [grads](const Tensor& g) mutable {
    Grads out = final_backward() ? std::move(grads) : grads;
    for (Tensor& gradient : out) {
      if (!gradient.defined()) continue;
      if (!gradient.owns_data_alone()) {  // saved for another backward
        const Tensor own = Tensor::empty(gradient.shape(), gradient.dtype(), gradient.device());
        copy_into(gradient, own);
        gradient = own;
      }
      launch(scale_in_place, g.device(),
             {.x = Raw::bytes(gradient), .factor = raw<float>(g), .count = gradient.count(), .dtype = gradient.dtype()});
    }
    return out;
  });
}

}  // namespace heed
