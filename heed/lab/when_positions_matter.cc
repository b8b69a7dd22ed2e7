// L36: models with and without positions, on tasks where order matters and where it does not.
#include <algorithm>
#include <array>

#include "heed/core/random.h"
#include "heed/lab/experiments.h"
#include "heed/lab/training.h"
#include "heed/models/vision.h"

namespace heed::lab {
namespace {

constexpr int64_t kTestSentences = 600;
constexpr double kImageChance = 0.1;  // of ten shapes

struct PositionTaskOptions {
  int64_t sentences = 1000, words = 10, epochs = 12, seeds = 3, width = 32;
  int64_t images = 1000, image_epochs = 8;
  float rate = 2e-3f;
  uint64_t seed = 1;
};

void declare_position_tasks(Settings& settings, PositionTaskOptions& options, Size size) {
  if (size == Size::full)
    options.sentences = 4000, options.epochs = 20, options.seeds = 5, options.images = 4000, options.image_epochs = 20;
  settings.add("sentences", options.sentences, "training sentences per task", {.least = 50, .most = 1e6});
  settings.add("words", options.words, "of a sentence", {.least = 3, .most = 100});
  settings.add("epochs", options.epochs, "passes over the sentences", {.least = 1, .most = 1000});
  settings.add("images", options.images, "training images", {.least = 50, .most = 1e6});
  settings.add("image_epochs", options.image_epochs, "passes over the images", {.least = 1, .most = 1000});
  settings.add("seeds", options.seeds, "runs per variant, which differ only by their seed", {.least = 2, .most = 100});
  settings.add("width", options.width, "of tokens (hidden size)", {.least = 8, .most = 512});
  settings.add("rate", options.rate, "learning rate", {.least = 1e-6, .most = 1});
  settings.add("seed", options.seed, "of the first run");
}

// Sentences of random words with two marked ones. order: both occur, the label is the first; otherwise one occurs, the label is which.
void write_sentences(const Path& file, int64_t count, int64_t words, bool order, uint64_t seed) {
  constexpr std::array filler{"tree", "river", "stone", "cloud", "bird", "house", "lamp", "road", "field", "boat", "chair", "apple"};
  Rng rng(seed);
  std::string lines = "text\tlabel\n";
  for (int64_t i = 0; i < count; ++i) {
    const std::vector<int64_t> places = random_permutation(words, rng);
    const bool red = i % 2 == 0;
    std::vector<std::string> sentence;
    for (int64_t w = 0; w < words; ++w) sentence.emplace_back(filler[static_cast<size_t>(random_permutation(std::ssize(filler), rng)[0])]);
    const auto first = static_cast<size_t>(std::min(places[0], places[1])), second = static_cast<size_t>(std::max(places[0], places[1]));
    sentence[first] = red ? "red" : "blue";
    if (order) sentence[second] = red ? "blue" : "red";
    for (size_t w = 0; w < sentence.size(); ++w) lines += (w == 0 ? "" : " ") + sentence[w];
    lines += std::string("\t") + (red ? "red" : "blue") + "\n";
  }
  write_text(file, lines);
}

// The numbers from 00 to 99, spoken digit by digit, in random order. The label is whether the number is 50 or more: "three seven" is 37 and
// below, "seven three" above. Both have the same words, so without positions at most one of them is right.
constexpr double kNumbersWithoutOrder = 0.75;  // 50 numbers have both digits on one side of 5, and half of the others can be right
void write_numbers(const Path& file, int64_t count, uint64_t seed) {
  constexpr std::array digits{"zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"};
  Rng rng(seed);
  std::vector<int64_t> order;
  std::string lines = "text\tlabel\n";
  for (int64_t i = 0; i < count; ++i) {
    if (order.empty()) order = random_permutation(100, rng);
    const auto number = static_cast<size_t>(order.back());
    order.pop_back();
    lines += std::string(digits[number / 10]) + " " + digits[number % 10] + "\t" + (number >= 50 ? "above" : "below") + "\n";
  }
  write_text(file, lines);
}

// Two 3 x 3 convolutions of stride 2 in front of the vision transformer of that config, whose patches have a quarter of their side.
Model transformer_after_convolutions(const Json& json, uint64_t seed) {
  auto params = std::make_unique<Params>(seed);
  constexpr int64_t kFirst = 8, kSecond = 16;  // channels
  Json smaller = json;
  const Config config(json, "config.json");
  const std::array<int64_t, 2> image = config.sides("image_size", 32), patch = config.sides("patch_size", 8);
  smaller["num_channels"] = kSecond, smaller["image_size"] = {image[0] / 4, image[1] / 4}, smaller["patch_size"] = patch[0] / 4;
  const Scope scope(*params, initializer::original(config.size("hidden_size", 64)));
  const Tensor first = scope.get("convolution.0", {kFirst, 3, 3, 3}, initializer::kaiming_normal()),
               second = scope.get("convolution.1", {kSecond, kFirst, 3, 3}, initializer::kaiming_normal());
  const Config inner(smaller, "config.json");
  const Network transformer = image_classifier(scope, inner, make_vit(scope / "vit", inner, false));
  const auto forward = [=](const TensorMap& inputs, const ForwardOptions& options) {
    const Conv2d half{.stride = {2, 2}, .padding = {1, 1}};
    TensorMap changed = inputs;
    changed["pixel_values"] = relu(conv2d(relu(conv2d(required_input(inputs, "pixel_values"), first, {}, half)), second, {}, half));
    return transformer.run(changed, options);
  };
  static const Architecture hybrid{.name = "TransformerAfterConvolutions",
                                   .task = ModelTask::image_classification,
                                   .family = std::make_shared<const Family>(Family{.pixels = true})};
  return {{.run = forward, .inputs = transformer.inputs}, std::move(params), hybrid, json, Json()};
}

struct PositionTask {
  std::string name;
  std::vector<std::string> positions;  // variants, "none" first
  std::function<TrainingRun(const Path& folder, uint64_t seed)> run;
  std::vector<Trials> accuracy = {};  // by variant
};

std::vector<PositionTask> position_tasks(const PositionTaskOptions& options) {
  const auto text = [options](const std::string& name, const std::function<void(const Path& file, bool test, uint64_t seed)>& write) {
    return [options, name, write](const Path& folder, uint64_t seed) {
      const Path train = folder / (name + ".tsv"), test = folder / (name + "_test.tsv");
      write(train, false, 1000 + seed);
      write(test, true, 2000 + seed);
      return TrainingRun{
          .task = "sentiment",
          .settings = {"data=" + train.string(), "test_data=" + test.string(), setting("epochs", options.epochs),
                       setting("width", options.width), "layers=2", "heads=4", "dropout=0", setting("rate", options.rate), "batch=32"}};
    };
  };
  const auto sentences = [options](bool order) {
    return [options, order](const Path& file, bool test, uint64_t seed) {
      write_sentences(file, test ? kTestSentences : options.sentences, options.words, order, seed);
    };
  };
  const auto numbers = [options](const Path& file, bool test, uint64_t seed) {
    write_numbers(file, test ? 100 : std::max<int64_t>(options.sentences, 100), seed);
  };
  const auto images = [options](bool convolutions) {
    return [options, convolutions](const Path&, uint64_t seed) {
      ImageTrainingRuns runs{.images = options.images, .epochs = options.image_epochs};
      TrainingRun run = runs.for_seed(seed);
      run.add(runs.transformer());
      run.add({"pooling=gap"});  // positions on the grid of patches have none for a class token
      if (convolutions) run.modify_task = [seed](Task& task) { *task.model = transformer_after_convolutions(task.model->config(), seed); };
      return run;
    };
  };
  return {{"which word came first", {"none", "learned", "sinusoidal"}, text("order", sentences(true))},
          {"numbers, digit by digit", {"none", "learned", "sinusoidal"}, text("numbers", numbers)},
          {"which word occurs", {"none", "learned", "sinusoidal"}, text("bag", sentences(false))},
          {"shapes in images", {"none", "learned", "sinusoidal", "relative_content_2d"}, images(false)},
          {"shapes after convolutions", {"none", "learned", "sinusoidal"}, images(true)}};
}

Report run_position_tasks(const PositionTaskOptions& options, const ProgressCallback& progress) {
  std::vector<PositionTask> tasks = position_tasks(options);
  for (PositionTask& task : tasks) {
    const TemporaryFolder folder;
    for (const std::string& position : task.positions) {
      task.accuracy.emplace_back();
      for (int64_t i = 0; i < options.seeds; ++i) {
        const uint64_t seed = options.seed + static_cast<uint64_t>(i);
        TrainingRun run = task.run(folder.path(), seed);
        run.add({"position=" + position, setting("seed", seed)});
        const std::string name = task.name + ", " + position + ", run " + std::to_string(i + 1);
        task.accuracy.back().add(run_training(run, folder, name, progress));
      }
    }
  }
  const PositionTask &order = tasks[0], &numbers = tasks[1], &bag = tasks[2], &shapes = tasks[3], &convolved = tasks[4];
  Report report;
  Table table{.title = "Test accuracy, 95 % CI",
              .columns = {"task", "none", "learned", "sinusoidal", "learned minus none", "sinusoidal minus learned"}};
  std::vector<BarSet> sets;
  for (const std::string& position : order.positions) sets.push_back({.name = position});
  std::vector<std::string> groups;
  for (const PositionTask& task : tasks) {
    groups.push_back(task.name);
    for (size_t i = 0; i < sets.size(); ++i) {
      const Interval accuracy = task.accuracy[i].interval();
      sets[i].values.push_back(accuracy.mean), sets[i].low.push_back(accuracy.low), sets[i].high.push_back(accuracy.high);
    }
    table.rows.push_back({task.name, interval_text(task.accuracy[0].interval()), interval_text(task.accuracy[1].interval()),
                          interval_text(task.accuracy[2].interval()), points_text(difference(task.accuracy[1], task.accuracy[0])),
                          points_text(difference(task.accuracy[2], task.accuracy[1]))});
  }
  const auto gain = [](const PositionTask& task, size_t variant) { return difference(task.accuracy[variant], task.accuracy[0]); };
  const double without = mean_of(order.accuracy[0].values), bag_without = mean_of(bag.accuracy[0].values);
  const std::string numbers_text = "Without positions a model gets " + interval_text(order.accuracy[0].interval()) +
                                   " of “which word came first” right, with learned ones " + interval_text(order.accuracy[1].interval()) +
                                   "; of numbers that are spoken digit by digit " + interval_text(numbers.accuracy[0].interval()) +
                                   " and " + interval_text(numbers.accuracy[1].interval()) + "; of “which word occurs” " +
                                   interval_text(bag.accuracy[0].interval()) + " without positions. ";
  const auto measurable = [](const Interval& change) {
    return points_text(change) + (change.low <= 0 && change.high >= 0 ? ", no measurable difference" : "");
  };
  const Interval relative = shapes.accuracy[3].interval();
  report.statement =
      numbers_text +
      "Attention without positions sees a set of words: it cannot use their order, only which words occur. On patches of images, learned "
      "positions minus none is " +
      measurable(gain(shapes, 1)) + "; sinusoidal minus learned is " + measurable(difference(shapes.accuracy[2], shapes.accuracy[1])) +
      ". After two convolutions, whose outputs depend on their neighbourhood, learned positions minus none is " +
      measurable(gain(convolved, 1)) + ". The relative form with four terms, trained on the grid of patches, reaches " +
      interval_text(relative) + ".";
  // Labels of the first task do not depend on which words occur: without positions every guess is a coin toss of 600 sentences.
  report.measured = {equal_to("order, no positions: accuracy", 0.5, without, 0.06),
                     at_most("numbers, no positions: accuracy", kNumbersWithoutOrder, mean_of(numbers.accuracy[0].values))};
  if (gain(order, 1).low > 0 && gain(numbers, 1).low > 0 && bag_without > 0.9) {
    for (const size_t variant : {1, 2}) {
      const std::string minus_none = ", " + order.positions[variant] + " minus none: lower bound";
      report.measured.push_back(at_least("order" + minus_none, 0, gain(order, variant).low));
      report.measured.push_back(at_least("numbers" + minus_none, 0, gain(numbers, variant).low));
    }
    report.measured.push_back(at_least("occurrence, no positions: accuracy", 0.95, bag_without));
    if (relative.low > kImageChance)
      report.measured.push_back(
          at_least("images, relative form with four terms: accuracy, lower bound, above chance", kImageChance, relative.low));
  } else {
    report.undecided = numbers_text + "Learned minus none is " + points_text(gain(order, 1)) + " for the order of words and " +
                       points_text(gain(numbers, 1)) + " for numbers: too few epochs, or too few seeds, to tell.";
  }
  report.tables.push_back(std::move(table));
  report.tables.push_back(
      {.title = "Shapes in images: the relative form with four terms on the grid of patches",
       .columns = {"positions", "test accuracy, 95 % CI", "minus learned"},
       .rows = {{"four terms", interval_text(relative), points_text(difference(shapes.accuracy[3], shapes.accuracy[1]))}}});
  report.figures.push_back(figure("Accuracy with and without positions", "Mean over runs with its 95 % confidence interval.",
                                  Plot{.body = Bars{.up = {"accuracy", false, 0.0, 1.0}, .groups = groups, .sets = sets}}));
  return report;
}

}  // namespace

Experiment when_positions_matter() {
  return {
      .number = "L36",
      .name = "when-positions-matter",
      .topic = Topic::positions,
      .title = "When positions are needed",
      .claim =
          "Without positions a model cannot learn what depends on the order of words; what depends only on which words occur needs no "
          "positions.",
      .setup =
          "Small encoders are trained with and without positions: to tell which of two words came first; to tell whether a number of two "
          "digits, given as words, is 50 or more; and to tell which word occurs. So are vision transformers on images of shapes, with and "
          "without convolutions before the patches. Each has several seeds.",
      .budget = {"epochs", "image_epochs"},
      .gpu = true,
      .prepare = prepared(declare_position_tasks, run_position_tasks)};
}

}  // namespace heed::lab
