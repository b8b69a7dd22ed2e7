// Whole models with random weights: against PyTorch, against ONNX Runtime, and int8 against its f32.
#include <memory>

#include "bench/bench.h"
#include "heed/core/random.h"
#include "heed/models/generate.h"
#include "heed/ops/ops.h"

namespace heed::bench {
namespace {

constexpr double kEncoderWeights = 12 * 12 * 768.0 * 768.0;  // 12 layers, each 4 D^2 in attention and 8 D^2 in the feed-forward part

// Two operations per weight and token, and four per pair of tokens, layer and channel.
double model_flops(int64_t items, int64_t tokens) {
  const auto N = static_cast<double>(tokens);
  return static_cast<double>(items) * (2 * kEncoderWeights * N + 12 * 4 * N * N * 768);
}

std::shared_ptr<const Model> model_of(const Json& config, Weights weights) {
  return std::make_shared<const Model>(make_model(config, {.weights = weights}));
}

Call vit_call(Weights weights, int64_t images) {
  Rng rng(1);
  return [model = model_of({{"architectures", {"ViTForImageClassification"}}, {"model_type", "vit"}, {"num_labels", 1000}}, weights),
          x = random_normal({images, 3, 224, 224}, 0, 1, rng, kCpu)] {
    const NoGrad quiet;
    (*model)({{"pixel_values", x}});
  };
}

Call bert_call(Weights weights, int64_t texts, int64_t tokens) {
  const Tensor ids = random_targets(texts * tokens, 30000);
  return [model = model_of({{"architectures", {"BertForSequenceClassification"}}, {"model_type", "bert"}}, weights),
          x = reshape(ids, {texts, tokens})] {
    const NoGrad quiet;
    (*model)({{"input_ids", x}});
  };
}

Call decode_call(Weights weights, int64_t tokens) {
  const Tensor first = Tensor::from(std::vector<int64_t>{0}, {1, 1}, kCpu);
  return [model = model_of({{"architectures", {"GPT2LMHeadModel"}}, {"model_type", "gpt2"}}, weights), first, tokens] {
    generate(*model, {{"input_ids", first}}, {.max_length = tokens + 1});
  };
}

}  // namespace

std::vector<Benchmark> model_benchmarks() {
  std::vector<Benchmark> list;
  const auto add_benchmarks = [&](const std::string& suffix, const std::string& peer, Weights weights) {
    for (const int64_t images : {1, 8})
      list.push_back({name_of("vit_b16" + suffix + "/forward/" + peer, {images}), Unit::flops, model_flops(images, 197),
                      [=] { return vit_call(weights, images); }});
    list.push_back({name_of("bert_base" + suffix + "/forward/" + peer, {8, 128}), Unit::flops, model_flops(8, 128),
                    [=] { return bert_call(weights, 8, 128); }});
    const double bytes = 124e6 * (weights == Weights::int8 ? 1 : sizeof(float));
    list.push_back(
        {name_of("gpt2" + suffix + "/decode/" + peer, {1, 128}), Unit::bytes, 128 * bytes, [=] { return decode_call(weights, 128); }});
  };
  add_benchmarks("", "torch", Weights::packed);
  add_benchmarks("", "onnx", Weights::packed);
  add_benchmarks("_int8", "onnx", Weights::int8);
  return list;
}

}  // namespace heed::bench
