// L36: models with and without positions, on tasks where order matters and where it does not.
#include <algorithm>
#include <array>

#include "heed/core/random.h"
#include "heed/lab/experiments.h"
#include "heed/lab/training.h"

namespace heed::lab {
namespace {

constexpr int64_t kTestSentences = 600;

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

struct PositionTask {
  std::string name;
  std::vector<std::string> positions;  // variants, "none" first
  std::function<TrainingRun(const Path& folder, uint64_t seed)> run;
  std::vector<Trials> accuracy = {};  // by variant
};

std::vector<PositionTask> position_tasks(const PositionTaskOptions& options) {
  const auto text = [options](bool order) {
    return [options, order](const Path& folder, uint64_t seed) {
      const Path train = folder / (order ? "order.tsv" : "bag.tsv"), test = folder / (order ? "order_test.tsv" : "bag_test.tsv");
      write_sentences(train, options.sentences, options.words, order, 1000 + seed);
      write_sentences(test, kTestSentences, options.words, order, 2000 + seed);
      return TrainingRun{
          .task = "sentiment",
          .settings = {"data=" + train.string(), "test_data=" + test.string(), setting("epochs", options.epochs),
                       setting("width", options.width), "layers=2", "heads=4", "dropout=0", setting("rate", options.rate), "batch=32"}};
    };
  };
  const auto images = [options](const Path&, uint64_t seed) {
    ImageTrainingRuns runs{.images = options.images, .epochs = options.image_epochs};
    TrainingRun run = runs.for_seed(seed);
    run.add(runs.transformer());
    return run;
  };
  return {{"which word came first", {"none", "learned", "sinusoidal"}, text(true)},
          {"which word occurs", {"none", "learned", "sinusoidal"}, text(false)},
          {"shapes in images", {"none", "learned", "sinusoidal"}, images}};
}

Report run_position_tasks(const PositionTaskOptions& options, const ProgressCallback& progress) {
  std::vector<PositionTask> tasks = position_tasks(options);
  for (PositionTask& task : tasks) {
    const TemporaryFolder folder;
    for (const std::string& position : task.positions) {
      task.accuracy.emplace_back();
      if (&task != &tasks.back()) task.accuracy.back().samples = static_cast<double>(kTestSentences);
      for (int64_t i = 0; i < options.seeds; ++i) {
        const uint64_t seed = options.seed + static_cast<uint64_t>(i);
        TrainingRun run = task.run(folder.path(), seed);
        run.add({"position=" + position, setting("seed", seed)});
        const std::string name = task.name + ", " + position + ", run " + std::to_string(i + 1);
        task.accuracy.back().values.push_back(run_training(run, folder, name, progress).metric("accuracy"));
      }
    }
  }
  const PositionTask &order = tasks[0], &bag = tasks[1], &shapes = tasks[2];
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
                          interval_text(task.accuracy[2].interval()), interval_text(difference(task.accuracy[1], task.accuracy[0])),
                          interval_text(difference(task.accuracy[2], task.accuracy[1]))});
  }
  const Interval gain = difference(order.accuracy[1], order.accuracy[0]), forms = difference(shapes.accuracy[2], shapes.accuracy[1]);
  const double without = mean_of(order.accuracy[0].values), bag_without = mean_of(bag.accuracy[0].values);
  const std::string numbers = "Without positions a model gets " + number_text(100 * without) +
                              " % of “which word came first” right, with learned ones " +
                              number_text(100 * mean_of(order.accuracy[1].values)) + " %; of “which word occurs” " +
                              number_text(100 * bag_without) + " % without them. ";
  report.statement = numbers +
                     "Attention without positions sees a set of words: what depends on order is out of its reach, what depends on "
                     "occurrence is not. On images learned positions add " +
                     interval_text(difference(shapes.accuracy[1], shapes.accuracy[0])) + " to accuracy; sinusoidal minus learned is " +
                     interval_text(forms) + (forms.low <= 0 && forms.high >= 0 ? ": no measurable difference." : ".");
  if (gain.low > 0 && bag_without > 0.9) {
    // Labels of the first task do not depend on which words occur: without positions every guess is a coin toss of 600 sentences.
    report.measured = {equal_to("order, no positions: accuracy", 0.5, without, 0.06),
                       at_least("order, learned minus none: lower bound", 0, gain.low),
                       at_least("order, sinusoidal minus none: lower bound", 0, difference(order.accuracy[2], order.accuracy[0]).low),
                       at_least("occurrence, no positions: accuracy", 0.95, bag_without)};
  } else {
    report.measured = {equal_to("order, no positions: accuracy", 0.5, without, 0.06)};
    report.undecided = numbers + "Learned minus none is " + interval_text(gain) + ": too few epochs, or too few seeds, to tell.";
  }
  report.tables.push_back(std::move(table));
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
          "Without positions a model cannot learn what depends on the order of words, and needs none for what depends on their occurrence.",
      .setup =
          "Small encoders are trained with and without positions on two tasks of words, one that depends on their order and one that "
          "depends on their occurrence only, and vision transformers with learned, sinusoidal and no positions, each with several seeds.",
      .prepare = prepared(declare_position_tasks, run_position_tasks)};
}

}  // namespace heed::lab
