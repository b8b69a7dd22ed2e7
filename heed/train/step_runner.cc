#include "heed/train/step_runner.h"

#include <cmath>
#include <limits>

#include "heed/core/copy.h"
#include "heed/ops/ops.h"

namespace heed {

StepRunner::StepRunner(const Task& task, OptimizerStep& optimizer, const TrainOptions& options, Rng& rng)
    : task_(task),
      optimizer_(optimizer),
      options_(options),
      rng_(rng),
      enabled_(options.graph == "auto" && options.accumulate == 1 && cuda::Graph::is_supported(task.model->device())) {}

StepFigures StepRunner::run(const Batch& batch, float rate, float share, bool last_batch) {
  if (const std::optional<StepFigures> captured = run_captured(batch, rate)) return *captured;
  if (fresh_) optimizer_.zero_grad();
  fresh_ = last_batch;
  const StepOutput output = task_.forward(batch, {.mode = training_with(rng_), .precision = precision_of(options_)});
  StepFigures figures{.loss = output.loss.item(), .norm = std::numeric_limits<float>::quiet_NaN(), .multiply_adds = output.multiply_adds};
  if (!std::isfinite(figures.loss)) {
    fresh_ = true;  // the step is over
    return figures;
  }
  backward(share == 1 ? output.loss : scale(output.loss, share));
  if (last_batch) figures.norm = optimizer_.step(rate);
  for (const auto& [name, metric] : output.metrics) figures.metrics[name] = metric.value();
  return figures;
}

Tensors StepRunner::captured_work() {
  optimizer_.zero_grad();
  const StepOutput output = task_.forward(batch_, {.mode = training_with(rng_), .precision = precision_of(options_)});
  backward(output.loss);
  Tensors figures{output.loss.detach(), optimizer_.apply()};
  metrics_.clear();
  multiply_adds_ = output.multiply_adds;
  for (const auto& [name, metric] : output.metrics) {
    metrics_.emplace_back(name, metric.count);
    figures.push_back(metric.sum);
  }
  for (Tensor& figure : figures) figure = reshape(figure, {1});
  return {concat(figures, 0)};
}

std::optional<StepFigures> StepRunner::run_captured(const Batch& batch, float rate) {
  if (!enabled_ || !batch.same_work) return std::nullopt;
  if (!step_) {
    batch_ = batch;
    for (auto& [name, tensor] : batch_.inputs) tensor = tensor.to(task_.model->device());
    step_.emplace(task_.model->device(), &rng_, [this] { return captured_work(); });
  } else {
    for (const auto& [name, tensor] : batch.inputs) {
      const auto own = batch_.inputs.find(name);
      if (own == batch_.inputs.end() || own->second.shape() != tensor.shape() || own->second.dtype() != tensor.dtype()) return std::nullopt;
    }
    for (const auto& [name, tensor] : batch.inputs) copy_into(tensor, batch_.inputs.at(name));
  }
  optimizer_.begin(rate);
  std::vector<float> figures;
  try {
    figures = step_->run()[0].to_vector<float>();
  } catch (const Error&) {
    if (!step_->failed_to_record()) throw;
    enabled_ = false;  // some task reads on the host
    return std::nullopt;
  }
  optimizer_.finish(figures[1]);
  StepFigures out{.loss = figures[0], .norm = figures[1], .multiply_adds = multiply_adds_};
  for (size_t i = 0; i < metrics_.size(); ++i) out.metrics[metrics_[i].first] = {static_cast<double>(figures[i + 2]), metrics_[i].second};
  return out;
}

}  // namespace heed
