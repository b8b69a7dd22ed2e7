// L24: heads of a trained vision transformer compared with the convolutions that fit them best.
#include <algorithm>
#include <cmath>

#include "heed/data/shapes.h"
#include "heed/lab/experiments.h"
#include "heed/lab/head_kernels.h"
#include "heed/lab/measure.h"
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
  int64_t images = 8, layers = 2, width = 48, steps = 300, data = 1000;
  uint64_t seed = 1;
};

void declare_kernel_heads(Settings& settings, KernelHeadsOptions& options, Size size) {
  if (size == Size::full) options.layers = 3, options.width = 96, options.steps = 2000, options.data = 4000;
  settings.add("model", options.model, "folder of a vision transformer; empty: two small ones, trained on shapes");
  settings.add("image", options.image, "a PNG or JPEG file as input; empty: shapes");
  settings.add("images", options.images, "number of shapes used as input", {.least = 1, .most = 256});
  settings.add("layers", options.layers, "of the trained models", {.least = 1, .most = 12});
  settings.add("width", options.width, "of the trained models", {.least = 4, .most = 512});
  settings.add("steps", options.steps, "training steps", {.least = 0, .most = 1000000});
  settings.add("data", options.data, "training images", {.least = 50, .most = 100000});
  settings.add("seed", options.seed, "of initial weights, data and images");
}

struct InspectedModel {
  std::string name;
  std::shared_ptr<Model> model;
  Tensor pixels;                // (B, 3, height, width)
  std::array<int64_t, 2> grid;  // of patches
  double accuracy = NAN;        // of trained models
};

