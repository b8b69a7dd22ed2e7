#include "heed/train/optimizer_step.h"

#include <cmath>
#include <limits>

#include "heed/core/memory.h"

namespace heed {
namespace {

std::variant<Sgd, Adam> optimizer_of(const std::vector<ParameterGroup>& groups, const TrainOptions& options) {
  if (options.optimizer == "sgd") return Sgd(groups, {.momentum = options.momentum});
  return Adam(groups, {.beta1 = options.beta1, .beta2 = options.beta2, .decoupled = options.optimizer == "adamw"});
}

Tensors learned_in(const std::vector<Parameter>& all) {
  Tensors out;
  for (const Parameter& parameter : all)
    if (parameter.options.learned) out.push_back(parameter.tensor);
  return out;
}

Tensor copy_of(const Tensor& x) {
  const Tensor out = Tensor::empty(x.shape(), x.dtype(), x.device());
  copy_into(x, out);
  return out;
}

// Numbers that the optimizer keeps of every number of a parameter.
size_t moments_of(const std::variant<Sgd, Adam>& optimizer) {
  if (std::holds_alternative<Adam>(optimizer)) return 2;
  return std::get<Sgd>(optimizer).has_momentum() ? 1 : 0;
}

Tensors state_of(const std::variant<Sgd, Adam>& optimizer) {
  return std::visit([](const auto& chosen) { return chosen.state(); }, optimizer);
}

}  // namespace

OptimizerStep::OptimizerStep(const Model& model, const TrainOptions& options, Group& group)
    : all_(model.params().all()),
      group_(group),
      trainable_(learned_in(all_)),
      owned_(options.shard_optimizer && group.size() > 1 ? std::optional<OwnedSlices>(std::in_place, group, trainable_) : std::nullopt),
      optimizer_(optimizer_of(groups(options.weight_decay), options)),
      numbers_(model.device()),
      clip_(options.clip),
      average_(options.average),
      beta1_(options.beta1),
      beta2_(options.beta2) {
  if (average_ > 0)
    for (const Tensor& parameter : trainable_) averages_.push_back(copy_of(parameter));
}

// Norms, biases and positions take no weight decay.
std::vector<ParameterGroup> OptimizerStep::groups(float decay) {
  std::vector<ParameterGroup> out{{{}, decay}, {{}, 0}};
  for (const bool decays : {true, false}) {
    size_t i = 0;
    for (const Parameter& parameter : all_) {
      if (!parameter.options.learned) continue;
      const size_t place = i++;
      if (parameter.options.decays != decays) continue;
      order_.push_back(place);
      if (!owned_)
        out[decays ? 0 : 1].parameters.push_back(parameter.tensor);
      else if (owned_->owns(place))
        out[decays ? 0 : 1].parameters.push_back(owned_->slice(place));
    }
  }
  return out;
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

Tensor OptimizerStep::apply(const Tensor& loss) {
  if (Adam* adam = std::get_if<Adam>(&optimizer_)) adam->set_steps(steps_);
  const Tensor norm = gradient_norm(trainable_);
  const Clipping clipping{.norm = loss.defined() ? norm + loss.detach() * 0.0f : norm,
                          .limit = clip_ > 0 ? clip_ : std::numeric_limits<float>::max()};
  if (owned_) owned_->take_gradients();
  std::visit([&](auto& chosen) { chosen.step(rate_, clipping, numbers_.tensor()); }, optimizer_);
  if (owned_) owned_->share();
  if (!averages_.empty()) update_averages(averages_, trainable_, average_share(), clipping.norm, numbers_.tensor());
  return clipping.norm;
}

void OptimizerStep::finish(float norm) {
  if (std::isfinite(norm)) ++steps_;
}

void OptimizerStep::zero_grad() const {
  for (const Tensor& parameter : trainable_) parameter.zero_grad();
}

NamedTensors OptimizerStep::tensors() const { return named(whole_state()); }

NamedTensors OptimizerStep::named(const Tensors& state) const {
  NamedTensors out;
  for (const Parameter& parameter : all_) out.emplace_back("model." + parameter.name, parameter.tensor);
  const auto add = [&](const Tensors& list, const std::string& name) {
    for (size_t i = 0; i < list.size(); ++i) out.emplace_back(name + '.' + std::to_string(i), list[i]);
  };
  add(state, "optimizer");
  add(averages_, "average");
  return out;
}

// The optimizer state of all processes, gathered in the first one; undefined tensors in the others. For every moment one tensor per
// parameter, in the order of the optimizer.
Tensors OptimizerStep::whole_state() const {
  const Tensors own = state_of(optimizer_);
  if (!owned_) return own;
  release_cached_memory(kCpu);  // of activations, so that the whole state fits in its place
  Tensors out;
  for (size_t next = 0, moment = 0; moment < moments_of(optimizer_); ++moment) {
    Tensors parts(trainable_.size());
    for (const size_t i : order_)
      if (owned_->owns(i)) parts[i] = own[next++];
    Tensors whole(trainable_.size());
    owned_->each_gathered(parts, [&](size_t i, const Tensor& each) {
      if (group_.is_first()) whole[i] = copy_of(each);
    });
    for (const size_t i : order_) out.push_back(whole[i]);
  }
  return out;
}

void OptimizerStep::load(const NamedTensors& tensors, int64_t steps, const std::string& source) {
  if (owned_) {
    loaded_.clear();
    for (size_t moment = 0; moment < moments_of(optimizer_); ++moment)
      for (const size_t i : order_) loaded_.push_back(Tensor::empty(trainable_[i].shape(), kCpu));
  }
  const NamedTensors expected = named(owned_ ? loaded_ : state_of(optimizer_));
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

void OptimizerStep::broadcast() {
  if (group_.size() == 1) return;
  steps_ = std::stoll(group_.broadcast(std::to_string(steps_), 0));
  if (Adam* adam = std::get_if<Adam>(&optimizer_)) adam->set_steps(steps_);
  for (const auto& [name, tensor] : named(owned_ ? Tensors() : state_of(optimizer_))) group_.broadcast(tensor, 0);
  if (!owned_ || group_.broadcast(loaded_.empty() ? "" : "loaded", 0).empty()) return;
  const Tensors own = state_of(optimizer_);
  for (size_t next = 0, from = 0, moment = 0; moment < moments_of(optimizer_); ++moment)
    for (const size_t i : order_) {
      const Tensor whole = group_.is_first() ? loaded_[from++] : Tensor::empty(trainable_[i].shape(), kCpu);
      group_.broadcast(whole, 0);
      if (owned_->owns(i)) copy_into(owned_->part_of(whole, i), own[next++]);
    }
  loaded_.clear();
}

void OptimizerStep::swap_averages() {
  for (size_t i = 0; i < averages_.size(); ++i) swap_values(averages_[i], trainable_[i]);
}

}  // namespace heed
