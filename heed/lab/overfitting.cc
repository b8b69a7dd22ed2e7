// L46: training and validation curves part; early stopping, dropout, augmentation and weight decay.
#include <algorithm>
#include <cmath>

#include "heed/lab/experiments.h"
#include "heed/lab/training.h"

namespace heed::lab {
namespace {

struct OverfittingOptions {
  ImageTrainingRuns runs = {.images = 300, .epochs = 60, .seeds = 4};
  float dropout = 0.2f, decay = 0.3f;
};

void declare_overfitting(Settings& settings, OverfittingOptions& options, Size size) {
  if (size == Size::full) options.runs.images = 1000, options.runs.epochs = 120, options.runs.seeds = 5;
  options.runs.declare(settings);
  settings.add("dropout", options.dropout, "probability of dropout, where it is on", {.least = 0, .most = 0.9});
  settings.add("decay", options.decay, "weight decay, where it is on", {.least = 0, .most = 10});
}

struct Remedy {
  std::string name;
  std::vector<std::string> settings;
  std::vector<std::vector<double>> train = {}, test = {}, accuracy = {};  // by seed and epoch: losses, test accuracy

  // By seed: loss after the last epoch, and the smallest with its epoch.
  std::vector<double> last() const {
    std::vector<double> out;
    for (const std::vector<double>& each : test) out.push_back(each.back());
    return out;
  }
  std::vector<double> least() const {
    std::vector<double> out;
    for (const std::vector<double>& each : test) out.push_back(*std::min_element(each.begin(), each.end()));
    return out;
  }
  double best_epoch() const {
    double out = 0;
    for (const std::vector<double>& each : test)
      out += static_cast<double>(std::min_element(each.begin(), each.end()) - each.begin() + 1) / static_cast<double>(test.size());
    return out;
  }
};

std::vector<double> minus(const std::vector<double>& a, const std::vector<double>& b) {
  std::vector<double> out;
  for (size_t i = 0; i < a.size(); ++i) out.push_back(a[i] - b[i]);
  return out;
}

void train_remedy(Remedy& remedy, const OverfittingOptions& options, const ProgressCallback& progress) {
  const TemporaryFolder folder;
  for (int64_t i = 0; i < options.runs.seeds; ++i) {
    TrainingRun run = options.runs.for_seed(options.runs.seed + static_cast<uint64_t>(i));
    if (options.runs.data == "shapes") run.add({"data=shapes:" + std::to_string(options.runs.images + 2000)});
    run.add(options.runs.transformer());
    run.add({"dropout=0", "weight_decay=0", "label_smoothing=0", "schedule=constant"});
    run.add(remedy.settings);
    run.curves = true;
    const TrainedModel trained = run_training(run, folder, remedy.name + ", run " + std::to_string(i + 1), progress);
    remedy.train.push_back(trained.losses), remedy.test.push_back(trained.curve("loss")),
        remedy.accuracy.push_back(trained.curve("accuracy"));
  }
}

Report run_overfitting(const OverfittingOptions& options, const ProgressCallback& progress) {
  std::vector<Remedy> remedies{{"nothing", {}},
                               {"dropout", {"dropout=" + setting_text(options.dropout)}},
                               {"augmentation", {"pad=4", "flip=true"}},
                               {"weight decay", {"weight_decay=" + setting_text(options.decay)}}};
  for (Remedy& remedy : remedies) train_remedy(remedy, options, progress);
  const Remedy& plain = remedies[0];
  const Interval rise = confidence(minus(plain.last(), plain.least()));
  double train_rise = -INFINITY;  // of the training loss since the epoch with the smallest test loss
  for (size_t i = 0; i < plain.test.size(); ++i) {
    const auto best = static_cast<size_t>(std::min_element(plain.test[i].begin(), plain.test[i].end()) - plain.test[i].begin());
    train_rise = std::max(train_rise, plain.train[i].back() - plain.train[i][best]);
  }

  Report report;
  Table table{.title = "Test loss",
              .columns = {"remedy", "smallest", "its epoch", "at the end", "rise, 95 % CI", "rise minus that of nothing",
                          "test accuracy at the end"}};
  std::string helped, did_not;
  const auto text = [](const Interval& interval) {
    return number_text(interval.mean) + " (" + number_text(interval.low) + " to " + number_text(interval.high) + ")";
  };
  double helping = 0;
  for (const Remedy& remedy : remedies) {
    std::vector<double> accuracies;
    for (const std::vector<double>& each : remedy.accuracy) accuracies.push_back(each.back());
    const std::vector<double> rises = minus(remedy.last(), remedy.least());
    const Interval less = confidence(minus(rises, minus(plain.last(), plain.least())));
    table.rows.push_back({remedy.name, mean_of(remedy.least()), remedy.best_epoch(), mean_of(remedy.last()), text(confidence(rises)),
                          text(less), interval_text(share_confidence(accuracies))});
    if (&remedy == &plain) continue;
    helping += less.high < 0;
    std::string& list = less.high < 0 ? helped : did_not;
    list += (list.empty() ? "" : "; ") + remedy.name + ", " + text(less);
  }
  const std::string numbers = "Trained on " + std::to_string(options.runs.images) +
                              " images without regularization, the test loss is smallest after epoch " +
                              std::to_string(std::lround(plain.best_epoch())) + " and has risen by " + text(rise) + " after " +
                              std::to_string(options.runs.epochs) + " epochs. ";
  report.statement = numbers +
                     "The training loss keeps falling: the model memorizes its images. Early stopping keeps the model with the smallest "
                     "loss at no cost. " +
                     (helped.empty() ? "" : "The rise is smaller (difference, 95 % interval) with " + helped + ". ") +
                     (did_not.empty() ? "" : "No difference is measurable with " + did_not + ".");
  if (rise.low > 0) {
    report.measured.push_back(at_least("without regularization: rise of the test loss after its minimum, lower bound", 0, rise.low));
    report.measured.push_back(at_most("without regularization: change of the training loss since then", 0, train_rise));
    report.measured.push_back(at_least("remedies with a smaller rise", 1, helping));
  } else {
    report.measured.push_back(at_least("runs", 1, static_cast<double>(plain.test.size())));
    report.undecided = numbers + "That is within the interval of its measurement: the run is too short to overfit, or has too few seeds.";
  }
  report.tables.push_back(std::move(table));
  Figure film{.title = "Where the curves part",
              .caption = "Loss on the training images and on the test images; bands from the lowest run to the highest.",
              .parameter = "remedy"};
  double most = 0;
  for (const Remedy& remedy : remedies)
    for (const std::vector<double>& each : remedy.test) most = std::max(most, *std::max_element(each.begin(), each.end()));
  for (const Remedy& remedy : remedies)
    film.frames.push_back({remedy.name,
                           {Plot{.body = Lines{.across = {"epoch"},
                                               .up = {"loss", false, 0.0, most},
                                               .series = {mean_curve("training", remedy.train), mean_curve("test", remedy.test)}}}}});
  report.figures.push_back(std::move(film));
  return report;
}

}  // namespace

Experiment overfitting() {
  return {.number = "L46",
          .name = "overfitting",
          .topic = Topic::learning,
          .title = "Overfitting, and what moves it",
          .claim =
              "On few images the test loss rises again while the training loss keeps falling; augmentation, dropout or weight decay reduce "
              "the rise.",
          .setup =
              "Small vision transformers are trained on few images, once without regularization and once each with augmentation, dropout "
              "and weight decay, with several seeds. Training and test loss are measured after every epoch.",
          .budget = {"epochs"},
          .gpu = true,
          .prepare = prepared(declare_overfitting, run_overfitting)};
}

}  // namespace heed::lab
