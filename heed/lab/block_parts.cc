// L37: a transformer block without its feed-forward layer, its residuals or its norms: gradients by depth, and trained accuracy.
#include <algorithm>
#include <cmath>

#include "heed/attention/attention.h"
#include "heed/lab/experiments.h"
#include "heed/lab/training.h"
#include "heed/models/architecture.h"
#include "heed/models/parts.h"

namespace heed::lab {
namespace {

struct BlockOptions {
  ImageTrainingRuns runs = {.images = 2000, .epochs = 12, .seeds = 4, .layers = 4};
  int64_t depth = 12;
};

void declare_blocks(Settings& settings, BlockOptions& options, Size size) {
  if (size == Size::full) options.runs.images = 4000, options.runs.epochs = 30, options.runs.seeds = 5, options.runs.layers = 6;
  options.runs.declare(settings);
  settings.add("depth", options.depth, "layers of the models whose gradients are measured", {.least = 8, .most = 64});
}

struct BlockParts {
  std::string name;
  bool feed_forward = true, residual = true, norm = true;
};
const std::vector<BlockParts>& block_variants() {
  static const std::vector<BlockParts> variants{
      {"whole block"}, {"no feed-forward layer", false}, {"no residuals", true, false}, {"no norms", true, true, false}};
  return variants;
}

// A pre-norm block (Xiong et al. 2020). Input and output have one width, or the residual could not add them.
struct AblatedBlock {
  BlockParts parts;
  int64_t heads;
  Norm before_attention, before_wide;
  Linear query, key, value, output, wide, narrow;

  AblatedBlock(const Scope& scope, const BlockParts& what, int64_t D, int64_t H)
      : parts(what),
        heads(H),
        before_attention(scope / "norm1", D),
        before_wide(scope / "norm2", D),
        query(scope / "query", D, D),
        key(scope / "key", D, D),
        value(scope / "value", D, D),
        output(scope / "output", D, D),
        wide(scope / "wide", D, 4 * D),
        narrow(scope / "narrow", 4 * D, D) {}

