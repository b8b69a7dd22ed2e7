#include "heed/train/diverged.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <tuple>

namespace heed {
namespace {

// The first non-finite value.
std::optional<float> nonfinite_in(const Tensor& x) {
  if (!x.defined() || !is_floating(x.dtype())) return {};
  for (const float value : converted(x, DType::f32).to_vector<float>())
    if (!std::isfinite(value)) return value;
  return {};
}

// Sort key: encoder outputs, then hidden states by number ("hidden_states.10" after "hidden_states.9"), then logits, then the loss.
std::tuple<bool, bool, bool, int64_t, std::string> sort_key(const std::string& name) {
  const bool state = name.find("hidden_states.") != std::string::npos;
  return {!name.starts_with("encoder"), !state, name == "loss", state ? std::stoll(name.substr(name.rfind('.') + 1)) : 0, name};
}

TensorMap accepted_inputs(const Model& model, TensorMap inputs) {
  std::erase_if(inputs, [&](const auto& input) { return !model.takes(input.first); });
  return inputs;
}

}  // namespace

bool all_finite(const std::vector<Parameter>& parameters) {
  return std::none_of(parameters.begin(), parameters.end(),
                      [](const Parameter& parameter) { return nonfinite_in(parameter.tensor).has_value(); });
}

std::string first_not_finite(const Task& task, const Batch& batch, Rng rng) {
  const Model& model = *task.model;
  const TensorMap inputs = task.model_inputs ? task.model_inputs(batch) : batch.inputs;
  const auto message = [](const std::string& name, float value, const char* rest) {
    std::ostringstream text;
    text << name << " holds " << value << " (" << rest << ')';
    return text.str();
  };
  for (const auto& [name, input] : inputs)
    if (const auto value = nonfinite_in(input)) return message("the input " + name, *value, "check the data");
  for (const Parameter& parameter : model.params().all())
    if (const auto value = nonfinite_in(parameter.tensor))
      return message("the parameter " + parameter.name, *value, "the previous step was too large");
  const NoGrad quiet;
  const TensorMap out = model(accepted_inputs(model, inputs), {.hidden_states = true, .mode = training_with(rng)});
  std::vector<std::string> names;
  for (const auto& [name, tensor] : out) names.push_back(name);
  std::sort(names.begin(), names.end(), [](const std::string& a, const std::string& b) { return sort_key(a) < sort_key(b); });
  for (const std::string& name : names)
    if (const auto value = nonfinite_in(out.at(name))) return message(name, *value, "everything before it is finite");
  const std::vector<Parameter>& all = model.params().all();
  for (auto parameter = all.rbegin(); parameter != all.rend(); ++parameter)
    if (const auto value = nonfinite_in(parameter->tensor.grad()))
      return message("the gradient of " + parameter->name, *value, "nearest to the loss");
  return "only the loss";
}

}  // namespace heed
