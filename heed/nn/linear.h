// Basic modules: linear layers, norms, embeddings. A module is a struct of tensors, which it gets from a Scope.
#pragma once

#include <utility>

#include "heed/core/api.h"
#include "heed/core/module_work.h"
#include "heed/nn/params.h"
#include "heed/ops/packed_weight.h"

namespace HEED_API heed {

// Options of a linear layer.
struct LinearOptions {
  bool bias = true;
  bool stored_transposed = false;  // files store the weight as (I, O)
  Initializer weight = {};         // default: the scope's initializer for linear layers
};

// x w^T + b.
struct Linear {
  Tensor weight;                                    // (O, I); undefined if packed
  Tensor bias;                                      // (O) or undefined
  std::shared_ptr<const PackedWeight> packed = {};  // replaces `weight` for inference
  ModuleName name = {};

  Linear() = default;
  // With parameters "weight" (O, I) and "bias" (O) of the scope.
  Linear(const Scope& scope, int64_t inputs, int64_t outputs, const LinearOptions& options = {});
  // With a shared (tied) weight. The scope is for its name only. weight: (O, I), bias: (O) or undefined
  Linear(const Scope& scope, const Tensor& weight, const Tensor& bias = {});

  // Whether there is a layer; where its weight is; I and O.
  bool defined() const { return weight.defined() || packed; }
  Device device() const { return packed ? packed->device() : weight.device(); }
  int64_t inputs() const { return packed ? packed->inputs() : weight.size(1); }
  int64_t outputs() const { return packed ? packed->outputs() : weight.size(0); }

  // x: (..., I) -> (..., O)
  Tensor operator()(const Tensor& x, Activation activation = Activation::none) const {
    const ModuleScope module(name);
    return module.call({&x, &weight}, packed ? (*packed)(x, bias, activation) : linear(x, weight, bias, activation));
  }
};

// Packs layers with the same input into one matrix product, for inference.
Linear pack_together(const std::vector<Scope>& scopes, int64_t inputs, const std::vector<int64_t>& outputs, const LinearOptions& options);

// Ba et al. 2016, and the same with a bias of zeros that is not learned; Zhang and Sennrich 2019.
enum class NormKind { layer, layer_without_bias, root_mean_square };

// Layer norm or RMS norm over the last axis.
struct Norm {
  Tensor weight;  // (D); undefined: no norm
  Tensor bias;    // (D); undefined: RMS norm
  float eps = 1e-5f;
  ModuleName name = {};

  Norm() = default;
  // With parameters "weight" and "bias" of the scope, (D) each.
  Norm(const Scope& scope, int64_t D, float epsilon = 1e-5f, NormKind kind = NormKind::layer)
      : weight(scope.get("weight", {D}, initializer::ones(), {.decays = false})), eps(epsilon), name(module_name(scope.path())) {
    if (kind == NormKind::layer) bias = scope.get("bias", {D}, initializer::zeros(), {.decays = false});
    if (kind == NormKind::layer_without_bias) bias = Tensor::zeros({D}, DType::f32, scope.device());
  }

  // x: (..., D) -> (..., D)
  Tensor operator()(const Tensor& x) const {
    if (!weight.defined()) return x;
    const ModuleScope module(name);
    return module.call({&x}, bias.defined() ? layer_norm(x, weight, bias, eps) : rms_norm(x, weight, eps));
  }

  // Returns s = x + branch and norm(s), fused for layer norms. x, branch: (..., D)
  std::pair<Tensor, Tensor> add_norm(const Tensor& x, const Tensor& branch) const {
    const ModuleScope module(name);
    if (!bias.defined()) {
      const Tensor s = x + branch;
      return {s, module.call({&s}, rms_norm(s, weight, eps))};
    }
    auto [s, y] = add_layer_norm(branch, x, weight, bias, eps);
    return {s, module.call({&s}, y)};
  }
};

// A vector for every token.
struct Embedding {
  Tensor weight;  // (V, D)
  ModuleName name = {};

  Embedding() = default;
  Embedding(const Scope& scope, int64_t V, int64_t D)  // with the parameter "weight" of the scope
      : weight(scope.get("weight", {V, D}, scope.initializer().embedding)), name(module_name(scope.path())) {}

  Tensor operator()(const Tensor& indices) const {  // (...) -> (..., D)
    const ModuleScope module(name);
    const Tensor rows = embedding(weight, indices.to(weight.device()));
    return module.call({&rows}, rows);  // reads as much as it writes
  }
};

}  // namespace heed