InspectedModel trained_model(const KernelHeadsOptions& options, const std::string& name, const std::vector<std::string>& settings,
                             const ProgressCallback& progress) {
  TrainingJob training("classify");
  training.apply(settings);
  training.apply({"data=shapes:" + std::to_string(options.data), "layers=" + std::to_string(options.layers),
                  "width=" + std::to_string(options.width), "patch=4", "feed_forward=" + std::to_string(2 * options.width),
                  "optimizer=adamw", "rate=3e-3", "batch=50", "dropout=0", "pad=0", "flip=false", "seed=" + std::to_string(options.seed)});
  const Task task = training.make();
  const TrainOptions& train_options = training.train_options();
  OptimizerStep optimizer_step(*task.model, train_options);
  Rng rng(options.seed);
  int64_t step = 0;
  for (int64_t epoch = 0; step < options.steps; ++epoch)
    for (const std::vector<int64_t>& samples : task.batches(epoch)) {
      if (step == options.steps) break;
      const StepOutput outcome = task.forward(task.batch(epoch, samples), {.mode = training_with(rng)});
      optimizer_step.zero_grad();
      backward(outcome.loss);
      optimizer_step.step(static_cast<float>(rate_at(train_options, step, options.steps)));
      if (++step % 20 == 0) progress(name + ", step " + std::to_string(step));
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

// Heads with Gaussian positions alone must have the kernels given by alpha and centre.
void compare_with_formula(const InspectedModel& inspected, const std::vector<HeadKernel>& found, Report& report) {
  const Json heed_config = inspected.model->config().value("heed", Json::object());
  if (heed_config.value("positions", Json()) != "gaussian" || heed_config.value("content", true)) return;
  double mass = 0, kernel = 0, matching = 0, heads = 0;
  size_t next_head = 0;
  for (const GaussianLayer& layer : gaussian_heads(*inspected.model).layers) {
    for (const HeadKernel& predicted :
         head_kernels(maps_by_formula(layer.heads, inspected.grid), 0, inspected.grid[0], inspected.grid[1])) {
      const HeadKernel& head = found.at(next_head++);
      mass = std::max({mass, std::abs(head.mass3 - predicted.mass3), std::abs(head.mass5 - predicted.mass5)});
      for (size_t i = 0; i < head.kernel.size(); ++i) kernel = std::max(kernel, std::abs(head.kernel[i] - predicted.kernel[i]));
      const GaussianHead& gaussian = layer.heads[static_cast<size_t>(head.head)];
      const double down = gaussian.center[0], along = gaussian.center[1],
                   reach = static_cast<double>(std::min(inspected.grid[0], inspected.grid[1]) - 3) - 0.5;
      if (std::max(std::abs(down), std::abs(along)) > reach || gaussian.precision[0] < 0.05)
        continue;  // centred beyond the grid, or attends to all of it
      heads += 1;
      matching +=
          std::abs(static_cast<double>(head.center[0]) + down) <= 0.51 && std::abs(static_cast<double>(head.center[1]) + along) <= 0.51;
    }
  }
  report.measured.push_back(at_most(inspected.name + ": distance of the window masses from the formula", 1e-4, mass));
  report.measured.push_back(at_most(inspected.name + ": distance of fitted kernels from the formula", 1e-4, kernel));
  report.measured.push_back(equal_to(inspected.name + ": heads found at their learned centre", heads, matching));
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

// Returns the share of heads that act as convolutions.
double evaluate_heads(const InspectedModel& inspected, Report& report) {
  const std::vector<HeadKernel> heads = kernels_of(inspected);
  check<UsageError>(!heads.empty(), "model: ", inspected.name, " has no attention layers");
  Table table{.title = inspected.name + (std::isnan(inspected.accuracy) ? "" : ", accuracy " + number_text(inspected.accuracy)),
              .columns = {"head", "centre, rows", "columns", "mass 3 × 3", "mass 5 × 5", "explained by one kernel",
                          "error of the convolution", "acts as a convolution"}};
  double convolving = 0, worst = 0, apart = 0;
  for (const HeadKernel& head : heads) {
    table.rows.push_back({std::to_string(head.layer) + "." + std::to_string(head.head), static_cast<double>(head.center[0]),
                          static_cast<double>(head.center[1]), head.mass3, head.mass5, head.explained, head.error,
                          head.convolves() ? "yes" : "no"});
    convolving += head.convolves();
    if (head.convolves()) worst = std::max(worst, head.error);
    apart = std::max(apart, std::abs(head.error * head.error - (1 - head.explained)));
  }
  report.tables.push_back(std::move(table));
  if (convolving > 0)
    report.measured.push_back(at_most(inspected.name + ": error of replacing convolving heads by convolutions", 0.35, worst));
  report.measured.push_back(at_most(inspected.name + ": square of the error, distance from the unexplained share, all heads", 0.15, apart));
  compare_with_formula(inspected, heads, report);
  add_head_figures(inspected, heads, report);
  return convolving / static_cast<double>(heads.size());
}

std::string share_text(const std::string& name, double share) {
  return name + ": " + number_text(100 * share) + " % of the heads act as convolutions, over all queries and images. ";
}

Report run_kernel_heads(const KernelHeadsOptions& options, const ProgressCallback& progress) {
  Report report;
  const std::string rule =
      "A head acts as a convolution if one kernel with replicated edges explains 90 % of its maps' squares. What the kernel does not "
      "explain "
      "is the squared error of replacing the head by that convolution.";
  if (!options.model.empty()) {
    const InspectedModel inspected = loaded_model(options);
    report.statement = share_text(inspected.name, evaluate_heads(inspected, report)) + rule;
    return report;
  }
  const double gaussian = evaluate_heads(trained_model(options, "Gaussian positions", {"preset=gaussian-small"}, progress), report);
  const double content = evaluate_heads(
      trained_model(options, "content and learned positions", {"preset=vit-tiny", "heads=4", "pooling=gap"}, progress), report);
  report.statement = share_text("Gaussian positions", gaussian) + share_text("Content and learned positions", content) + rule;
  report.measured.push_back(at_least("Gaussian positions: share of heads that act as convolutions", 0.5, gaussian));
  report.measured.push_back(at_most("content and learned positions: share of heads that act as convolutions", 0.3, content));
  report.measured.push_back(at_least("Gaussian minus content: share of heads that act as convolutions", 0.3, gaussian - content));
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
          "Heads that act as a convolution can be detected by the mass in a 3 × 3 or 5 × 5 window around their centre and by one kernel "
          "that fits all their maps.",
      .formula =
          R"(w_o = \operatorname{mean}_q \, a_{q, q + c + o}, \quad 1 - \frac{\sum_{q, k} (a_{qk} - w_{k - q - c})^2}{\sum_{q, k} a_{qk}^2} \ge 0.9)",
      .setup =
          "Two small vision transformers are trained, one with Gaussian positions, one with content and learned positions. For every head, "
          "the kernel that fits its maps best is computed over images and queries. The heads that one kernel explains are then replaced by "
          "convolutions, and the error is measured.",
      .prepare = prepared(declare_kernel_heads, run_kernel_heads)};
}

}  // namespace heed::lab
