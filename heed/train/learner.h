// The parameters of a model on their way: optimizer, clipping, and the moving average of weights.
#pragma once

#include <variant>

#include "heed/models/model.h"
#include "heed/train/learning.h"
#include "heed/train/optimizer.h"

namespace heed {

class Learner {
 public:
  Learner(const Model& model, const LearnOptions& options);

  // One step down the gradients that are there. Nothing moves when their norm, which is given back, is not finite.
  float step(float rate);
  void zero_grad() const;

  NamedTensors tensors() const;                                                      // everything that it keeps, by name, as it stands
  void fill(const NamedTensors& tensors, int64_t steps, const std::string& source);  // the same back; source: for messages
  int64_t steps() const { return steps_; }

  const std::vector<Parameter>& parameters() const { return all_; }  // learned and not learned
  // The averages take the place of the weights, and the other way round. Nothing happens without averages.
  void swap_averages();

 private:
  const std::vector<Parameter>& all_;
  Tensors learned_, averages_;  // averages_: of what is learned, or empty
  std::variant<Sgd, Adam> optimizer_;
  float clip_, average_;
  int64_t steps_ = 0;
};

// While one of these lives, the model has its averaged weights.
class Averaged {
 public:
  explicit Averaged(Learner& learner) : learner_(learner) { learner_.swap_averages(); }
  ~Averaged() { learner_.swap_averages(); }
  Averaged(const Averaged&) = delete;
  Averaged& operator=(const Averaged&) = delete;

 private:
  Learner& learner_;
};

}  // namespace heed
