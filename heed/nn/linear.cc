#include "heed/nn/linear.h"

namespace heed {
namespace {

WeightForm form_of(Weights weights) { return weights == Weights::int8 ? WeightForm::bytes : WeightForm::panels; }

Tensor weight_at(const Scope& scope, int64_t inputs, int64_t outputs, const LinearOptions& options) {
  return scope.get("weight", {outputs, inputs}, options.weight ? options.weight : scope.initializer().weight,
                   {.stored_transposed = options.stored_transposed});
}

Tensor bias_at(const Scope& scope, int64_t outputs) { return scope.get("bias", {outputs}, initializer::zeros(), {.decays = false}); }

}  // namespace

Linear::Linear(const Scope& scope, int64_t inputs, int64_t outputs, const LinearOptions& options) {
  if (scope.params().weights() != Weights::trainable) {
    *this = pack_together({scope}, inputs, {outputs}, options);
    return;
  }
  name = module_name(scope.path());
  weight = weight_at(scope, inputs, outputs, options);
  if (options.bias) bias = bias_at(scope, outputs);
}

Linear::Linear(const Scope& scope, const Tensor& shared, const Tensor& shared_bias)
    : bias(shared_bias), name(module_name(scope.path() + ".(tied)")) {
  const Weights weights = scope.params().weights();
  if (weights == Weights::trainable)
    weight = shared;
  else
    packed = std::make_shared<const PackedWeight>(Tensors{shared}, form_of(weights));
}

Linear pack_together(const std::vector<Scope>& scopes, int64_t inputs, const std::vector<int64_t>& outputs, const LinearOptions& options) {
  Tensors rows, biases;
  for (size_t i = 0; i < scopes.size(); ++i) {
    rows.push_back(weight_at(scopes[i], inputs, outputs[i], options));
    if (options.bias) biases.push_back(bias_at(scopes[i], outputs[i]));
  }
  Linear out;
  out.packed = std::make_shared<const PackedWeight>(rows, form_of(scopes[0].params().weights()));
  if (options.bias) out.bias = biases.size() == 1 ? biases[0] : concat(biases, 0);
  for (const Scope& scope : scopes) scope.release("weight");
  return out;
}

}  // namespace heed
