// Residual networks (He et al. 2016), the baseline for attention on images.
#include <numeric>
#include <optional>

#include "heed/core/nearest.h"
#include "heed/models/architecture.h"
#include "heed/models/parts.h"

namespace heed {
namespace {

constexpr int64_t kMostBlocks = 1000;

// Convolution, batch norm, and optionally ReLU.
struct ConvolutionUnit {
  Tensor weight;          // (O, C, K, K)
  Tensor scale, shift;    // (O)
  Tensor mean, variance;  // (O): running statistics
  int64_t stride;
  bool active;
  ModuleName convolution_name, norm_name;

  ConvolutionUnit(const Scope& scope, int64_t C, int64_t O, int64_t K, int64_t step, bool with_activation = true)
      : weight(scope.get("convolution.weight", {O, C, K, K}, initializer::kaiming_normal())), stride(step), active(with_activation) {
    const Scope norm = scope / "normalization";
    convolution_name = module_name((scope / "convolution").path());
    norm_name = module_name(norm.path());
    scale = norm.get("weight", {O}, initializer::ones(), {.decays = false});
    shift = norm.get("bias", {O}, initializer::zeros(), {.decays = false});
    mean = norm.get("running_mean", {O}, initializer::zeros(), {.learned = false});
    variance = norm.get("running_var", {O}, initializer::ones(), {.learned = false});
  }

  // (B, C, Y, X) -> (B, O, Y / stride, X / stride)
  Tensor operator()(const Tensor& x, Mode mode) const {
    const int64_t around = weight.size(2) / 2;
    const auto convolved = [&] {
      const ModuleScope module(convolution_name);
      return module.call({&x, &weight}, conv2d(x, weight, {}, {.stride = {stride, stride}, .padding = {around, around}}));
    };
    const Tensor y = convolved();
    const ModuleScope module(norm_name);
    const BatchNorm options{.running_mean = mean, .running_variance = variance, .training = mode.training()};
    const Tensor z = module.call({&y}, batch_norm(y, scale, shift, options));
    return active ? relu(z) : z;
  }
};

struct ResidualBlock {
  std::vector<ConvolutionUnit> units;
  std::optional<ConvolutionUnit> shortcut;  // if sizes change

  Tensor operator()(const Tensor& x, Mode mode) const {
    Tensor y = x;
    for (const ConvolutionUnit& unit : units) y = unit(y, mode);
    return relu(y + (shortcut ? (*shortcut)(x, mode) : x));
  }
};

struct ResidualNetwork {
  ConvolutionUnit stem;
  bool small;  // for small images: the stem keeps their size instead of reducing it to a quarter
  std::vector<std::vector<ResidualBlock>> stages;

