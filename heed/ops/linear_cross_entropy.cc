// The loss of a head over many classes. Logits of some rows at a time are turned into their own gradients while they are in cache, and
// those into the gradients of states and weight, so that the logits of all rows are never there.
#include <algorithm>

#include "heed/core/raw.h"
#include "heed/core/work_count.h"
#include "heed/ops/cross_entropy.h"
#include "heed/ops/gemm.h"
#include "heed/ops/loss.h"
#include "heed/ops/packed_gemm.h"
#include "heed/ops/storage.h"

namespace heed {
namespace {

constexpr int64_t kLogits = int64_t{1} << 22;  // of one part

// The bias, dense, or nothing where it is all zeros, as those are that are not learned: another pass over the logits for no change.
Tensor added_bias(const Tensor& bias) {
  if (!bias.defined()) return {};
  const Tensor dense = dense_f32("linear_cross_entropy", bias);
  const float* numbers = raw<float>(dense);
  return std::all_of(numbers, numbers + dense.count(), [](float number) { return number == 0; }) ? Tensor() : dense;
}

// b: (K, N) in panels, for all parts; undefined where there are none
Tensor packed(const Matrix& b, int64_t N, int64_t K) {
  if (panel_width() == 0) return {};
  const Tensor panels = Tensor::empty({panel_floats(N, K)});
  pack_panels(b, N, K, raw<float>(panels));
  return panels;
}

// z = x w^T + b, by panels of w where there are any. x: (rows, D), z: (rows, C)
void fill_logits(const Matrix& x, const Tensor& w, const Tensor& b, const Tensor& panels, int64_t rows, float* z) {
  const int64_t C = w.size(0), D = w.size(1);
  const float* bias = b.defined() ? raw<float>(b) : nullptr;
  if (panels.defined()) {
    count_work(rows * C * D);
    return packed_gemm(rows, C, D, x, raw<float>(panels), bias, {z, C});
  }
  gemm({.M = rows,
        .N = C,
        .K = D,
        .operands =
            [&](int64_t, Matrix& left, Matrix& right, Matrix& out) {
              left = x;
              right = {raw<float>(w), D, true};
              out = {z, C};
            },
        .bias = bias});
}

}  // namespace

Tensor linear_cross_entropy(const Tensor& input, const Tensor& weight, const Tensor& bias, const Tensor& targets,
                            const CrossEntropy& options) {
  const bool tracked = bias.defined() ? tracking({&input, &weight, &bias}) : tracking({&input, &weight});
  if (!tracked || is_half(input) || is_half(weight) || is_half(bias)) return cross_entropy(linear(input, weight, bias), targets, options);
  check(input.rank() == 2 && weight.rank() == 2 && input.size(1) == weight.size(1), "linear_cross_entropy: x has shape ", input.shape(),
        ", the weight ", weight.shape());
  check(targets.rank() == 1 && targets.size(0) == input.size(0), "linear_cross_entropy: x has shape ", input.shape(), ", the targets ",
        targets.shape());
  const int64_t rows = input.size(0), C = weight.size(0), D = weight.size(1);
  check(!bias.defined() || bias.shape() == Shape{C}, "linear_cross_entropy: the bias has shape ", bias.defined() ? bias.shape() : Shape{},
        ", the weight ", weight.shape());
  common_device("linear_cross_entropy", {&input, &weight, &bias, &targets});
  const EntropyRows entropy("linear_cross_entropy", targets, C, options);
  const Tensor x = dense_f32("linear_cross_entropy", input), w = dense_f32("linear_cross_entropy", weight);
  const Tensor b = added_bias(bias);

  // Even parts, cut by shape alone.
  const int64_t parts = std::max<int64_t>(1, (rows * C + kLogits - 1) / kLogits), size = (rows + parts - 1) / parts;
  const Tensor z = Tensor::empty({size, C}), panels = size > 1 ? packed({raw<float>(w), D, true}, C, D) : Tensor();
  const Tensor panels_back = input.needs_grad() && size >= 512 ? packed({raw<float>(w), D}, D, C) : Tensor();
  Grads grads{input.needs_grad() ? Tensor::empty({rows, D}) : Tensor(), weight.needs_grad() ? Tensor::empty({C, D}) : Tensor()};
  if (bias.defined()) grads.push_back(bias.needs_grad() ? Tensor::zeros({C}) : Tensor());
  for (int64_t begin = 0; begin < rows; begin += size) {
    const int64_t here = std::min(size, rows - begin);
    fill_logits({raw<float>(x) + begin * D, D}, w, b, panels, here, raw<float>(z));
    entropy.forward(raw<float>(z), DType::f32, begin, begin + here);
    entropy.backward(raw<float>(z), nullptr, raw<float>(z), DType::f32, begin, begin + here);
    const Matrix g{raw<float>(z), C}, transposed{raw<float>(z), C, true};
    if (panels_back.defined()) {
      count_work(here * D * C);
      packed_gemm(here, D, C, g, raw<float>(panels_back), nullptr, {raw<float>(grads[0]) + begin * D, D});
    } else if (grads[0].defined()) {
      gemm(here, D, C, g, {raw<float>(w), D}, {raw<float>(grads[0]) + begin * D, D});
    }
    if (grads[1].defined()) gemm(C, D, here, transposed, {raw<float>(x) + begin * D, D}, {raw<float>(grads[1]), D}, begin > 0);
    if (bias.defined() && grads[2].defined()) accumulate(grads[2], sum(z.view({here, C}, {C, 1}), {0}));
  }
  Tensors inputs{input, weight};
  if (bias.defined()) inputs.push_back(bias);
  return record(op::linear_cross_entropy, entropy.loss(), std::move(inputs), [grads](const Tensor& g) mutable {
    Grads out = final_backward() ? std::move(grads) : grads;
    for (Tensor& gradient : out) {
      if (!gradient.defined()) continue;
      if (!gradient.owns_data_alone()) {  // kept for another walk
        const Tensor own = Tensor::empty(gradient.shape(), DType::f32, gradient.device());
        copy_into(gradient, own);
        gradient = own;
      }
      launch(scale_in_place, g.device(), {.x = raw<float>(gradient), .factor = raw<float>(g), .count = gradient.count()});
    }
    return out;
  });
}

}  // namespace heed
