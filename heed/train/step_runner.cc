#include "heed/train/step_runner.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "heed/core/copy.h"
#include "heed/ops/ops.h"
#include "heed/train/diverged.h"

namespace heed {

namespace {

// Random streams of a shard in a step: more than a forward pass draws.
constexpr uint64_t kStreamsPerShard = 1 << 16;

Json figures_json(const StepFigures& figures, const std::vector<size_t>& absent) {
  Json parts = Json::array();
  for (const PartFigures& part : figures.parts) {
    Json metrics = Json::object();
    for (const auto& [name, mean] : part.metrics) metrics[name] = {mean.sum, mean.count};
    parts.push_back({part.samples, part.loss, part.multiply_adds, metrics});
  }
  Json out{{"parts", parts}, {"absent", absent}, {"stop", figures.stop}, {"save", figures.save}};
  if (figures.problem) out["problem"] = {figures.problem->found, figures.problem->where};
  return out;
}

PartFigures part_from(const Json& json) {
  PartFigures out{.samples = json.at(0).get<int64_t>(), .loss = json.at(1).get<float>(), .multiply_adds = json.at(2).get<double>()};
  for (const auto& [name, mean] : json.at(3).items()) out.metrics[name] = {mean.at(0).get<double>(), mean.at(1).get<double>()};
  return out;
}

std::string not_finite(const char* what, float value) {
  std::ostringstream text;
  text << "the " << what << " is " << value;
  return text.str();
}

}  // namespace

StepRunner::StepRunner(const Task& task, OptimizerStep& optimizer, const TrainOptions& options, Rng& rng, Group& group)
    : task_(task),
      optimizer_(optimizer),
      options_(options),
      rng_(rng),
      group_(group),
      shards_(shards_of(options, group)),
      enabled_(options.graph == "auto" && options.accumulate == 1 && !shards_.is_split() &&
               cuda::Graph::is_supported(task.model->device())) {
  if (shards_.is_split()) sum_.emplace(group, shards_, optimizer.parameters());
}

StepFigures StepRunner::run(std::span<const std::vector<int64_t>> batches, const std::function<Batch()>& next, float rate, bool stop,
                            bool save) {
  std::optional<Batch> first;
  if (enabled_) {
    first = next();
    if (const std::optional<StepFigures> captured = run_captured(*first, rate)) return *captured;
  }
  StepFigures figures{.norm = std::numeric_limits<float>::quiet_NaN(), .stop = stop, .save = save};
  const Rng before = rng_;
  Batch last;
  run_shards(
      batches,
      [&] {
        last = first ? std::move(*first) : next();
        first.reset();
        return last;
      },
      figures);
  const std::vector<size_t> absent = exchange(figures);
  if (figures.problem) {
    if (sum_) sum_->cancel();
    return figures;
  }
  if (sum_) sum_->finish(absent);
  figures.norm = optimizer_.step(rate);
  if (!std::isfinite(figures.norm))
    figures.problem = {not_finite("gradient norm", figures.norm), first_not_finite(*task_.model, last, before)};
  return figures;
}

void StepRunner::run_shards(std::span<const std::vector<int64_t>> batches, const std::function<Batch()>& next, StepFigures& figures) {
  double samples = 0;
  for (const std::vector<int64_t>& batch : batches) samples += static_cast<double>(batch.size());
  if (sum_) sum_->begin_step();
  for (int64_t shard = shards_.begin; shard < shards_.end; ++shard) {
    if (sum_) sum_->begin_shard();
    if (!sum_) optimizer_.zero_grad();
    Rng own(rng_.seed(), rng_.next_stream() + static_cast<uint64_t>(shard) * kStreamsPerShard);
    double share = 0;
    for (const std::vector<int64_t>& batch : batches) {
      const auto count = static_cast<double>(shards_.of(batch, shard).size());
      if (count == 0) continue;
      const Batch part = next();
      share += count / samples;
      if (!figures.problem) run_part(part, sum_ ? own : rng_, count / samples, figures);
    }
    if (sum_ && !figures.problem) sum_->add(share);
  }
  if (sum_) rng_.skip(static_cast<uint64_t>(shards_.count) * kStreamsPerShard);
}

// share: fraction of the step's samples
void StepRunner::run_part(const Batch& batch, Rng& rng, double share, StepFigures& figures) {
  const Rng before = rng;
  const StepOutput output = task_.forward(batch, {.mode = training_with(rng), .precision = precision_of(options_)});
  PartFigures part{.samples = batch.samples, .loss = output.loss.item(), .multiply_adds = output.multiply_adds};
  if (!std::isfinite(part.loss)) {
    figures.problem = {not_finite("loss", part.loss), first_not_finite(*task_.model, batch, before)};
    return;
  }
  const auto factor = static_cast<float>(share);
  backward(factor == 1 ? output.loss : scale(output.loss, factor));
  for (const auto& [name, metric] : output.metrics) part.metrics[name] = metric.value();
  figures.parts.push_back(std::move(part));
}

// Every process gets the figures of all of them.
std::vector<size_t> StepRunner::exchange(StepFigures& figures) {
  if (!sum_) return {};
  const std::vector<size_t> own = sum_->absent();
  std::optional<std::vector<size_t>> absent;
  StepFigures all{.norm = figures.norm};
  for (const std::string& text : group_.all_gather(figures_json(figures, own).dump())) {
    const Json theirs = Json::parse(text);
    for (const Json& part : theirs.at("parts")) all.parts.push_back(part_from(part));
    if (theirs.contains("problem") && !all.problem) all.problem = {theirs["problem"][0], theirs["problem"][1]};
    all.stop = all.stop || theirs.at("stop").get<bool>();
    if (!absent) all.save = theirs.at("save").get<bool>();
    if (theirs.at("parts").empty()) continue;  // all its shards are empty
    const auto numbers = theirs.at("absent").get<std::vector<size_t>>();
    if (!absent) absent = numbers;
    std::erase_if(*absent, [&](size_t i) { return std::find(numbers.begin(), numbers.end(), i) == numbers.end(); });
  }
  figures = std::move(all);
  return absent.value_or(std::vector<size_t>());
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
  const Rng before = rng_;
  std::vector<float> figures;
  try {
    figures = step_->run()[0].to_vector<float>();
  } catch (const Error&) {
    if (!step_->failed_to_record()) throw;
    enabled_ = false;  // some task reads on the host
    return std::nullopt;
  }
  optimizer_.finish(figures[1]);
  PartFigures part{.samples = batch.samples, .loss = figures[0], .multiply_adds = multiply_adds_};
  for (size_t i = 0; i < metrics_.size(); ++i) part.metrics[metrics_[i].first] = {static_cast<double>(figures[i + 2]), metrics_[i].second};
  StepFigures out{.parts = {std::move(part)}, .norm = figures[1]};
  if (!std::isfinite(figures[0]) || !std::isfinite(figures[1]))
    out.problem = {std::isfinite(figures[0]) ? not_finite("gradient norm", figures[1]) : not_finite("loss", figures[0]),
                   first_not_finite(*task_.model, batch, before)};
  return out;
}

}  // namespace heed
