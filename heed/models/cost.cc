#include "heed/models/cost.h"

#include <algorithm>

#include "heed/core/autograd.h"
#include "heed/core/dry_run.h"
#include "heed/core/module_work.h"
#include "heed/core/with_grad.h"

namespace heed {
namespace {

constexpr int64_t kFloat = 4;  // bytes: caches are f32
constexpr int64_t kUsualTokens = 128;

// Labels for tokens 1 ... labels of every sequence. -> (B, N)
Tensor masked_labels(int64_t B, int64_t N, int64_t labels) {
  std::vector<int64_t> out;
  for (int64_t b = 0; b < B; ++b)
    for (int64_t i = 0; i < N; ++i) out.push_back(i >= 1 && i <= labels ? 0 : -100);
  return Tensor::from(out, {B, N}, kCpu);
}

Tensor class_labels(const Config& config, int64_t B) {
  const std::string problem = config.string("problem_type", "");
  const bool numbers = problem == "regression" || problem == "multi_label_classification" || config.labels() == 1;
  return Tensor::zeros(numbers ? Shape{B, config.labels()} : Shape{B}, numbers ? DType::f32 : DType::i64, kCpu);
}

Tensor example_labels(const Model& model, const InputSize& size) {
  switch (model.traits().task) {
    case ModelTask::masked_lm:
    case ModelTask::pretraining: return masked_labels(size.batch, size.tokens, size.labels);
    case ModelTask::causal_lm:
    case ModelTask::token_classification: return Tensor::zeros({size.batch, size.tokens}, DType::i64, kCpu);
    case ModelTask::image_captioning:
    case ModelTask::seq2seq_lm: return Tensor::zeros({size.batch, size.target}, DType::i64, kCpu);
    case ModelTask::next_sentence: return Tensor::zeros({size.batch}, DType::i64, kCpu);
    default: return class_labels(Config(model.config(), "config.json"), size.batch);
  }
}

// Weight and bias form a module; every other parameter is a separate part.
std::vector<ModelPart> parts_of(const Params& params) {
  std::vector<ModelPart> parts;
  for (const Parameter& parameter : params.all()) {
    const size_t dot = parameter.name.rfind('.');
    const std::string last = parameter.name.substr(dot + 1), module = parameter.name.substr(0, dot == std::string::npos ? 0 : dot);
    const bool joins = last == "bias" && !parts.empty() && parts.back().name == module;
    const std::string& name = last == "weight" || joins ? module : parameter.name;
    if (parts.empty() || parts.back().name != name) parts.push_back({.name = name});
    ModelPart& part = parts.back();
    part.parameters.push_back(parameter);
    part.count += parameter.tensor.count();
    part.bytes += checked_multiply(parameter.tensor.count(), static_cast<int64_t>(bytes_of(parameter.stored)));
  }
  return parts;
}

// The part of that name. A missing one, such as "attention.(attend)", which has no parameters, is inserted after the parts of "attention".
ModelPart& part_named(std::vector<ModelPart>& parts, const std::string& name) {
  const auto found = std::find_if(parts.begin(), parts.end(), [&](const ModelPart& each) { return each.name == name; });
  if (found != parts.end()) return *found;
  const std::string above = name.substr(0, name.rfind('.') + 1);
  const auto last =
      std::find_if(parts.rbegin(), parts.rend(), [&](const ModelPart& each) { return !above.empty() && each.name.starts_with(above); });
  return *parts.insert(last == parts.rend() ? parts.end() : last.base(), {.name = name});
}

void add_work(ModelCost& out, const Model& model, Purpose purpose) {
  ModuleCount count;
  run_example(model, out.size, purpose);
  for (const auto& [name, work] : count.modules()) {
    ModelPart& part = part_named(out.parts, name.empty() ? "(other)" : name);
    if (purpose == Purpose::inference) {
      part.multiply_adds = work.multiply_adds;
      part.activation_bytes = work.output_bytes;
      part.moved_bytes = work.moved_bytes;
    } else {
      part.training_multiply_adds = work.multiply_adds;
      part.training_moved_bytes = 3 * work.moved_bytes;  // forward, and the gradients of inputs and of weights
    }
  }
}

// The key-value cache, and the last token of a text.
void add_decoding(ModelCost& out, const Model& model) {
  const NoGrad no_grad;
  InputSize size = out.size;
  DecodeState state = model.decoder().start(example_inputs(model, size, false));
  const int64_t length = model.decoder().encoder ? size.target : size.tokens;
  const auto step = [&](int64_t tokens) { model.decoder().step(state, Tensor::zeros({size.batch, tokens}, DType::i64, kCpu)); };
  if (length > 1) step(length - 1);
  const WorkCount last;
  step(1);
  out.step_multiply_adds = last.multiply_adds();
  const auto bytes = [&](const Tensor& x, int64_t tokens) { return kFloat * x.count() / (size.batch * tokens); };
  for (const KeyValueCache& layer : state.past) out.cache_bytes += bytes(layer.keys(), length) + bytes(layer.values(), length);
  for (const auto& [keys, values] : state.memory) {
    const int64_t read = model.family().pixels ? keys.size(2) : size.tokens;  // patches: (B, H, M, D)
    out.memory_bytes += bytes(keys, read) + bytes(values, read);
  }
}

bool can_decode(const Model& model) {
  const std::vector<Chosen> positions = chosen_in(Config(model.config(), "config.json").below("heed"), "positions");
  return model.generates() &&
         std::none_of(positions.begin(), positions.end(), [](const Chosen& each) { return each.choice->needs_all_tokens; });
}

}  // namespace

void ModelPart::add(const ModelPart& other) {
  using Number = int64_t ModelPart::*;
  for (Number number : {&ModelPart::count, &ModelPart::bytes, &ModelPart::multiply_adds, &ModelPart::activation_bytes,
                        &ModelPart::moved_bytes, &ModelPart::training_multiply_adds, &ModelPart::training_moved_bytes})
    check(!__builtin_add_overflow(this->*number, other.*number, &(this->*number)), "cost: the model is too large, the counts overflow");
}

InputSize resolve_input_size(const Model& model, InputSize size) {
  check<UsageError>(size.batch >= 1 && size.tokens >= 0 && size.target >= 0 && size.labels >= -1, "cost: a batch of ", size.batch, " and ",
                    size.tokens, " tokens, expected 1 or more");
  const Family& family = model.family();
  const int64_t positions = max_tokens(model);
  if (family.pixels && family.encoder_decoder) {  // a text about an image
    if (size.target == 0) size.target = size.tokens > 0 ? size.tokens : std::min(kUsualTokens, positions);
    check<UsageError>(size.target <= positions, "cost: ", size.target, " tokens, the model has ", positions, " positions");
    size.tokens = size.target;
    return size;
  }
  if (!family.tokens) {
    const int64_t tokens = family.positions ? family.positions(Config(model.config(), "config.json")) : 0;
    check<UsageError>(size.tokens == 0 || size.tokens == tokens, "cost: ", size.tokens,
                      " tokens, expected none: the image size is the model's, ", image_shape(model)[1], " x ", image_shape(model)[2]);
    size.tokens = tokens;
    return size;
  }
  if (size.tokens == 0) size.tokens = std::min(kUsualTokens, positions);
  if (family.encoder_decoder && size.target == 0) size.target = size.tokens;
  const int64_t longest = std::max(size.tokens, size.target);
  check<UsageError>(longest <= positions, "cost: ", longest, " tokens, the model has ", positions, " positions");
  if (size.labels == 0) size.labels = std::max<int64_t>(1, size.tokens * 15 / 100);
  size.labels = std::min(size.labels, std::max<int64_t>(size.tokens - 1, 1));
  return size;
}

bool has_loss(const Model& model) { return model.takes("labels") || model.takes("start_positions") || model.takes("return_loss"); }

TensorMap example_inputs(const Model& model, const InputSize& size, bool labels) {
  TensorMap out;
  const auto zeros = [&](int64_t tokens) { return Tensor::zeros({size.batch, tokens}, DType::i64, kCpu); };
  if (model.family().pixels) {
    const std::array<int64_t, 3> image = image_shape(model);
    out["pixel_values"] = Tensor::zeros({size.batch, image[0], image[1], image[2]}, DType::f32, kCpu);
  }
  if (model.family().tokens) out["input_ids"] = zeros(size.tokens);
  if (model.family().encoder_decoder && !labels && model.takes("decoder_input_ids")) out["decoder_input_ids"] = zeros(size.target);
  if (labels && size.labels >= 0 && model.takes("labels")) out["labels"] = example_labels(model, size);
  for (const char* position : {"start_positions", "end_positions"})
    if (labels && model.takes(position)) out[position] = Tensor::zeros({size.batch}, DType::i64, kCpu);
  if (labels && model.takes("next_sentence_label")) out["next_sentence_label"] = Tensor::zeros({size.batch}, DType::i64, kCpu);
  return out;
}

void run_example(const Model& model, const InputSize& size, Purpose purpose) {
  const TensorMap inputs = example_inputs(model, size, purpose == Purpose::training);
  if (purpose == Purpose::inference) {
    const NoGrad no_grad;
    model(inputs);
    return;
  }
  const WithGrad with_grad;  // also if the caller records nothing
  Rng rng(1);
  backward(model(inputs, {.mode = training_with(rng), .loss_only = true}).at("loss"));
}

ModelCost cost_of(const Model& model, InputSize size) {
  return within_limits([&] {
    ModelCost out{.size = resolve_input_size(model, size), .parts = parts_of(model.params()), .learned = model.params().count()};
    const DryRun dry;
    const Model copy = rebuild(model, Weights::trainable);
    add_work(out, copy, Purpose::inference);
    if (has_loss(copy)) add_work(out, copy, Purpose::training);
    if (can_decode(copy)) add_decoding(out, copy);
    for (const ModelPart& part : out.parts) out.total.add(part);
    return out;
  });
}

}  // namespace heed
