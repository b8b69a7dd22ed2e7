// L38: vision transformers at image sizes that they were not trained on, by the kind of head.
#include <algorithm>
#include <cmath>

#include "heed/data/image_data.h"
#include "heed/lab/experiments.h"
#include "heed/lab/training.h"
#include "heed/models/architecture.h"
#include "heed/models/resolution.h"
#include "heed/ops/ops.h"
#include "heed/train/evaluate.h"

namespace heed::lab {
namespace {

void declare_resolutions(Settings& settings, ImageTrainingRuns& options, Size size) {
  options.images = 2000, options.epochs = 12, options.seeds = 3;
  if (size == Size::full) options.images = 6000, options.epochs = 30, options.seeds = 5;
  options.declare(settings);
}

struct HeadAtSizes {
  std::string key, name;
  std::vector<Trials> accuracy = {};  // by size
  double class_token_moved = 0;       // largest change of its position
  double same_size = 0;               // largest difference of accuracy at the own size
};

// Sides of images: from half of the trained one to twice, in steps of a patch.
std::vector<int64_t> sides_of(int64_t trained, int64_t patch) {
  std::vector<int64_t> out;
  for (const int64_t side : {trained / 2, trained - patch, trained, trained + patch, trained + trained / 2, 2 * trained})
    if (side >= patch && side % patch == 0 && std::find(out.begin(), out.end(), side) == out.end()) out.push_back(side);
  return out;
}

double accuracy_in(const Evaluation& evaluation) {
  for (const auto& [name, value] : evaluation.figures)
    if (name == "accuracy") return value;
  fail("L38: the evaluation has no accuracy");
}

std::string refusal_at(const Model& model, int64_t side) {
  try {
    at_image_size(model, {side, side});
  } catch (const FileError& error) {
    return error.what();
  }
  return "";
}

Report run_resolutions(const ImageTrainingRuns& options, const ProgressCallback& progress) {
  std::vector<HeadAtSizes> heads{{"cls", "class token"}, {"gap", "mean"}, {"map", "attention"}};
  const TemporaryFolder folder;
  const ImageData test =
      read_images(options.data == "shapes" ? "shapes:" + std::to_string(3 * options.images) : options.data, DataPart::test);
  check<UsageError>(test.count() > 0, "L38: data=", options.data, " has no test part, expected one");
  std::vector<int64_t> sides;
  int64_t trained_side = 0;
  const auto trained_model = [&](const std::string& pooling, int64_t seed, int64_t epochs) {
    TrainingRun run = options.for_seed(options.seed + static_cast<uint64_t>(seed));
    run.add(options.transformer());
    run.add({"pooling=" + pooling, setting("epochs", epochs)});
    return run_training(run, folder, pooling + ", run " + std::to_string(seed + 1), progress);
  };
  const int64_t classes = std::ssize(test.classes);
  for (HeadAtSizes& head : heads)
    for (int64_t i = 0; i < options.seeds; ++i) {
      const TrainedModel trained = trained_model(head.key, i, options.epochs);
      trained_side = Config(trained.model->config(), "config.json").sides("image_size", 224)[0];
      sides = sides_of(trained_side, options.patch);
      head.accuracy.resize(sides.size());
      for (size_t s = 0; s < sides.size(); ++s) {
        progress(head.name + " at " + std::to_string(sides[s]) + " pixels");
        const Path sized = folder.path() / (head.key + std::to_string(i) + "-" + std::to_string(sides[s]));
        save_at_image_size(trained.folder, sized, {sides[s], sides[s]});
        const Model model = load(sized);
        const double found = accuracy_in(evaluate_images(model, sized, test));
        head.accuracy[s].values.push_back(found);
        head.accuracy[s].samples = static_cast<double>(test.count());
        if (sides[s] == trained_side)
          head.same_size =
              std::max(head.same_size, std::abs(found - accuracy_in(evaluate_images(load(trained.folder), trained.folder, test))));
        if (head.key != "cls") continue;
        const NoGrad no_grad;
        const Tensor before = position_table(*trained.model), after = position_table(model);
        head.class_token_moved =
            std::max(head.class_token_moved, largest_difference(contiguous(slice(before, 1, 0, 1)), contiguous(slice(after, 1, 0, 1))));
      }
    }
  const TrainedModel flatten = trained_model("flatten", 0, 1);
  int64_t refused = 0;
  std::string reason;
  for (const int64_t side : sides) {
    if (side == trained_side) continue;
    const std::string text = refusal_at(*flatten.model, side);
    refused += text.find("flatten head") != std::string::npos;
    if (reason.empty()) reason = text;
  }

  Report report;
  const double chance = 1 / static_cast<double>(classes);
  const auto own = static_cast<size_t>(std::find(sides.begin(), sides.end(), trained_side) - sides.begin());
  report.measured.push_back(
      equal_to("all tokens: sizes that are refused", static_cast<double>(sides.size() - 1), static_cast<double>(refused)));
  std::string lists;
  Table table{.title = "Test accuracy at each image size, 95 % CI", .columns = {"side", "patches"}};
  Lines lines{.across = {"side of the image"}, .up = {"accuracy", false, 0.0}};
  for (const HeadAtSizes& head : heads) {
    table.columns.push_back(head.name);
    Series series{.name = head.name, .mark = Mark::both};
    std::string works, lost;
    for (size_t s = 0; s < sides.size(); ++s) {
      const Interval interval = head.accuracy[s].interval();
      series.x.push_back(static_cast<double>(sides[s])), series.y.push_back(interval.mean);
      series.low.push_back(interval.low), series.high.push_back(interval.high);
      if (s == own) continue;
      std::string& list = interval.low > chance ? works : lost;
      list += (list.empty() ? "" : ", ") + std::to_string(sides[s]) + " (" + percent_text(interval.mean) + ")";
    }
    lists += (lists.empty() ? "" : "; ") + head.name + ", " + percent_text(head.accuracy[own].interval().mean) + ", above chance at " +
             (works.empty() ? "no other size" : works) + (lost.empty() ? "" : ", not at " + lost);
    lines.series.push_back(std::move(series));
    for (const size_t near : {own - (own > 0 ? 1 : 0), std::min(own + 1, sides.size() - 1)})
      if (near != own && head.accuracy[own].interval().low > 1.5 * chance)
        report.measured.push_back(at_least(head.name + " at " + std::to_string(sides[near]) + " pixels: accuracy, lower bound", chance,
                                           head.accuracy[near].interval().low));
  }
  for (size_t s = 0; s < sides.size(); ++s) {
    const int64_t patches = (sides[s] / options.patch) * (sides[s] / options.patch);
    std::vector<Cell> row{static_cast<double>(sides[s]), static_cast<double>(patches)};
    for (const HeadAtSizes& head : heads) row.emplace_back(interval_text(head.accuracy[s].interval()));
    table.rows.push_back(std::move(row));
  }
  for (const HeadAtSizes& head : heads)
    report.measured.push_back(equal_to(head.name + ": change of accuracy at its own size", 0, head.same_size));
  report.measured.push_back(equal_to("class token: change of its position", 0, heads[0].class_token_moved));
  lists = "Accuracy at the " + std::to_string(trained_side) + " pixels of the training images, and at other sizes: " + lists + ". ";
  report.statement = "A head on one vector takes any number of patches; positions are interpolated over the grid. " + lists +
                     "A linear layer on all tokens fixes their number, so other sizes are refused: “" + reason + "”.";
  const bool learned =
      std::all_of(heads.begin(), heads.end(), [&](const HeadAtSizes& head) { return head.accuracy[own].interval().low > 1.5 * chance; });
  if (!learned)
    report.undecided = "After " + std::to_string(options.epochs) + " epochs of " + std::to_string(options.images) +
                       " images a model is little above chance at its own size, so there is nothing to lose at others. " + lists;
  report.tables = {std::move(table)};
  report.figures.push_back(figure("Accuracy by image size", "Mean over runs with its 95 % confidence interval; trained at one size.",
                                  Plot{.body = std::move(lines)}));
  return report;
}

}  // namespace

Experiment other_resolutions() {
  return {
      .number = "L38",
      .name = "other-resolutions",
      .topic = Topic::learning,
      .title = "Vision transformers at other image sizes",
      .claim = "A head on all tokens fixes the number of patches; class token, mean and attention take any, with positions interpolated.",
      .formula = R"(\tilde{p}_{ij} = \sum_{m, n} w(y_i - m) \, w(x_j - n) \, p_{mn}, \quad w \text{: cubic})",
      .setup =
          "Small vision transformers with three heads are trained at one image size. Their learned positions are interpolated to "
          "other sizes, and the same test images, resized, are classified. The same is tried with a head on all tokens.",
      .budget = {"epochs"},
      .prepare = prepared(declare_resolutions, run_resolutions)};
}

}  // namespace heed::lab