  Tensor attended(const Tensor& x) const {  // (B, N, D) -> (B, N, D)
    const int64_t B = x.size(0), N = x.size(1), D = x.size(2);
    const auto split_heads = [&](const Tensor& y) { return permute(reshape(y, {B, N, heads, D / heads}), {0, 2, 1, 3}); };
    const Tensor y = attention(split_heads(query(x)), split_heads(key(x)), split_heads(value(x)));
    return output(reshape(permute(y, {0, 2, 1, 3}), {B, N, D}));
  }
  Tensor operator()(const Tensor& x) const {
    const Tensor a = attended(parts.norm ? before_attention(x) : x), y = parts.residual ? x + a : a;
    if (!parts.feed_forward) return y;
    const Tensor f = narrow(wide(parts.norm ? before_wide(y) : y, Activation::gelu));
    return parts.residual ? y + f : f;
  }
};

// Patches, learned positions, blocks, the mean over patches and a linear layer.
Model ablated_model(const Json& json, const BlockParts& parts, const BlockOptions& options, int64_t layers, uint64_t seed) {
  auto params = std::make_unique<Params>(seed);
  const int64_t D = options.runs.width, P = options.runs.patch;
  const Scope scope(*params, initializer::original(D));
  const Config config(json, "config");
  std::vector<int64_t> image = config.sizes("image_size", {32});
  const int64_t side = image[0] / P, N = side * side;
  const Tensor patches = scope.get("patches", {D, 3, P, P}, initializer::kaiming_normal()),
               positions = scope.get("positions", {1, N, D}, initializer::normal(0.02f), {.decays = false});
  std::vector<AblatedBlock> blocks;
  for (int64_t i = 0; i < layers; ++i) blocks.emplace_back(scope / ("block." + std::to_string(i)), parts, D, options.runs.heads);
  const Norm last(scope / "norm", D);
  const Linear head(scope / "classifier", D, config.labels());
  const auto forward = [=](const TensorMap& inputs, const ForwardOptions& forward_options) {
    const Tensor pixels = required_input(inputs, "pixel_values");
    Tensor x = conv2d(pixels, patches, {}, {.stride = {P, P}});
    x = permute(reshape(x, {x.size(0), D, N}), {0, 2, 1}) + positions;
    for (const AblatedBlock& block : blocks) x = block(x);
    if (parts.norm) x = last(x);
    TensorMap out{{"logits", head(mean(x, {1}))}, {"tokens", x}};
    const Tensor labels = optional_input(inputs, "labels");
    if (labels.defined()) out["loss"] = classification_loss(out["logits"], labels, config, forward_options);
    return out;
  };
  static const Architecture ablated{.name = "AblatedTransformer",
                                    .task = ModelTask::image_classification,
                                    .family = std::make_shared<const Family>(Family{.pixels = true})};
  return {{.run = forward, .inputs = {"pixel_values", "labels"}}, std::move(params), ablated, json, Json()};
}

// One random batch through an untrained model.
struct Untrained {
  std::vector<double> gradients = {};  // length of the gradient of each block's value weights
  double spread = 0;                   // distance of the tokens of an image from their mean, relative to their length
};

Untrained untrained_run(const BlockParts& parts, const BlockOptions& options) {
  const Json config{{"image_size", 32}, {"num_labels", 10}};
  const Model model = ablated_model(config, parts, options, options.depth, options.runs.seed);
  Rng rng(options.runs.seed);
  std::vector<int64_t> labels;
  for (int64_t i = 0; i < 16; ++i) labels.push_back(i % 10);
  const TensorMap out =
      model({{"pixel_values", random_normal({16, 3, 32, 32}, 0, 1, rng, kCpu)}, {"labels", Tensor::from(labels, {16}, kCpu)}});
  backward(out.at("loss"));
  Untrained found;
  const Tensor tokens = out.at("tokens").detach(), apart = tokens - mean(tokens, {1}, true);
  found.spread = std::sqrt(static_cast<double>(sum(apart * apart).item()) / static_cast<double>(sum(tokens * tokens).item()));
  for (int64_t i = 0; i < options.depth; ++i)
    for (const Parameter& parameter : model.params().all())
      if (parameter.name == "block." + std::to_string(i) + ".value.weight") {
        const double most = largest(parameter.tensor.grad());  // squares of small gradients would be 0
        const Tensor scaled = parameter.tensor.grad() * static_cast<float>(most > 0 ? 1 / most : 0);
        found.gradients.push_back(most * std::sqrt(static_cast<double>(sum(scaled * scaled).item())));
      }
  return found;
}

Report run_blocks(const BlockOptions& options, const ProgressCallback& progress) {
  const std::vector<BlockParts>& variants = block_variants();
  std::vector<Trials> accuracy(variants.size());
  std::vector<std::vector<std::vector<double>>> losses(variants.size());
  std::vector<double> passed, spreads;  // gradient of the first block relative to the last; of the tokens
  Lines depth{.across = {"block"}, .up = {"length of the gradient", true}};
  for (size_t v = 0; v < variants.size(); ++v) {
    const auto [lengths, spread] = untrained_run(variants[v], options);
    passed.push_back(lengths.front() / lengths.back()), spreads.push_back(spread);
    depth.series.push_back(
        {variants[v].name, steps(1, static_cast<double>(lengths.size()), static_cast<int>(lengths.size())), lengths, Mark::both});
    const TemporaryFolder folder;
    for (int64_t i = 0; i < options.runs.seeds; ++i) {
      const uint64_t seed = options.runs.seed + static_cast<uint64_t>(i);
      TrainingRun run = options.runs.for_seed(seed);
      run.add(options.runs.transformer());
      run.modify_task = [&, v, seed](Task& task) {
        *task.model = ablated_model(task.model->config(), variants[v], options, options.runs.layers, seed);
      };
      const TrainedModel trained = run_training(run, folder, variants[v].name + ", run " + std::to_string(i + 1), progress);
      accuracy[v].add(trained);
      losses[v].push_back(trained.losses);
    }
  }
  Report report;
  Table table{.title = "Without a part of the block",
              .columns = {"variant", "gradient of the first block relative to the last", "spread of the tokens", "training loss",
                          "test accuracy, 95 % CI", "minus whole block"}};
  std::string worse, same;
  std::vector<Series> curves;
  for (size_t v = 0; v < variants.size(); ++v) {
    const Interval less = difference(accuracy[v], accuracy[0]);
    curves.push_back(mean_curve(variants[v].name, losses[v]));
    table.rows.push_back(
        {variants[v].name, passed[v], spreads[v], curves.back().y.back(), interval_text(accuracy[v].interval()), points_text(less)});
    if (v == 0) continue;
    std::string& list = less.high < 0 ? worse : same;
    list += (list.empty() ? "" : "; ") + variants[v].name + ", " + points_text(less);
  }
  report.statement =
      "In " + std::to_string(options.depth) + " untrained blocks, norms keep the gradient on one scale: that of the first block is " +
      number_text(passed[0]) + " times that of the last, without norms " + number_text(passed[3]) +
      " times. Residuals keep the tokens of an image apart: their distance from the mean is " + number_text(spreads[0]) +
      " of their length; without residuals it is " + number_text(spreads[2]) +
      ", because every layer of attention averages them. A residual adds the output of a block to its input, so both have the same size. "
      "Trained with " +
      std::to_string(options.runs.layers) + " blocks" + (worse.empty() ? ", " : ", less accurate than the whole block: " + worse + ". ") +
      (same.empty() ? "" : (worse.empty() ? "not" : "Not") + std::string(" measurably less accurate at this budget: ") + same + ".");
  report.measured.push_back(
      at_least("no norms: gradient of the first block over the last, relative to the whole block's", 10, passed[3] / passed[0]));
  report.measured.push_back(at_most("no residuals: spread of the tokens, relative to the whole block's", 0.1, spreads[2] / spreads[0]));
  const Interval lost = difference(accuracy[2], accuracy[0]);
  if (lost.high < 0)
    report.measured.push_back(at_most("no residuals minus whole block: accuracy, upper bound", 0, lost.high));
  else
    report.undecided =
        report.statement + " Whether training suffers cannot be told yet: no residuals minus whole block is " + points_text(lost) + ".";
  report.tables.push_back(std::move(table));
  report.figures.push_back(
      figure("Gradient by depth", "Of the value weights of each block, before training.", Plot{.body = std::move(depth)}));
  report.figures.push_back(figure("Training loss", "Mean over runs; bands from the lowest to the highest.",
                                  Plot{.body = Lines{.across = {"epoch"}, .up = {"loss"}, .series = std::move(curves)}}));
  return report;
}

}  // namespace

Experiment block_parts() {
  return {
      .number = "L37",
      .name = "block-parts",
      .topic = Topic::layers,
      .title = "What residuals, norms and feed-forward layers contribute",
      .claim = "Norms keep the gradient on one scale through the depth of a transformer, and residuals keep its tokens apart.",
      .formula = R"(y = x + \mathrm{attend}(\mathrm{norm}(x)), \quad z = y + \mathrm{feed}(\mathrm{norm}(y)))",
      .setup =
          "Encoders without feed-forward layers, without residuals or without norms are trained on the same data as a complete one, with "
          "several seeds, and their accuracies are compared. Before training, gradients are measured block by block in deep encoders.",
      .budget = {"epochs"},
      .prepare = prepared(declare_blocks, run_blocks)};
}

}  // namespace heed::lab
