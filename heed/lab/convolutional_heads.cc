// L24: heads of a trained vision transformer compared with the convolutions that fit them best.
#include <algorithm>
#include <cmath>

#include "heed/data/shapes.h"
#include "heed/lab/experiments.h"
#include "heed/lab/head_kernels.h"
#include "heed/lab/training.h"
#include "heed/models/cost.h"
#include "heed/models/gaussian_heads.h"
#include "heed/models/image_processor.h"
#include "heed/models/inspect.h"
#include "heed/ops/ops.h"
#include "heed/train/optimizer_step.h"
#include "heed/train/training_job.h"

namespace heed::lab {
namespace {

struct KernelHeadsOptions {
  std::string model, image;
  int64_t images = 8, layers = 2, width = 48, steps = 300, data = 1000, seeds = 3;
  uint64_t seed = 1;
};

void declare_kernel_heads(Settings& settings, KernelHeadsOptions& options, Size size) {
  if (size == Size::full) options.layers = 3, options.width = 96, options.steps = 2000, options.data = 4000, options.seeds = 5;
  settings.add("model", options.model, "folder of a vision transformer; empty: two small ones, trained on shapes");
  settings.add("image", options.image, "a PNG or JPEG file as input; empty: shapes");
  settings.add("images", options.images, "number of shapes used as input", {.least = 1, .most = 256});
  settings.add("layers", options.layers, "of the trained models", {.least = 1, .most = 12});
  settings.add("width", options.width, "of the trained models", {.least = 4, .most = 512});
  settings.add("steps", options.steps, "training steps", {.least = 0, .most = 1000000});
  settings.add("data", options.data, "training images", {.least = 50, .most = 100000});
  settings.add("seeds", options.seeds, "runs of each trained model, which differ only by their seed", {.least = 2, .most = 100});
  settings.add("seed", options.seed, "of the first run: initial weights, data and images");
}

struct InspectedModel {
  std::string name;
  std::shared_ptr<Model> model;
  Tensor pixels;                // (B, 3, height, width)
  std::array<int64_t, 2> grid;  // of patches
  double accuracy = NAN;        // of trained models
};

InspectedModel trained_model(const KernelHeadsOptions& options, const std::string& name, const std::vector<std::string>& settings,
                             uint64_t seed, const ProgressCallback& progress) {
  TrainingJob training("classify");
  training.apply(settings);
  training.apply({"data=shapes:" + std::to_string(options.data), "layers=" + std::to_string(options.layers),
                  "width=" + std::to_string(options.width), "patch=4", "feed_forward=" + std::to_string(2 * options.width),
                  "optimizer=adamw", "rate=3e-3", "batch=50", "dropout=0", "pad=0", "flip=false", setting("seed", seed)});
  const Task task = training.make();
  const TrainOptions& train_options = training.train_options();
  OptimizerStep optimizer_step(*task.model, train_options);
  Rng rng(seed);
  int64_t step = 0;
  for (int64_t epoch = 0; step < options.steps; ++epoch)
    for (const std::vector<int64_t>& samples : task.batches(epoch)) {
      if (step == options.steps) break;
      const StepOutput outcome = task.forward(task.batch(epoch, samples), {.mode = training_with(rng)});
      optimizer_step.zero_grad();
      backward(outcome.loss);
      optimizer_step.step(static_cast<float>(rate_at(train_options, step, options.steps)));
      if (++step % 20 == 0) progress(name + ", seed " + std::to_string(seed) + ", step " + std::to_string(step));
    }
  std::vector<int64_t> shown;
  for (int64_t i = 0; i < options.images; ++i) shown.push_back(i);
  InspectedModel out{.name = name, .model = task.model, .pixels = task.batch(0, shown).inputs.at("pixel_values"), .grid = {8, 8}};
  for (const auto& [figure_name, value] : task.evaluate().figures)
    if (figure_name == "accuracy") out.accuracy = value;
  return out;
}

InspectedModel loaded_model(const KernelHeadsOptions& options) {
  InspectedModel out{
      .name = Path(options.model).filename().string(), .model = std::make_shared<Model>(load(options.model)), .pixels = {}, .grid = {}};
  check<UsageError>(input_kind(*out.model) == InputKind::image && has_maps(*out.model), "model: ", options.model, " is a ",
                    out.model->architecture(), ", expected a model with attention over image patches");
  const ImageProcessor reader((Path(options.model)));
  std::vector<Image> images;
  if (!options.image.empty()) images.push_back(read_image(options.image));
  const ImageData shapes = synthetic_shapes({.count = options.images, .side = 64, .seed = options.seed});
  for (int64_t i = 0; options.image.empty() && i < shapes.count(); ++i) images.push_back(shapes.image(i));
  out.pixels = reader(images);
  out.grid = patch_grid(*out.model, reader.prepared(images[0]));
  check<UsageError>(std::min(out.grid[0], out.grid[1]) >= kKernelSide, "model: ", options.model, " splits images into ", out.grid[0], " x ",
                    out.grid[1], " patches, expected ", kKernelSide, " or more in both directions");
  return out;
}

std::vector<HeadKernel> kernels_of(const InspectedModel& inspected) {
  const NoGrad no_grad;
  const TensorMap out = (*inspected.model)({{"pixel_values", inspected.pixels}}, {.attentions = true});
  std::vector<HeadKernel> all;
  for (int64_t layer = 0; out.contains("attentions." + std::to_string(layer)); ++layer) {
    const Tensor& maps = out.at("attentions." + std::to_string(layer));
    check<UsageError>(maps.size(2) == maps.size(3) && maps.size(2) >= inspected.grid[0] * inspected.grid[1], "model: maps of ",
                      maps.size(2), " x ", maps.size(3), " tokens, expected one per patch");
    const std::vector<HeadKernel> more = head_kernels(maps, layer, inspected.grid[0], inspected.grid[1]);
    all.insert(all.end(), more.begin(), more.end());
  }
  return all;
}

// The maps that follow from learned alpha and centre. -> (1, H, N, N)
Tensor maps_by_formula(const std::vector<GaussianHead>& gaussians, std::array<int64_t, 2> grid) {
  const int64_t N = grid[0] * grid[1], X = grid[1];
  std::vector<float> out;
  for (const GaussianHead& head : gaussians)
    for (int64_t q = 0; q < N; ++q) {
      std::vector<double> scores;
      for (int64_t k = 0; k < N; ++k)
        scores.push_back(-head.precision[0] * (std::pow(static_cast<double>(q / X - k / X) - head.center[0], 2) +
                                               std::pow(static_cast<double>(q % X - k % X) - head.center[1], 2)));
      const double most = *std::max_element(scores.begin(), scores.end());
      double sum = 0;
      for (double& score : scores) sum += score = std::exp(score - most);
      for (const double score : scores) out.push_back(static_cast<float>(score / sum));
    }
  return Tensor::from(out, {1, std::ssize(gaussians), N, N}, kCpu);
}

// What is found in the heads of one kind of model, over all its runs.
struct HeadScores {
  Trials convolving = {};                                // share of the heads that act as convolutions, by run
  double worst = 0, apart = 0;                           // largest error of those heads, and distance of its square from 1 - explained
  double mass = 0, kernel = 0, heads = 0, matching = 0;  // Gaussian positions: distances from the formula; heads at their centre
  bool has_formula = false;
};

// Heads with Gaussian positions alone must have the kernels given by alpha and centre.
void compare_with_formula(const InspectedModel& inspected, const std::vector<HeadKernel>& found, HeadScores& scores) {
  const Json heed_config = inspected.model->config().value("heed", Json::object());
  if (heed_config.value("positions", Json()) != "gaussian" || heed_config.value("content", true)) return;
  scores.has_formula = true;
  size_t next_head = 0;
  for (const GaussianLayer& layer : gaussian_heads(*inspected.model).layers) {
    for (const HeadKernel& predicted :
         head_kernels(maps_by_formula(layer.heads, inspected.grid), 0, inspected.grid[0], inspected.grid[1])) {
      const HeadKernel& head = found.at(next_head++);
      scores.mass = std::max({scores.mass, std::abs(head.mass3 - predicted.mass3), std::abs(head.mass5 - predicted.mass5)});
      for (size_t i = 0; i < head.kernel.size(); ++i)
        scores.kernel = std::max(scores.kernel, std::abs(head.kernel[i] - predicted.kernel[i]));
      const GaussianHead& gaussian = layer.heads[static_cast<size_t>(head.head)];
      const double down = gaussian.center[0], along = gaussian.center[1],
                   reach = static_cast<double>(std::min(inspected.grid[0], inspected.grid[1]) - 3) - 0.5;
      if (std::max(std::abs(down), std::abs(along)) > reach || gaussian.precision[0] < 0.05)
        continue;  // centred beyond the grid, or attends to all of it
      scores.heads += 1;
      scores.matching +=
          std::abs(static_cast<double>(head.center[0]) + down) <= 0.51 && std::abs(static_cast<double>(head.center[1]) + along) <= 0.51;
    }
  }
}

// A table of layers x heads.
HeatMap head_table(const std::vector<HeadKernel>& heads, double HeadKernel::*value) {
  const int64_t layers = heads.back().layer + 1;
  HeatMap map{.rows = layers, .columns = std::ssize(heads) / layers, .down = "layer", .across = "head"};
  for (const HeadKernel& head : heads) map.values.push_back(head.*value);
  map.least = 0, map.most = 1;
  return map;
}

void add_head_figures(const InspectedModel& inspected, const std::vector<HeadKernel>& heads, Report& report) {
  Figure film{.title = "Fitted kernels, " + inspected.name,
              .caption =
                  "5 × 5 kernel around the most attended position of each head; above it that position (key - query, rows and columns) and "
                  "the mass inside.",
              .parameter = "layer"};
  for (const HeadKernel& head : heads) {
    if (film.frames.empty() || film.frames.back().value != std::to_string(head.layer))
      film.frames.push_back({std::to_string(head.layer), {}});
    HeatMap map{.rows = kKernelSide, .columns = kKernelSide, .values = head.kernel};
    map.least = 0, map.most = *std::max_element(head.kernel.begin(), head.kernel.end());
    const std::string center = "(" + std::to_string(head.center[0]) + ", " + std::to_string(head.center[1]) + ") ";
    film.frames.back().plots.push_back({center + std::to_string(std::lround(100 * head.mass5)) + " %", std::move(map)});
  }
  report.figures.push_back(std::move(film));
  report.figures.push_back(figure("How much of a head is a convolution, " + inspected.name,
                                  "Attention inside the windows, and the share of the maps' sum of squares explained by one kernel. From "
                                  "0.9 on a head acts as a convolution.",
                                  {{"mass 3 × 3", head_table(heads, &HeadKernel::mass3)},
                                   {"mass 5 × 5", head_table(heads, &HeadKernel::mass5)},
                                   {"explained", head_table(heads, &HeadKernel::explained)}}));
}

// Adds the heads of one model to the scores; show: also its table and figures.
void evaluate_heads(const InspectedModel& inspected, HeadScores& scores, Report& report, bool show) {
  const std::vector<HeadKernel> heads = kernels_of(inspected);
  check<UsageError>(!heads.empty(), "model: ", inspected.name, " has no attention layers");
  Table table{.title = inspected.name + (std::isnan(inspected.accuracy) ? "" : ", first run, accuracy " + number_text(inspected.accuracy)),
              .columns = {"head", "centre, rows", "columns", "mass 3 × 3", "mass 5 × 5", "explained by one kernel",
                          "error of the convolution", "acts as a convolution"}};
  double convolving = 0;
  for (const HeadKernel& head : heads) {
    table.rows.push_back({std::to_string(head.layer) + "." + std::to_string(head.head), static_cast<double>(head.center[0]),
                          static_cast<double>(head.center[1]), head.mass3, head.mass5, head.explained, head.error,
                          head.convolves() ? "yes" : "no"});
    convolving += head.convolves();
    if (head.convolves()) scores.worst = std::max(scores.worst, head.error);
    scores.apart = std::max(scores.apart, std::abs(head.error * head.error - (1 - head.explained)));
  }
  scores.convolving.samples = static_cast<double>(heads.size());
  scores.convolving.values.push_back(convolving / static_cast<double>(heads.size()));
  compare_with_formula(inspected, heads, scores);
  if (!show) return;
  report.tables.push_back(std::move(table));
  add_head_figures(inspected, heads, report);
}

// The square of the error is the unexplained share, up to the randomness of the values: a ratio of two sums of squares over kRandomValues
// channels has a relative deviation of 2 / sqrt(kRandomValues) at most. Bounds allow for three and a half of them.
void measure_heads(Report& report, const std::string& name, const HeadScores& scores) {
  const double random = 3.5 * 2 / std::sqrt(static_cast<double>(kRandomValues));
  if (scores.worst > 0)
    report.measured.push_back(at_most(name + ": error of replacing convolving heads by convolutions",
                                      std::sqrt((1 - kConvolvingShare) * (1 + random)), scores.worst));
  report.measured.push_back(at_most(name + ": square of the error, distance from the unexplained share, all heads", random, scores.apart));
  if (!scores.has_formula) return;
  report.measured.push_back(at_most(name + ": distance of the window masses from the formula", 1e-4, scores.mass));
  report.measured.push_back(at_most(name + ": distance of fitted kernels from the formula", 1e-4, scores.kernel));
  report.measured.push_back(equal_to(name + ": heads found at their learned centre", scores.heads, scores.matching));
}

Report run_kernel_heads(const KernelHeadsOptions& options, const ProgressCallback& progress) {
  Report report;
  const std::string act = " of the heads act as convolutions, over all queries and images",
                    rule =
                        " A head acts as a convolution if one kernel with replicated edges explains 90 % of the sum of squares of its "
                        "maps. What the kernel does not explain is the squared error of replacing the head by that convolution.";
  if (!options.model.empty()) {
    const InspectedModel inspected = loaded_model(options);
    HeadScores scores;
    evaluate_heads(inspected, scores, report, true);
    measure_heads(report, inspected.name, scores);
    report.statement = inspected.name + ": " + number_text(100 * scores.convolving.values[0]) + " %" + act + "." + rule;
    return report;
  }
  HeadScores gaussian, content;
  for (int64_t i = 0; i < options.seeds; ++i) {
    const uint64_t seed = options.seed + static_cast<uint64_t>(i);
    evaluate_heads(trained_model(options, "Gaussian positions", {"preset=gaussian-small"}, seed, progress), gaussian, report, i == 0);
    evaluate_heads(trained_model(options, "content and learned positions", {"preset=vit-tiny", "heads=4", "pooling=gap"}, seed, progress),
                   content, report, i == 0);
  }
  const Interval more = difference(gaussian.convolving, content.convolving);
  report.statement = "With Gaussian positions " + interval_text(gaussian.convolving.interval()) + act +
                     "; with content and learned positions " + interval_text(content.convolving.interval()) + ", a difference of " +
                     points_text(more) + "." + rule;
  if (more.low <= 0 && more.high >= 0)
    report.undecided = report.statement + " Too few runs to tell which of the models has more of them.";
  else
    report.measured.push_back(
        at_least("Gaussian minus content: share of heads that act as convolutions, lower bound", 0, more.low > 0 ? more.low : more.high));
  measure_heads(report, "Gaussian positions", gaussian);
  measure_heads(report, "content and learned positions", content);
  return report;
}

}  // namespace

Experiment convolutional_heads() {
  return {
      .number = "L24",
      .name = "convolutional-heads",
      .topic = Topic::convolution,
      .title = "Which heads act as convolutions",
      .claim =
          "Heads that act as a convolution can be detected: one kernel fits all their maps. More heads act as one with "
          "Gaussian positions than with content and learned positions.",
      .formula =
          R"(w_o = \operatorname{mean}_q \, a_{q, q + c + o}, \quad 1 - \frac{\sum_{q, k} (a_{qk} - w_{k - q - c})^2}{\sum_{q, k} a_{qk}^2} \ge 0.9)",
      .setup =
          "Small vision transformers are trained with several seeds, with Gaussian positions, and with content and learned positions. For "
          "every head, the kernel that fits its maps best is computed over images and queries. The heads that one kernel explains are then "
          "replaced by convolutions, and the error is measured.",
      .budget = {"steps"},
      .prepare = prepared(declare_kernel_heads, run_kernel_heads)};
}

}  // namespace heed::lab
