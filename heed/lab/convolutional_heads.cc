// L24: heads of a trained vision transformer held against the convolutions that fit them best.
#include <algorithm>
#include <cmath>

#include "heed/data/shapes.h"
#include "heed/lab/experiments.h"
#include "heed/lab/head_kernels.h"
#include "heed/lab/measure.h"
#include "heed/models/cost.h"
#include "heed/models/inspect.h"
#include "heed/models/pictures.h"
#include "heed/ops/ops.h"
#include "heed/train/learner.h"
#include "heed/train/training.h"

namespace heed::lab {
namespace {

struct KernelHeadsOptions {
  std::string model, picture;
  int64_t pictures = 8, layers = 2, width = 48, steps = 300, data = 1000;
  uint64_t seed = 1;
};

void declare_kernel_heads(Settings& settings, KernelHeadsOptions& options, Size size) {
  if (size == Size::full) options.layers = 3, options.width = 96, options.steps = 2000, options.data = 4000;
  settings.add("model", options.model, "folder of a vision transformer to look at; empty: two small ones that learn shapes first");
  settings.add("picture", options.picture, "a PNG or JPEG file to show to it; empty: shapes");
  settings.add("pictures", options.pictures, "how many shapes are shown", {.least = 1, .most = 256});
  settings.add("layers", options.layers, "of the models that learn", {.least = 1, .most = 12});
  settings.add("width", options.width, "of the models that learn", {.least = 4, .most = 512});
  settings.add("steps", options.steps, "that they learn for", {.least = 0, .most = 1000000});
  settings.add("data", options.data, "shapes that they learn from", {.least = 50, .most = 100000});
  settings.add("seed", options.seed, "of what they begin with");
}

struct LookedAt {
  std::string name;
  std::shared_ptr<Model> model;
  Tensor pixels;                // (B, 3, height, width)
  std::array<int64_t, 2> grid;  // of patches
  double accuracy = NAN;        // of one that has learned
};

LookedAt trained_model(const KernelHeadsOptions& options, const std::string& name, const std::vector<std::string>& words, const Say& say) {
  Training training("classify");
  training.tell(words);
  training.tell({"data=shapes:" + std::to_string(options.data), "layers=" + std::to_string(options.layers),
                 "width=" + std::to_string(options.width), "patch=4", "feed_forward=" + std::to_string(2 * options.width),
                 "optimizer=adamw", "rate=3e-3", "batch=50", "dropout=0", "pad=0", "flip=false", "seed=" + std::to_string(options.seed)});
  const Task task = training.make();
  const LearnOptions& learn = training.learning();
  Learner learner(*task.model, learn);
  Rng rng(options.seed);
  int64_t step = 0;
  for (int64_t epoch = 0; step < options.steps; ++epoch)
    for (const std::vector<int64_t>& samples : task.batches(epoch)) {
      if (step == options.steps) break;
      const Outcome outcome = task.learn(task.batch(epoch, samples), {.mode = training_with(rng)});
      learner.zero_grad();
      backward(outcome.loss);
      learner.step(static_cast<float>(rate_at(learn, step, options.steps)));
      if (++step % 20 == 0) say(name + ", step " + std::to_string(step));
    }
  std::vector<int64_t> shown;
  for (int64_t i = 0; i < options.pictures; ++i) shown.push_back(i);
  LookedAt out{.name = name, .model = task.model, .pixels = task.batch(0, shown).inputs.at("pixel_values"), .grid = {8, 8}};
  for (const auto& [figure_name, value] : task.evaluate().figures)
    if (figure_name == "accuracy") out.accuracy = value;
  return out;
}

LookedAt given_model(const KernelHeadsOptions& options) {
  LookedAt out{
      .name = Path(options.model).filename().string(), .model = std::make_shared<Model>(load(options.model)), .pixels = {}, .grid = {}};
  check<UsageError>(input_kind(*out.model) == InputKind::picture && has_maps(*out.model), "model: ", options.model, " is a ",
                    out.model->architecture(), ", expected one that attends to patches of pictures");
  const PictureReader reader((Path(options.model)));
  std::vector<Picture> pictures;
  if (!options.picture.empty()) pictures.push_back(read_picture(options.picture));
  const PictureData shapes = made_shapes({.count = options.pictures, .side = 64, .seed = options.seed});
  for (int64_t i = 0; options.picture.empty() && i < shapes.count(); ++i) pictures.push_back(shapes.picture(i));
  out.pixels = reader(pictures);
  out.grid = patch_grid(*out.model, reader.prepared(pictures[0]));
  check<UsageError>(std::min(out.grid[0], out.grid[1]) >= kKernelSide, "model: ", options.model, " cuts pictures into ", out.grid[0], " x ",
                    out.grid[1], " patches, expected ", kKernelSide, " or more either way");
  return out;
}

std::vector<HeadKernel> kernels_of(const LookedAt& look) {
  const NoGrad quiet;
  const Named out = (*look.model)({{"pixel_values", look.pixels}}, {.attentions = true});
  std::vector<HeadKernel> all;
  for (int64_t layer = 0; out.contains("attentions." + std::to_string(layer)); ++layer) {
    const Tensor& maps = out.at("attentions." + std::to_string(layer));
    check<UsageError>(maps.size(2) == maps.size(3) && maps.size(2) >= look.grid[0] * look.grid[1], "model: maps of ", maps.size(2), " x ",
                      maps.size(3), " tokens, expected one a patch");
    const std::vector<HeadKernel> more = head_kernels(maps, layer, look.grid[0], look.grid[1]);
    all.insert(all.end(), more.begin(), more.end());
  }
  return all;
}

// What a layer's learned alpha and centre say about its maps. -> (1, H, N, N)
Tensor maps_by_formula(const Tensor& alpha, const Tensor& center, std::array<int64_t, 2> grid) {
  const std::vector<double> sharpness = values_of(alpha), centers = values_of(center);
  const int64_t N = grid[0] * grid[1], X = grid[1];
  std::vector<float> out;
  for (size_t h = 0; h < sharpness.size(); ++h)
    for (int64_t q = 0; q < N; ++q) {
      std::vector<double> scores;
      for (int64_t k = 0; k < N; ++k)
        scores.push_back(-sharpness[h] * (std::pow(static_cast<double>(q / X - k / X) - centers[2 * h], 2) +
                                          std::pow(static_cast<double>(q % X - k % X) - centers[2 * h + 1], 2)));
      const double most = *std::max_element(scores.begin(), scores.end());
      double sum = 0;
      for (double& score : scores) sum += score = std::exp(score - most);
      for (const double score : scores) out.push_back(static_cast<float>(score / sum));
    }
  return Tensor::from(out, {1, std::ssize(sharpness), N, N});
}

// Heads with Gaussian positions and nothing else must have the kernels that alpha and centre say.
void hold_against_formula(const LookedAt& look, const std::vector<HeadKernel>& found, Report& report) {
  const Json own = look.model->config().value("heed", Json::object());
  if (own.value("positions", Json()) != "gaussian" || own.value("content", true)) return;
  double mass = 0, kernel = 0, aimed = 0, heads = 0;
  size_t place = 0;
  Tensor alpha;
  for (const Parameter& parameter : look.model->params().all()) {
    if (parameter.name.ends_with("positions.gaussian.alpha")) alpha = parameter.tensor;
    if (!parameter.name.ends_with("positions.gaussian.center")) continue;
    const std::vector<double> centers = values_of(parameter.tensor), sharpness = values_of(alpha);
    for (const HeadKernel& predicted : head_kernels(maps_by_formula(alpha, parameter.tensor, look.grid), 0, look.grid[0], look.grid[1])) {
      const HeadKernel& head = found.at(place++);
      mass = std::max({mass, std::abs(head.mass3 - predicted.mass3), std::abs(head.mass5 - predicted.mass5)});
      for (size_t i = 0; i < head.kernel.size(); ++i) kernel = std::max(kernel, std::abs(head.kernel[i] - predicted.kernel[i]));
      const auto h = static_cast<size_t>(head.head);
      const double down = centers[2 * h], along = centers[2 * h + 1],
                   reach = static_cast<double>(std::min(look.grid[0], look.grid[1]) - 3) - 0.5;
      if (std::max(std::abs(down), std::abs(along)) > reach || sharpness[h] < 0.05) continue;  // looks beyond the grid, or at all of it
      heads += 1;
      aimed +=
          std::abs(static_cast<double>(head.center[0]) + down) <= 0.51 && std::abs(static_cast<double>(head.center[1]) + along) <= 0.51;
    }
  }
  report.measured.push_back(at_most(look.name + ": distance of masses in the windows from the formula", 1e-4, mass));
  report.measured.push_back(at_most(look.name + ": distance of fitted kernels from the formula", 1e-4, kernel));
  report.measured.push_back(equal_to(look.name + ": heads found at their learned centre", heads, aimed));
}

// layers x heads
HeatMap head_table(const std::vector<HeadKernel>& heads, double HeadKernel::*value) {
  const int64_t layers = heads.back().layer + 1;
  HeatMap map{.rows = layers, .columns = std::ssize(heads) / layers, .down = "layer", .across = "head"};
  for (const HeadKernel& head : heads) map.values.push_back(head.*value);
  map.least = 0, map.most = 1;
  return map;
}

void add_head_figures(const LookedAt& look, const std::vector<HeadKernel>& heads, Report& report) {
  Figure film{
      .title = "Fitted kernels, " + look.name,
      .caption =
          "5 × 5 places round where each head looks most; above them that place (key - query, rows and columns) and the mass inside.",
      .parameter = "layer"};
  for (const HeadKernel& head : heads) {
    if (film.frames.empty() || film.frames.back().value != std::to_string(head.layer))
      film.frames.push_back({std::to_string(head.layer), {}});
    HeatMap map{.rows = kKernelSide, .columns = kKernelSide, .values = head.kernel};
    map.least = 0, map.most = *std::max_element(head.kernel.begin(), head.kernel.end());
    const std::string place = "(" + std::to_string(head.center[0]) + ", " + std::to_string(head.center[1]) + ") ";
    film.frames.back().plots.push_back({place + std::to_string(std::lround(100 * head.mass5)) + " %", std::move(map)});
  }
  report.figures.push_back(std::move(film));
  report.figures.push_back(
      figure("How much of a head is a convolution, " + look.name,
             "Weight inside the windows, and the share of the maps' squares that one kernel explains. At 0.9 a head acts as a convolution.",
             {{"mass 3 × 3", head_table(heads, &HeadKernel::mass3)},
              {"mass 5 × 5", head_table(heads, &HeadKernel::mass5)},
              {"explained", head_table(heads, &HeadKernel::explained)}}));
}

// -> the share of heads that act as convolutions
double judge_heads(const LookedAt& look, Report& report) {
  const std::vector<HeadKernel> heads = kernels_of(look);
  check<UsageError>(!heads.empty(), "model: ", look.name, " has no layers that attend");
  Table table{.title = look.name + (std::isnan(look.accuracy) ? "" : ", accuracy " + number_text(look.accuracy)),
              .columns = {"head", "centre, rows", "columns", "mass 3 × 3", "mass 5 × 5", "explained by one kernel",
                          "error of its convolution", "acts as one"}};
  double convolving = 0, worst = 0, apart = 0;
  for (const HeadKernel& head : heads) {
    table.rows.push_back({std::to_string(head.layer) + "." + std::to_string(head.head), static_cast<double>(head.center[0]),
                          static_cast<double>(head.center[1]), head.mass3, head.mass5, head.explained, head.error,
                          head.convolves() ? "yes" : "no"});
    convolving += head.convolves();
    if (head.convolves()) worst = std::max(worst, head.error);
    if (head.convolves()) apart = std::max(apart, std::abs(head.error * head.error - (1 - head.explained)));
  }
  report.tables.push_back(std::move(table));
  report.measured.push_back(at_most(look.name + ": error of the convolutions in place of heads that act as one", 0.35, worst));
  report.measured.push_back(at_most(look.name + ": its square, distance from the share that is not explained", 0.05, apart));
  hold_against_formula(look, heads, report);
  add_head_figures(look, heads, report);
  return convolving / static_cast<double>(heads.size());
}

Report run_kernel_heads(const KernelHeadsOptions& options, const Say& say) {
  Report report;
  report.statement =
      "A head acts as a convolution when one kernel explains its maps, for all queries and pictures. Heads with Gaussian positions do, as "
      "sharp as they have become: their kernels are those that α and the centre say. Of a content model they are found by the same "
      "numbers.";
  if (!options.model.empty()) {
    const LookedAt look = given_model(options);
    report.measured.push_back(at_least(look.name + ": share of heads that act as convolutions", 0, judge_heads(look, report)));
    return report;
  }
  const double gaussian = judge_heads(trained_model(options, "Gaussian positions", {"preset=gaussian-small"}, say), report);
  const double content =
      judge_heads(trained_model(options, "content and learned positions", {"preset=vit-tiny", "heads=4", "pooling=gap"}, say), report);
  report.measured.push_back(at_least("Gaussian positions: share of heads that act as convolutions", 0.7, gaussian));
  report.measured.push_back(at_most("content and learned positions: the same", 0.3, content));
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
          "Heads that act as a convolution are told by the mass in a window of 3 × 3 or 5 × 5 round their centre and by one kernel that "
          "fits all their maps.",
      .formula =
          R"(w_o = \operatorname{mean}_q \, a_{q, q + c + o}, \quad 1 - \frac{\sum_{q, k} (a_{qk} - w_{k - q - c})^2}{\sum_{q, k} a_{qk}^2} \ge 0.9)",
      .prepare = prepared(declare_kernel_heads, run_kernel_heads)};
}

}  // namespace heed::lab
