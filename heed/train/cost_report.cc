#include "heed/train/cost_report.h"

#include <chrono>

#include "heed/core/peak.h"
#include "heed/io/paths.h"
#include "heed/ops/ops.h"

namespace heed {
namespace {

constexpr int64_t kFloat = 4;

// Measured memory read bandwidth, bytes per second.
double read_bandwidth() {
  const Tensor large = Tensor::ones({int64_t{32} << 20}, kCpu);
  double best = 0;
  for (int i = 0; i < 5; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    sum(large);
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    best = std::max(best, static_cast<double>(kFloat * large.count()) / seconds);
  }
  return best;
}

Json call_json(const CallCost& call, const std::optional<MeasuredRun>& run) {
  const auto memory = [](const MemoryCost& of) {
    return Json{{"weights", of.weights}, {"activations", of.activations}, {"gradients", of.gradients}};
  };
  Json out{{"multiply_adds", call.multiply_adds},
           {"moved_bytes", call.moved_bytes},
           {"memory_bytes", call.memory_bytes()},
           {"memory", memory(call.memory)}};
  out["memory"]["optimizer"] = call.state_bytes;
  if (call.measured)
    out["measured"] = {{"multiply_adds", call.measured->multiply_adds},
                       {"memory", memory(call.measured->memory)},
                       {"seconds", call.measured->seconds},
                       {"operations_per_second", call.operations() / call.measured->seconds},
                       {"share_of_peak", call.operations() / call.measured->seconds / run->peak_flops},
                       {"share_of_roofline", call.roofline(*run) / call.measured->seconds}};
  return out;
}

}  // namespace

int64_t optimizer_state_values(const std::string& optimizer) { return optimizer == "none" ? 0 : optimizer == "sgd" ? 1 : 2; }

CallCost inference_call(const CostReport& report) {
  return {.multiply_adds = report.cost.total.multiply_adds,
          .moved_bytes = report.cost.total.moved_bytes,
          .memory = report.inference,
          .measured = report.measured ? &report.measured->inference : nullptr};
}

// A training step. The optimizer reads weights, gradients and its state, and writes weights and state.
CallCost training_call(const CostReport& report) {
  const int64_t state = optimizer_state_values(report.optimizer), learned = report.cost.learned;
  const bool measured = report.measured && report.measured->training;
  return {.multiply_adds = report.cost.total.training_multiply_adds,
          .moved_bytes = report.cost.total.training_moved_bytes + (report.optimizer == "none" ? 0 : kFloat * learned * (3 + 2 * state)),
          .state_bytes = kFloat * learned * state,
          .memory = report.training.value_or(MemoryCost()),
          .measured = measured ? &*report.measured->training : nullptr};
}

void declare(Settings& settings, CostSettings& of, bool preset) {
  const Allowed size{.least = 0, .most = 1e9};
  settings.heading("The call");
  settings.add("batch", of.size.batch, "batch size", {.least = 1, .most = 1e9});
  settings.add("length", of.size.tokens, "tokens per text, or per source of a translation; 0: 128, or the number of positions if smaller",
               size);
  settings.add("target", of.size.target, "tokens of a translation; 0: the length of its source", size);
  settings.add("labels", of.size.labels, "masked tokens per text in training; 0: 15%", size);
  settings.add("image", of.image, "side of images in pixels; 0: as in the model's config", {.least = 0, .most = 65536});
  settings.add("optimizer", of.optimizer, "optimizer whose state counts as training memory", {.choices = {"adamw", "adam", "sgd", "none"}});
  settings.heading("Measuring");
  settings.add("measure", of.measure, "run the model and print time, arithmetic and memory next to the prediction");
  settings.add("rounds", of.rounds, "timed repetitions", {.least = 1, .most = 1000});
  if (preset)
    declare(settings, of.choice);
  else
    settings.add_open("model.", of.model, "keys of config.json: model.num_hidden_layers=6", {});
}

Model shapes_only_model(const std::string& name, const Json& config, bool with_weights) {
  const ModelOptions options{.names = {.shapes_only = true}};
  const Path folder = name;
  const bool weights = path_exists(folder / "model.safetensors") || path_exists(folder / "model.safetensors.index.json");
  return with_weights && weights ? load(folder, options) : make_model(config, options);
}

CostReport cost_report(const std::string& name, Json config, const CostSettings& of) {
  const bool as_it_is = of.model.empty() && of.image == 0;
  if (of.model.is_object()) config.merge_patch(of.model);
  if (of.image > 0) config["image_size"] = of.image;
  const Model model = shapes_only_model(name, config, as_it_is);
  check<UsageError>(of.image == 0 || input_kind(model) == InputKind::image, "cost: image=", of.image, ", but ", model.architecture(),
                    " reads no images");
  CostReport out{.name = Path(name).filename().empty() ? name : Path(name).filename().string(),
                 .architecture = model.architecture(),
                 .cost = cost_of(model, of.size),
                 .optimizer = of.optimizer};
  if (const auto found = config.find("vocab_size"); found != config.end() && found->is_number_integer()) out.vocabulary = *found;
  const InputSize& size = out.cost.size;
  out.inference = predicted_memory(model, size, Purpose::inference);
  if (has_loss(model)) out.training = predicted_memory(model, size, Purpose::training);
  if (!of.measure) return out;
  const int rounds = static_cast<int>(of.rounds);
  out.measured = {.peak_flops = peak_flops(),
                  .bytes_per_second = read_bandwidth(),
                  .inference = measured_cost(model, size, Purpose::inference, rounds)};
  if (out.training) out.measured->training = measured_cost(model, size, Purpose::training, rounds);
  return out;
}

Json cost_json(const CostReport& report) {
  const ModelCost& cost = report.cost;
  Json modules = Json::array();
  for (const ModelPart& part : cost.parts)
    modules.push_back({{"name", part.name},
                       {"parameters", part.count},
                       {"bytes", part.bytes},
                       {"multiply_adds", part.multiply_adds},
                       {"moved_bytes", part.moved_bytes},
                       {"activation_bytes", part.activation_bytes},
                       {"training_multiply_adds", part.training_multiply_adds},
                       {"training_moved_bytes", part.training_moved_bytes}});
  Json out{{"model", report.name},
           {"architecture", report.architecture},
           {"parameters", cost.total.count},
           {"learned", cost.learned},
           {"size", {{"batch", cost.size.batch}, {"tokens", cost.size.tokens}, {"target", cost.size.target}, {"labels", cost.size.labels}}},
           {"inference", call_json(inference_call(report), report.measured)},
           {"cache_bytes_per_token", cost.cache_bytes},
           {"step_multiply_adds", cost.step_multiply_adds},
           {"memory_bytes_per_source_token", cost.memory_bytes},
           {"modules", std::move(modules)}};
  if (report.training) {
    out["training"] = call_json(training_call(report), report.measured);
    out["training"]["optimizer"] = report.optimizer;
  }
  if (report.measured)
    out["machine"] = {{"peak_operations_per_second", report.measured->peak_flops},
                      {"read_bytes_per_second", report.measured->bytes_per_second}};
  return out;
}

}  // namespace heed
