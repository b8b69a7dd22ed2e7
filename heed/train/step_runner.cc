#include "heed/train/step_runner.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "heed/core/complete_gradients.h"
#include "heed/core/copy.h"
#include "heed/core/set_gradient.h"
#include "heed/ops/ops.h"
#include "heed/train/diverged.h"
#include "heed/train/lockstep.h"

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

bool is_running_statistic(const Parameter& parameter) {
  return !parameter.options.learned && (parameter.name.ends_with("running_mean") || parameter.name.ends_with("running_var"));
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
  for (const Parameter& parameter : optimizer.parameters()) {
    if (!is_running_statistic(parameter)) continue;
    const Tensor& now = parameter.tensor;
    statistics_.push_back(now);
    statistics_before_.push_back(Tensor::empty(now.shape(), now.dtype(), now.device()));
  }
}

StepFigures StepRunner::run(std::span<const std::vector<int64_t>> batches, const std::function<Batch()>& next, float rate, bool stop,
                            bool save) {
  std::optional<Batch> first;
  if (enabled_) {
    first = next();
    if (std::optional<StepFigures> captured = run_captured(*first, rate)) {
      captured->stop = stop, captured->save = save;
      return *captured;
    }
  }
  remember_statistics();
  StepFigures figures{.norm = std::numeric_limits<float>::quiet_NaN(), .stop = stop, .save = save};
  const Rng before = rng_;
  Batch last;
  const auto next_part = [&] {
    last = first ? std::move(*first) : next();
    first.reset();
    return last;
  };
  if (sum_ && (!statistics_.empty() || task_.compares_samples))
    run_in_lockstep(batches, next_part, figures);
  else
    run_shards(batches, next_part, figures);
  if (sum_) rng_.skip(static_cast<uint64_t>(shards_.count) * kStreamsPerShard);
  if (sum_ && figures.problem) sum_->give_up();
  const std::vector<size_t> absent = exchange(figures);
  if (figures.problem) {
    if (sum_) sum_->cancel();
    restore_statistics();
    return figures;
  }
  if (sum_) sum_->finish(absent);
  for (const Tensor& each : statistics_) group_.broadcast(each, 0);  // a process whose shards are all empty has computed none
  figures.norm = optimizer_.step(rate);
  if (!std::isfinite(figures.norm)) {
    // A process whose shards are all empty has no batch; the first process, which prints the message, always has one.
    figures.problem = {not_finite("gradient norm", figures.norm), last.samples > 0 ? first_not_finite(task_, last, before) : ""};
    restore_statistics();
  }
  return figures;
}

void StepRunner::remember_statistics() {
  for (size_t i = 0; i < statistics_.size(); ++i) copy_into(statistics_[i], statistics_before_[i]);
}

void StepRunner::restore_statistics() {
  for (size_t i = 0; i < statistics_.size(); ++i) copy_into(statistics_before_[i], statistics_[i]);
}

Rng StepRunner::rng_of(int64_t shard) const {
  return Rng(rng_.seed(), rng_.next_stream() + static_cast<uint64_t>(shard) * kStreamsPerShard);
}

void StepRunner::run_shards(std::span<const std::vector<int64_t>> batches, const std::function<Batch()>& next, StepFigures& figures) {
  double samples = 0;
  for (const std::vector<int64_t>& batch : batches) samples += static_cast<double>(batch.size());
  if (sum_) sum_->begin_step();
  for (int64_t shard = shards_.begin; shard < shards_.end; ++shard) {
    if (sum_) sum_->begin_shard();
    if (!sum_) optimizer_.zero_grad();
    Rng own = rng_of(shard);
    size_t parts = 0;
    for (const std::vector<int64_t>& batch : batches) parts += shards_.of(batch, shard).empty() ? 0 : 1;
    for (const std::vector<int64_t>& batch : batches) {
      const auto count = static_cast<double>(shards_.of(batch, shard).size());
      if (count == 0) continue;
      const Batch part = next();
      const bool last = --parts == 0 && shard + 1 == shards_.end;
      if (!figures.problem) run_part(part, sum_ ? own : rng_, count / samples, last, figures);
    }
    if (sum_ && !figures.problem) sum_->add();
  }
}

