#include "heed/train/optimizer_step.h"

#include <cmath>
#include <limits>

namespace heed {
namespace {

// Norms, biases and positions take no weight decay.
std::vector<ParameterGroup> groups_of(const std::vector<Parameter>& all, float decay) {
  std::vector<ParameterGroup> groups{{{}, decay}, {{}, 0}};
  for (const Parameter& parameter : all)
    if (parameter.options.learned) groups[parameter.options.decays ? 0 : 1].parameters.push_back(parameter.tensor);
  return groups;
}

std::variant<Sgd, Adam> optimizer_of(const std::vector<Parameter>& all, const TrainOptions& options) {
  const std::vector<ParameterGroup> groups = groups_of(all, options.weight_decay);
  if (options.optimizer == "sgd") return Sgd(groups, {.momentum = options.momentum});
  return Adam(groups, {.beta1 = options.beta1, .beta2 = options.beta2, .decoupled = options.optimizer == "adamw"});
}

Tensor copy_of(const Tensor& x) {
  const Tensor out = Tensor::empty(x.shape(), x.dtype(), x.device());
  copy_into(x, out);
  return out;
}

Tensors state_of(const std::variant<Sgd, Adam>& optimizer) {
  return std::visit([](const auto& chosen) { return chosen.state(); }, optimizer);
}

}  // namespace

OptimizerStep::OptimizerStep(const Model& model, const TrainOptions& options)
    : all_(model.params().all()),
      optimizer_(optimizer_of(all_, options)),
      numbers_(model.device()),
      clip_(options.clip),
      average_(options.average),
      beta1_(options.beta1),
      beta2_(options.beta2) {
  for (const Parameter& parameter : all_)
    if (parameter.options.learned) trainable_.push_back(parameter.tensor);
  if (average_ > 0)
    for (const Tensor& parameter : trainable_) averages_.push_back(copy_of(parameter));
}

float OptimizerStep::step(float rate) {
  begin(rate);
  const float norm = apply().item();  // read after all work is queued; kernels have read it on the device
  finish(norm);
  return norm;
}

// The decay is smaller in early steps, so that the average forgets the initial values.
float OptimizerStep::average_share() const {
  const int64_t taken = steps_ + 1;
  return 1 - std::min(average_, static_cast<float>(1 + taken) / static_cast<float>(10 + taken));
}

void OptimizerStep::begin(float rate) {
  rate_ = rate;
  numbers_.set(rate, beta1_, beta2_, steps_ + 1, average_share());
}

Tensor OptimizerStep::apply() {
  if (Adam* adam = std::get_if<Adam>(&optimizer_)) adam->set_steps(steps_);
  const Clipping clipping{.norm = gradient_norm(trainable_), .limit = clip_ > 0 ? clip_ : std::numeric_limits<float>::max()};
  std::visit([&](auto& chosen) { chosen.step(rate_, clipping, numbers_.tensor()); }, optimizer_);
  if (!averages_.empty()) update_averages(averages_, trainable_, average_share(), clipping.norm, numbers_.tensor());
  return clipping.norm;
}

void OptimizerStep::finish(float norm) {
  if (std::isfinite(norm)) ++steps_;
}

void OptimizerStep::zero_grad() const {
  std::visit([](const auto& chosen) { chosen.zero_grad(); }, optimizer_);
}

NamedTensors OptimizerStep::tensors() const {
  NamedTensors out;
  for (const Parameter& parameter : all_) out.emplace_back("model." + parameter.name, parameter.tensor);
  const auto add = [&](const Tensors& list, const std::string& name) {
    for (size_t i = 0; i < list.size(); ++i) out.emplace_back(name + '.' + std::to_string(i), list[i]);
  };
  add(state_of(optimizer_), "optimizer");
  add(averages_, "average");
  return out;
}

void OptimizerStep::load(const NamedTensors& tensors, int64_t steps, const std::string& source) {
  const NamedTensors expected = this->tensors();
  check<FileError>(expected.size() == tensors.size(), source, ": ", tensors.size(), " tensors, expected ", expected.size(),
                   "; it belongs to another model or optimizer");
  std::map<std::string, Tensor> found(tensors.begin(), tensors.end());
  for (const auto& [name, tensor] : expected) {
    const auto match = found.find(name);
    check<FileError>(match != found.end() && match->second.shape() == tensor.shape(), source, ": found no tensor ", name, " of shape ",
                     tensor.shape());
    copy_into(match->second, tensor);
  }
  steps_ = steps;
  if (Adam* adam = std::get_if<Adam>(&optimizer_)) adam->set_steps(steps);
}

void OptimizerStep::broadcast(Group& group) {
  for (const auto& [name, tensor] : tensors()) group.broadcast(tensor, 0);
  steps_ = std::stoll(group.broadcast(std::to_string(steps_), 0));
  if (Adam* adam = std::get_if<Adam>(&optimizer_)) adam->set_steps(steps_);
}

void OptimizerStep::swap_averages() {
  for (size_t i = 0; i < averages_.size(); ++i) swap_values(averages_[i], trainable_[i]);
}

}  // namespace heed
