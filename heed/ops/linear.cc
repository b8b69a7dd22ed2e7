// activation(x w^T + b): bias and activation are applied to each tile of the product while it is in cache.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "heed/ops/linear.cc"
#include "hwy/foreach_target.h"
// after foreach_target
#include "heed/ops/formulas.h"

#include "heed/core/parallel.h"
#include "heed/core/raw.h"
#include "heed/ops/bf16_gemm.h"
#include "heed/ops/epilogue.h"
#include "heed/ops/gemm.h"
#include "heed/ops/ops.h"
#include "heed/ops/storage.h"

HWY_BEFORE_NAMESPACE();
namespace heed {
namespace HWY_NAMESPACE {

struct Identity {
  template <class V>
  static HWY_INLINE V f(V x) {
    return x;
  }
  template <class V>
  static HWY_INLINE V df(V) {
    return V(1);
  }
};

// Calls visit with the formula of an activation.
template <class Visit>
HWY_INLINE void with_formula(Activation activation, const Visit& visit) {
  switch (activation) {
    case Activation::none: return visit(Identity());
    case Activation::relu: return visit(Relu());
    case Activation::silu: return visit(Silu());
    case Activation::gelu: return visit(Gelu());
    case Activation::gelu_tanh: return visit(GeluTanh());
    case Activation::tanh: return visit(Tanh());
    case Activation::sigmoid: return visit(Sigmoid());
  }
}

void finish_rows(float* z, float* y, int64_t stride, const float* bias, Activation activation, int64_t rows, int64_t columns) {
  with_formula(activation, [&]<class Formula>(Formula) HWY_ATTR {
    for (int64_t row = 0; row < rows; ++row, z += stride, y += stride) {
      for_lanes(columns, [&](int64_t i, auto load, auto store) HEED_LANES {
        const Lanes sum = bias ? load(z + i) + load(bias + i) : load(z + i);
        if (z != y) store(z + i, sum);
        store(y + i, Formula::f(sum));
      });
    }
  });
}

// y = activation(z)
void activate(const float* z, float* y, Activation activation, int64_t count) {
  parallel_for(count, 1 << 13, [&](int64_t begin, int64_t end) HWY_ATTR {
    with_formula(activation, [&]<class Formula>(Formula) HWY_ATTR {
      for_lanes(end - begin, [&](int64_t i, auto load, auto store) HEED_LANES { store(y + begin + i, Formula::f(load(z + begin + i))); });
    });
  });
}

// dz = g activation'(z)
void activation_gradient(const float* z, const float* g, float* dz, Activation activation, int64_t count) {
  parallel_for(count, 1 << 13, [&](int64_t begin, int64_t end) HWY_ATTR {
    with_formula(activation, [&]<class Formula>(Formula) HWY_ATTR {
      for_lanes(end - begin, [&](int64_t i, auto load, auto store)
                                 HEED_LANES { store(dz + begin + i, load(g + begin + i) * Formula::df(load(z + begin + i))); });
    });
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace heed
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace heed {

HWY_EXPORT(finish_rows);
HWY_EXPORT(activate);
HWY_EXPORT(activation_gradient);

void apply_epilogue(float* z, float* y, int64_t stride, const float* bias, Activation activation, int64_t rows, int64_t columns) {
  HWY_DYNAMIC_DISPATCH(finish_rows)(z, y, stride, bias, activation, rows, columns);
}

Tensor linear(const Tensor& input, const Tensor& weight, const Tensor& bias, Activation activation) {
  if (is_half(input) || is_half(weight) || is_half(bias))
    return cast(linear(widen(input), widen(weight), widen(bias), activation), input.dtype());
  check(weight.rank() == 2, "linear: the weight has shape ", weight.shape(), ", expected (outputs, inputs)");
  check(input.rank() >= 1 && input.size(-1) == weight.size(1), "linear: x has ", input.rank() ? input.size(-1) : 0, " columns, the weight ",
        weight.size(1));
  check(!bias.defined() || (bias.rank() == 1 && bias.size(0) == weight.size(0)), "linear: the bias has shape ",
        bias.defined() ? bias.shape() : Shape{}, ", the weight ", weight.shape());
  const Tensor x = dense_f32("linear", input), w = dense_f32("linear", weight);
  const Tensor b = bias.defined() ? dense_f32("linear", bias) : Tensor();
  const int64_t I = w.size(1), O = w.size(0), rows = count(x.shape()) / std::max<int64_t>(I, 1);
  Shape shape = x.shape();
  shape[x.rank() - 1] = O;

  const bool tracked = bias.defined() ? tracking({&input, &weight, &bias}) : tracking({&input, &weight});
  const bool active = activation != Activation::none;
  const Tensor y = Tensor::empty(shape, DType::f32, x.device());
  const Tensor z = tracked && active ? Tensor::empty(shape, DType::f32, x.device()) : y;  // kept for the gradient
  float *sums = raw<float>(z), *to = raw<float>(y);
  Products products{.M = rows,
                    .N = O,
                    .K = I,
                    .operands =
                        [&](int64_t, Matrix& left, Matrix& right, Matrix& out) {
                          left = {raw<float>(x), I};
                          right = {raw<float>(w), I, true};
                          out = {sums, O};
                        },
                    .bias = b.defined() ? raw<float>(b) : nullptr};
  if (active)
    products.after = [&](int64_t, const Tile& tile) {
      const int64_t offset = tile.row * O + tile.column;
      apply_epilogue(sums + offset, to + offset, O, nullptr, activation, tile.rows, tile.columns);
    };
  const bool narrow = Bf16Layers::active();
  narrow ? gemm_bf16(products) : gemm(products);
  if (!tracked) return y;

  Tensors inputs{input, weight};
  if (bias.defined()) inputs.push_back(bias);
  Tensor out = record(op::linear, y, std::move(inputs),
                      [kept = SavedInput(input, x), shape_of_x = x.shape(), w, z = active ? z : Tensor(), activation,
                       need_x = input.needs_grad(), need_w = weight.needs_grad(), has_bias = bias.defined(),
                       need_bias = bias.defined() && bias.needs_grad(), narrow, rows, I, O](const Tensor& gradient) {
                        const auto multiply = [narrow](int64_t M, int64_t N, int64_t K, Matrix left, Matrix right, Matrix product) {
                          narrow ? gemm_bf16(M, N, K, left, right, product) : gemm(M, N, K, left, right, product);
                        };
                        Tensor g = contiguous(gradient);
                        if (z.defined()) {
                          const Tensor dz = final_backward() && z.owns_data_alone() ? z : Tensor::empty(g.shape(), DType::f32, g.device());
                          HWY_DYNAMIC_DISPATCH(activation_gradient)(raw<float>(z), raw<float>(g), raw<float>(dz), activation, g.count());
                          g = dz;
                        }
                        Grads grads(has_bias ? 3 : 2);
                        float* dz = raw<float>(g);
                        if (need_x) {
                          grads[0] = Tensor::empty(shape_of_x, DType::f32, g.device());
                          multiply(rows, I, O, {dz, O}, {raw<float>(w), I}, {raw<float>(grads[0]), I});
                        }
                        if (need_w) {
                          grads[1] = Tensor::empty(w.shape(), DType::f32, w.device());
                          const Tensor seen = kept.get();
                          multiply(O, I, rows, {dz, O, true}, {raw<float>(seen), I}, {raw<float>(grads[1]), I});
                        }
                        if (need_bias) grads[2] = sum(reshape(g, {rows, O}), {0});
                        return grads;
                      });
  if (!active) return out;
  return with_recompute(std::move(out), [z, activation] {
    const Tensor again = Tensor::empty(z.shape(), DType::f32, z.device());
    HWY_DYNAMIC_DISPATCH(activate)(raw<float>(z), raw<float>(again), activation, z.count());
    return again;
  });
}

}  // namespace heed
#endif