  // (B, C, Y, X) -> (B, O, y, x)
  Tensor operator()(const TensorMap& inputs, const ForwardOptions& options, TensorMap& out) const {
    const Tensor pixels = required_input(inputs, "pixel_values");
    check(pixels.rank() == 4 && pixels.size(1) == stem.weight.size(1), "resnet: pixel_values of shape ", pixels.shape(), ", expected (B, ",
          stem.weight.size(1), ", Y, X)");
    OutputCollector collector(options);
    Tensor x = stem(pixels, options.mode);
    if (!small) x = max_pool2d(x, {.kernel = {3, 3}, .stride = {2, 2}, .padding = {1, 1}});
    for (const std::vector<ResidualBlock>& stage : stages) {
      collector.state(x);
      for (const ResidualBlock& block : stage) x = block(x, options.mode);
    }
    collector.state(x);
    collector.add_outputs(out, 0);
    return x;
  }
};

// Basic: two 3 x 3 convolutions. Bottleneck: one of 3 x 3 between two of 1 x 1, with a quarter of the channels.
ResidualBlock make_residual_block(const Scope& scope, const Config& config, bool basic, int64_t C, int64_t O, int64_t stride) {
  ResidualBlock out;
  const Scope layer = scope / "layer";
  if (basic) {
    out.units = {ConvolutionUnit(layer / 0, C, O, 3, stride), ConvolutionUnit(layer / 1, O, O, 3, 1, false)};
  } else {
    const bool early = config.flag("downsample_in_bottleneck", false);
    const int64_t inner = std::max<int64_t>(O / 4, 1);
    out.units = {ConvolutionUnit(layer / 0, C, inner, 1, early ? stride : 1),
                 ConvolutionUnit(layer / 1, inner, inner, 3, early ? 1 : stride), ConvolutionUnit(layer / 2, inner, O, 1, 1, false)};
  }
  if (C != O || stride != 1) out.shortcut = ConvolutionUnit(scope / "shortcut", C, O, 1, stride, false);
  return out;
}

bool small_stem(const Config& config) {
  const Config own = config.below("heed");
  for (const auto& [key, value] : own.json().items())
    check<FileError>(key == "stem", config.source(), ": heed.", key, " is not known", did_you_mean(key, {"stem"}));
  const std::string stem = own.string("stem", "published");
  if (stem != "published" && stem != "small") own.refuse("stem", "published or small");
  return stem == "small";
}

ResidualNetwork make_residual_network(const Scope& scope, const Config& config) {
  config.only("hidden_act", "relu");
  const std::string kind = config.string("layer_type", "bottleneck");
  if (kind != "basic" && kind != "bottleneck") config.refuse("layer_type", "basic or bottleneck");
  const std::vector<int64_t> widths = config.sizes("hidden_sizes", {256, 512, 1024, 2048}), depths = config.sizes("depths", {3, 4, 6, 3});
  if (std::accumulate(depths.begin(), depths.end(), int64_t{0}) > kMostBlocks)
    config.refuse("depths", "at most " + std::to_string(kMostBlocks) + " blocks in all");
  if (widths.size() != depths.size()) config.refuse("depths", "as many numbers as hidden_sizes has");
  const bool small = small_stem(config);
  int64_t C = config.size("embedding_size", 64);
  ResidualNetwork out{.stem = ConvolutionUnit(scope / "embedder.embedder", config.size("num_channels", 3), C, small ? 3 : 7, small ? 1 : 2),
                      .small = small,
                      .stages = {}};
  for (size_t i = 0; i < widths.size(); ++i) {
    const Scope layers = scope / "encoder.stages" / static_cast<int64_t>(i) / "layers";
    std::vector<ResidualBlock>& stage = out.stages.emplace_back();
    for (int64_t j = 0; j < depths[i]; ++j, C = widths[i]) {
      const bool halves = j == 0 && (i > 0 || config.flag("downsample_in_first_stage", false));
      stage.push_back(make_residual_block(layers / j, config, kind == "basic", C, widths[i], halves ? 2 : 1));
    }
  }
  return out;
}

Network make_residual_classifier(const Scope& scope, const Config& config) {
  const ResidualNetwork network = make_residual_network(scope / "resnet", config);
  const int64_t width = config.sizes("hidden_sizes", {2048}).back();
  const Linear head = config.labels() == 0 ? Linear() : Linear(scope / "classifier.1", width, config.labels());
  return {.run =
              [=](const TensorMap& inputs, const ForwardOptions& options) {
                TensorMap out;
                const Tensor pooled = mean(network(inputs, options, out), {2, 3});  // (B, O)
                out["logits"] = head.defined() ? head(pooled) : pooled;
                if (const Tensor labels = optional_input(inputs, "labels"); labels.defined())
                  out["loss"] = classification_loss(out["logits"], labels, config, options);
                return out;
              },
          .inputs = {"pixel_values", "labels"}};
}

Network make_residual_inner(const Scope& scope, const Config& config) {
  const ResidualNetwork network = make_residual_network(scope, config);
  return {.run =
              [=](const TensorMap& inputs, const ForwardOptions& options) {
                TensorMap out;
                out["last_hidden_state"] = network(inputs, options, out);
                out["pooler_output"] = mean(out["last_hidden_state"], {2, 3}, true);
                return out;
              },
          .inputs = {"pixel_values"}};
}

}  // namespace

Architectures resnet_architectures() {
  return of_family({.model_type = "resnet",
                    .base = "resnet",
                    .pixels = true,
                    .image_processor = "ConvNext",
                    .keys = {.activation = {"hidden_act"},
                             .more = {"image_size", "num_channels", "embedding_size", "hidden_sizes", "depths", "layer_type",
                                      "downsample_in_first_stage", "downsample_in_bottleneck"}},
                    .ignored = {"num_batches_tracked"}},  // not needed for running statistics
                   {{"ResNetModel", ModelTask::features, make_residual_inner},
                    {"ResNetForImageClassification", ModelTask::image_classification, make_residual_classifier}});
}

}  // namespace heed