// For batch norm, whose statistics are those of all shards, and for losses that compare the samples of all shards. The shards take turns
// (lockstep.h), and each has separate gradients.
void StepRunner::run_in_lockstep(std::span<const std::vector<int64_t>> batches, const std::function<Batch()>& next, StepFigures& figures) {
  double samples = 0;
  for (const std::vector<int64_t>& batch : batches) samples += static_cast<double>(batch.size());
  const auto count = static_cast<size_t>(shards_.end - shards_.begin);
  std::vector<StepFigures> of_shards(count);
  std::vector<Tensors> gradients(count, Tensors(sum_->learned().size()));
  std::vector<Rng> rngs;
  struct Part {
    size_t shard;
    Batch batch;
  };
  std::vector<std::vector<Part>> parts(batches.size());  // of each batch; a small one leaves shards empty
  for (size_t shard = 0; shard < count; ++shard) {
    const int64_t number = shards_.begin + static_cast<int64_t>(shard);
    rngs.push_back(rng_of(number));
    for (size_t b = 0; b < batches.size(); ++b)
      if (!shards_.of(batches[b], number).empty()) parts[b].push_back({shard, next()});
  }
  const auto enter = [&](size_t shard) {
    for (size_t i = 0; i < gradients[shard].size(); ++i) set_gradient(sum_->learned()[i], std::move(gradients[shard][i]));
  };
  const auto leave = [&](size_t shard) {
    for (size_t i = 0; i < gradients[shard].size(); ++i) {
      gradients[shard][i] = sum_->learned()[i].grad();
      sum_->learned()[i].zero_grad();
    }
  };
  for (const std::vector<Part>& all : parts) {
    Lockstep lockstep(
        group_, [&](size_t i) { enter(all[i].shard); }, [&](size_t i) { leave(all[i].shard); });
    lockstep.run(all.size(), [&](size_t i, BatchShards& shards) {
      StepFigures& own = of_shards[all[i].shard];
      if (own.problem) return;
      const double share = static_cast<double>(all[i].batch.samples) / samples;
      run_part(all[i].batch, rngs[all[i].shard], share, false, own, &shards);
    });
  }
  sum_->begin_step();
  for (size_t shard = 0; shard < count; ++shard) {
    StepFigures& own = of_shards[shard];
    figures.parts.insert(figures.parts.end(), own.parts.begin(), own.parts.end());
    if (own.problem && !figures.problem) figures.problem = own.problem;
    sum_->begin_shard();
    enter(shard);
    if (!figures.problem) sum_->add();
  }
}

void StepRunner::run_part(const Batch& batch, Rng& rng, double share, bool last, StepFigures& figures, BatchShards* shards) {
  const Rng before = rng;
  std::optional<ShardScope> scope(shards);
  const StepOutput output = task_.forward(batch, {.mode = training_with(rng), .precision = precision_of(options_)});
  PartFigures part{.samples = batch.samples, .loss = output.loss.item(), .multiply_adds = output.multiply_adds};
  if (!std::isfinite(part.loss)) {
    scope.reset();
    figures.problem = {not_finite("loss", part.loss), first_not_finite(task_, batch, before)};
    return;
  }
  const auto factor = static_cast<float>(share);
  const Tensor loss = factor == 1 ? output.loss : scale(output.loss, factor);
  if (last && sum_)
    backward(loss, sum_->learned(), [&](size_t i) { sum_->complete(i); });
  else
    backward(loss);
  for (const auto& [name, metric] : output.metrics) part.metrics[name] = metric.value();
  figures.parts.push_back(std::move(part));
}

// Every process gets the figures of all of them.
std::vector<size_t> StepRunner::exchange(StepFigures& figures) {
  if (!sum_) return {};
  const std::vector<size_t> own = sum_->absent();
  std::optional<std::vector<size_t>> absent;
  StepFigures all{.norm = figures.norm};
  const std::vector<std::string> texts = group_.all_gather(figures_json(figures, own).dump());
  for (const std::string& text : texts) {
    const Json theirs = Json::parse(text);
    if (&text == &texts.front()) all.save = theirs.at("save").get<bool>();  // the first process writes checkpoints
    for (const Json& part : theirs.at("parts")) all.parts.push_back(part_from(part));
    if (theirs.contains("problem") && !all.problem) all.problem = {theirs["problem"][0], theirs["problem"][1]};
    all.stop = all.stop || theirs.at("stop").get<bool>();
    if (theirs.at("parts").empty()) continue;  // all its shards are empty
    const auto numbers = theirs.at("absent").get<std::vector<size_t>>();
    if (!absent) absent = numbers;
    std::erase_if(*absent, [&](size_t i) { return std::find(numbers.begin(), numbers.end(), i) == numbers.end(); });
  }
  figures = std::move(all);
  return absent.value_or(std::vector<size_t>());
}

Tensors StepRunner::captured_work() {
  remember_statistics();
  optimizer_.zero_grad();
  const StepOutput output = task_.forward(batch_, {.mode = training_with(rng_), .precision = precision_of(options_)});
  backward(output.loss);
  Tensors figures{output.loss.detach(), optimizer_.apply(output.loss)};
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
    if (batch.inputs.size() != batch_.inputs.size()) return std::nullopt;
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
    enabled_ = false;  // the task reads results on the host, which a graph cannot contain
    return std::nullopt;
  }
  optimizer_.finish(figures[1]);
  PartFigures part{.samples = batch.samples, .loss = figures[0], .multiply_adds = multiply_adds_};
  for (size_t i = 0; i < metrics_.size(); ++i) part.metrics[metrics_[i].first] = {static_cast<double>(figures[i + 2]), metrics_[i].second};
  StepFigures out{.parts = {std::move(part)}, .norm = figures[1]};
  if (!std::isfinite(figures[0]) || !std::isfinite(figures[1])) {
    out.problem = {std::isfinite(figures[0]) ? not_finite("gradient norm", figures[1]) : not_finite("loss", figures[0]),
                   first_not_finite(task_, batch, before)};
    restore_statistics();
  }
  return out;
}

}  // namespace heed
