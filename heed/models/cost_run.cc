#include "heed/models/cost_run.h"

#include <algorithm>
#include <chrono>

#include "heed/core/dry_run.h"
#include "heed/core/work_count.h"
#include "heed/models/config.h"

namespace heed {
namespace {

// Labels for tokens 1 ... labels of every sequence. -> (B, N)
Tensor masked_labels(int64_t B, int64_t N, int64_t labels) {
  std::vector<int64_t> out;
  for (int64_t b = 0; b < B; ++b)
    for (int64_t i = 0; i < N; ++i) out.push_back(i >= 1 && i <= labels ? 0 : -100);
  return Tensor::from(out, {B, N}, kCpu);
}

Tensor example_labels(const Model& model, const InputSize& size) {
  const std::string& name = model.architecture();
  if (name == "BertForMaskedLM" || name == "BertForPreTraining") return masked_labels(size.batch, size.tokens, size.labels);
  if (name == "MarianMTModel") return Tensor::zeros({size.batch, size.target}, DType::i64, kCpu);
  const bool tokens = name.find("LM") != std::string::npos || name.find("TokenClassification") != std::string::npos;
  if (tokens) return Tensor::zeros({size.batch, size.tokens}, DType::i64, kCpu);
  const Config config(model.config(), "config.json");
  const std::string problem = config.string("problem_type", "");
  if (problem == "multi_label_classification") return Tensor::zeros({size.batch, config.labels()}, DType::f32, kCpu);
  const bool numbers = problem == "regression" || config.labels() == 1;
  return Tensor::zeros(numbers ? Shape{size.batch, config.labels()} : Shape{size.batch}, numbers ? DType::f32 : DType::i64, kCpu);
}

Model build(const CostedModel& model, Purpose purpose) {
  return make_model(model.config,
                    {.weights = purpose == Purpose::training ? Weights::trainable : Weights::packed, .architecture = model.architecture});
}

// One call. Training leaves gradients in the parameters.
void call(const Model& model, const TensorMap& inputs, Purpose purpose) {
  if (purpose == Purpose::inference) {
    const NoGrad no_grad;
    model(inputs);
    return;
  }
  Rng rng(1);
  const Tensor loss = model(inputs, {.mode = training_with(rng), .loss_only = true}).at("loss");
  backward(loss);
}

// in_use, peak, reset: functions of the memory counter
template <class InUse, class Peak, class Reset>
MemoryCost memory_of_call(const Model& model, int64_t before, const InputSize& size, Purpose purpose, const InUse& in_use, const Peak& peak,
                          const Reset& reset) {
  MemoryCost out{.weights = in_use() - before};
  reset();
  {
    const TensorMap inputs = example_inputs(model, size, purpose == Purpose::training);
    call(model, inputs, purpose);
  }
  out.activations = peak() - before - out.weights;
  out.gradients = in_use() - before - out.weights;
  return out;
}

}  // namespace

bool has_loss(const Model& model) { return model.takes("labels"); }

TensorMap example_inputs(const Model& model, const InputSize& size, bool labels) {
  TensorMap out;
  if (input_kind(model) == InputKind::image) {
    const Config config(model.config(), "config.json");
    const std::array<int64_t, 2> image = config.sides("image_size", 224);
    out["pixel_values"] = Tensor::zeros({size.batch, config.size("num_channels", 3), image[0], image[1]}, DType::f32, kCpu);
  } else {
    out["input_ids"] = Tensor::zeros({size.batch, size.tokens}, DType::i64, kCpu);
  }
  if (model.takes("decoder_input_ids") && !labels) out["decoder_input_ids"] = Tensor::zeros({size.batch, size.target}, DType::i64, kCpu);
  if (labels) out["labels"] = example_labels(model, size);
  if (labels && model.takes("next_sentence_label")) out["next_sentence_label"] = Tensor::zeros({size.batch}, DType::i64, kCpu);
  return out;
}

MemoryCost predicted_memory(const CostedModel& costed, const InputSize& size, Purpose purpose) {
  return counted([&] {
    DryRun dry;
    const Model model = build(costed, purpose);
    return memory_of_call(
        model, 0, size, purpose, [&] { return dry.in_use(); }, [&] { return dry.peak(); }, [&] { dry.reset_peak(); });
  });
}

MeasuredCost measured_cost(const CostedModel& costed, const InputSize& size, Purpose purpose, int rounds) {
  const int64_t before = memory_use(kCpu).in_use;
  const Model model = build(costed, purpose);
  MeasuredCost out{.memory = memory_of_call(
                       model, before, size, purpose, [] { return memory_use(kCpu).in_use; }, [] { return memory_use(kCpu).peak; },
                       [] { reset_peak_memory(kCpu); })};
  const TensorMap inputs = example_inputs(model, size, purpose == Purpose::training);
  {
    const WorkCount count;
    call(model, inputs, purpose);
    out.multiply_adds = count.multiply_adds();
  }
  std::vector<double> seconds;
  for (int i = 0; i < rounds; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    call(model, inputs, purpose);
    seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }
  std::sort(seconds.begin(), seconds.end());
  out.seconds = seconds.empty() ? 0 : seconds[seconds.size() / 2];
  return out;
}

}  // namespace heed
