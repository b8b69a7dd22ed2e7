// One training update of a model's parameters: gradient clipping, optimizer, moving average of weights.
#pragma once

#include <optional>
#include <variant>

#include "heed/core/api.h"
#include "heed/dist/group.h"
#include "heed/models/model.h"
#include "heed/train/optimizer.h"
#include "heed/train/owned_slices.h"
#include "heed/train/train_options.h"

namespace HEED_API heed {

// The optimizer of a model with the options of a run.
class OptimizerStep {
 public:
  // With shard_optimizer every process keeps the state of some parameters; all processes must then call
  // apply(), step() and tensors(), and tensors() has the state in the first process only.
  OptimizerStep(const Model& model, const TrainOptions& options, Group& group = world());

  // Returns the gradient norm. Changes nothing if it is not finite.
  float step(float rate);
  // The same in three parts. A captured step repeats the second one only.
  void begin(float rate);
  Tensor apply(const Tensor& loss = {});  // -> the norm, on the device; it is NaN if the loss, (), is not finite
  void finish(float norm);                // counts the step if the norm is finite
  void zero_grad() const;

  NamedTensors tensors() const;  // parameters, optimizer state and averages by name; not copies
  void load(const NamedTensors& tensors, int64_t steps, const std::string& source);  // restores them; source: names the file in messages
  void broadcast();  // sends the state of the first process to the others; follows load() if there are others
  // Steps that changed the parameters.
  int64_t steps() const { return steps_; }

  const std::vector<Parameter>& parameters() const { return all_; }  // trainable and frozen
  // Swaps weights and averages. Does nothing without averages.
  void swap_averages();

 private:
  float average_share() const;
  std::vector<ParameterGroup> groups(float decay);
  Tensors whole_state() const;
  NamedTensors named(const Tensors& state) const;

  const std::vector<Parameter>& all_;
  Group& group_;
  Tensors trainable_, averages_;  // averages_: of trainable_, or empty
  std::optional<OwnedSlices> owned_ = {};
  std::vector<size_t> order_ = {};  // of the optimizer's parameters in trainable_
  Tensors loaded_ = {};             // whole state of a checkpoint, until broadcast()
  std::variant<Sgd, Adam> optimizer_;
  StepNumbersOnDevice numbers_;
  float clip_, average_, beta1_, beta2_;
  float rate_ = 0;
  int64_t steps_ = 0;
};

// The model has its averaged weights during the lifetime of this object.
class AveragedWeights {
 public:
  explicit AveragedWeights(OptimizerStep& optimizer_step) : optimizer_step_(optimizer_step) { optimizer_step_.swap_averages(); }
  ~AveragedWeights() { optimizer_step_.swap_averages(); }
  AveragedWeights(const AveragedWeights&) = delete;
  AveragedWeights& operator=(const AveragedWeights&) = delete;

 private:
  OptimizerStep& optimizer_step_;
};

}  // namespace heed
