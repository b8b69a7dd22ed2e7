// L47: how many heads a trained encoder and a translator need (Michel, Levy and Neubig 2019), and what the heads attend to.
#include <algorithm>
#include <cmath>
#include <map>

#include "heed/attention/tap.h"
#include "heed/lab/experiments.h"
#include "heed/lab/training.h"
#include "heed/ops/ops.h"
#include "heed/train/head_importance.h"
#include "heed/train/optimizer_step.h"
#include "heed/train/training_job.h"

namespace heed::lab {
namespace {

struct PruningOptions {
  int64_t width = 64, layers = 2, heads = 8, seeds = 4, image_steps = 240, translation_steps = 600;
  float loss = 0.02f;
  uint64_t seed = 1;
};

void declare_pruning(Settings& settings, PruningOptions& options, Size size) {
  if (size == Size::full) options.seeds = 5, options.image_steps = 2000, options.translation_steps = 3000;
  settings.add("width", options.width, "of tokens", {.least = 8, .most = 512});
  settings.add("layers", options.layers, "of the encoder, and of each side of the translator", {.least = 1, .most = 12});
  settings.add("heads", options.heads, "of each layer", {.least = 2, .most = 32});
  settings.add("image_steps", options.image_steps, "training steps of the encoder", {.least = 0, .most = 1e6});
  settings.add("translation_steps", options.translation_steps, "training steps of the translator", {.least = 0, .most = 1e6});
  settings.add("loss", options.loss, "accuracy that may be lost", {.least = 0, .most = 0.5});
  settings.add("seeds", options.seeds, "runs, which differ only by their seed", {.least = 2, .most = 100});
  settings.add("seed", options.seed, "of the first run");
}

struct HeadRow {  // of one model, for the table
  std::string place;
  double gradient, without, offset, mass;
};

struct PrunedKind {
  std::string name, task;
  std::vector<std::string> settings;
  int64_t steps;
  double chance;
  std::vector<double> kept = {};                                                             // numbers of heads
  std::vector<std::vector<double>> by_gradient = {}, by_leaving_out = {}, worst_first = {};  // by seed: accuracy for every `kept`
  std::vector<HeadRow> rows = {};                                                            // of the first seed
  Trials whole = {}, half = {}, worst_half = {};  // accuracy with all heads, without the less, and without the more important half
};

void train_steps(const Task& task, const TrainOptions& train_options, int64_t steps, uint64_t seed, const std::string& name,
                 const ProgressCallback& progress) {
  OptimizerStep optimizer_step(*task.model, train_options);
  Rng rng(seed);
  int64_t step = 0;
  for (int64_t epoch = 0; step < steps; ++epoch)
    for (const std::vector<int64_t>& samples : task.batches(epoch)) {
      if (step == steps) break;
      const StepOutput outcome = task.forward(task.batch(epoch, samples), {.mode = training_with(rng)});
      optimizer_step.zero_grad();
      backward(outcome.loss);
      optimizer_step.step(static_cast<float>(rate_at(train_options, step, steps)));
      if (++step % 20 == 0) progress(name + ", step " + std::to_string(step));
    }
}

// The offset key - query with the largest mean weight, and that weight: near 1 for heads that look at a fixed position.
void add_offsets(std::vector<HeadRow>& rows, const HeadNumbers& heads, const std::function<void()>& pass) {
  const AttentionTap tap;
  pass();
  size_t row = 0;
  for (size_t call = 0; call < heads.size(); ++call) {
    const Tensor& map = tap.looks().at(call).probabilities;  // (B, H, N, M)
    const int64_t N = map.size(2), M = map.size(3);
    const std::vector<float> mean_map = mean(map, {0}).to_vector<float>();  // (H, N, M)
    for (int64_t head = 0; head < map.size(1); ++head, ++row) {
      std::map<int64_t, double> sums;
      for (int64_t i = 0; i < N; ++i)
        for (int64_t j = 0; j < M; ++j) sums[j - i] += static_cast<double>(mean_map[static_cast<size_t>((head * N + i) * M + j)]);
      double best = 0;
      for (const auto& [offset, sum] : sums) {
        double queries = 0;  // whose key at this offset exists
        for (int64_t i = 0; i < N; ++i) queries += i + offset >= 0 && i + offset < M;
        if (queries < static_cast<double>(N) / 2 || sum / queries <= best) continue;
        best = sum / queries;
        rows[row].offset = static_cast<double>(offset), rows[row].mass = best;
      }
    }
  }
}

void prune_once(PrunedKind& kind, const PruningOptions& options, uint64_t seed, const ProgressCallback& progress) {
  TrainingJob training(kind.task);
  training.apply(kind.settings);
  training.apply({setting("width", options.width), setting("layers", options.layers), setting("heads", options.heads),
                  setting("seed", seed), "dropout=0"});
  const Task task = training.make();
  train_steps(task, training.train_options(), kind.steps, seed, kind.name, progress);
  progress(kind.name + ", heads");
  const std::vector<std::vector<int64_t>> epoch = task.batches(0);
  std::vector<Batch> batches;
  for (size_t i = 0; i < std::min<size_t>(epoch.size(), 8); ++i) batches.push_back(task.batch(0, epoch[i]));
  const size_t half = (batches.size() + 1) / 2;  // importance is measured on one half, accuracy on the other
  const auto loss = [&](int64_t i) { return task.forward(batches[static_cast<size_t>(i)], {}).loss; };
  double all_labels = 0;  // of the last score
  const auto score_on = [&](size_t begin, size_t end) {
    const NoGrad no_grad;
    double right = 0;
    all_labels = 0;
    for (size_t i = begin; i < end; ++i) {
      const std::vector<int64_t> labels = batches[i].inputs.at("labels").to_vector<int64_t>(),
                                 guesses = argmax((*task.model)(batches[i].inputs).at("logits")).to_vector<int64_t>();
      for (size_t j = 0; j < labels.size(); ++j) right += labels[j] == guesses[j], all_labels += labels[j] >= 0;
    }
    return right / all_labels;
  };
  const auto held_out = [&] { return score_on(batches.size() > 1 ? half : 0, batches.size()); };
  const HeadNumbers heads = head_numbers([&] {
    const NoGrad no_grad;
    loss(0);
  });
  const HeadNumbers gradient = importance_by_gradient(heads, static_cast<int64_t>(half), loss),
                    without = importance_by_leaving_out(heads, [&] { return score_on(0, half); });
  std::vector<HeadPlace> order = by_importance(gradient);
  const int64_t all = std::ssize(order);
  std::vector<int64_t> counts;
  for (int64_t tenth = 0; tenth <= 10; ++tenth) counts.push_back(all * tenth / 10);
  kind.kept.clear();
  for (const int64_t count : counts) kind.kept.push_back(static_cast<double>(all - count));
  kind.by_gradient.push_back(scores_without(heads, order, counts, held_out));
  kind.by_leaving_out.push_back(scores_without(heads, by_importance(without), counts, held_out));
  std::reverse(order.begin(), order.end());
  kind.worst_first.push_back(scores_without(heads, order, counts, held_out));
  kind.whole.values.push_back(kind.by_gradient.back()[0]);
  for (Trials* trials : {&kind.whole, &kind.half, &kind.worst_half}) trials->samples = all_labels;
  kind.half.values.push_back(kind.by_gradient.back()[5]), kind.worst_half.values.push_back(kind.worst_first.back()[5]);
  if (!kind.rows.empty()) return;
  for (size_t call = 0; call < heads.size(); ++call)
    for (size_t head = 0; head < heads[call].size(); ++head)
      kind.rows.push_back({std::to_string(call) + "." + std::to_string(head), gradient[call][head], without[call][head], NAN, NAN});
  const NoGrad no_grad;
  add_offsets(kind.rows, heads, [&] { loss(0); });
}

Lines kept_curves(const PrunedKind& kind) {
  Lines lines{.across = {"heads kept"}, .up = {"accuracy", false, 0.0, 1.0}};
  const auto add = [&](const char* name, const std::vector<std::vector<double>>& curves, Mark mark) {
    Series series = mean_curve(name, curves);
    series.x = kind.kept, series.mark = mark;
    lines.series.push_back(std::move(series));
  };
  add("least important first, by gradient", kind.by_gradient, Mark::both);
  add("by leaving one out", kind.by_leaving_out, Mark::dashed);
  add("most important first", kind.worst_first, Mark::line);
  return lines;
}

Report run_pruning(const PruningOptions& options, const ProgressCallback& progress) {
  std::vector<PrunedKind> kinds{
      {"encoder",
       "classify",
       {"preset=vit-tiny", "data=shapes:2000", "patch=4", "pooling=gap", "rate=2e-3", "batch=64", "pad=0", "flip=false",
        "label_smoothing=0"},
       options.image_steps,
       0.1},
      {"translator", "translate", {"data=numbers", "rate=2e-3", "batch=64", "label_smoothing=0"}, options.translation_steps, 0.2}};
  for (PrunedKind& kind : kinds) {
    kind.settings.push_back(setting("feed_forward", 2 * options.width));
    for (int64_t i = 0; i < options.seeds; ++i) prune_once(kind, options, options.seed + static_cast<uint64_t>(i), progress);
  }
  Report report;
  std::string undecided;
  for (const PrunedKind& kind : kinds) {
    const Interval whole = kind.whole.interval(), lost = difference(kind.whole, kind.half), apart = difference(kind.half, kind.worst_half);
    const auto all = static_cast<double>(kind.rows.size()), loss = static_cast<double>(options.loss);
    const std::string allowed = number_text(std::round(1e4 * loss) / 100) + " points";
    double positional = 0, same_end = 0;  // without any head the order does not count
    for (const HeadRow& row : kind.rows) positional += row.mass >= 0.5;
    for (size_t i = 0; i < kind.by_gradient.size(); ++i)
      same_end = std::max(same_end, std::abs(kind.by_gradient[i].back() - kind.worst_first[i].back()));
    report.statement += "The " + kind.name + " (" + number_text(all) + " heads, accuracy " + interval_text(whole) + ") loses " +
                        points_text(lost) + " of accuracy without the less important half of its heads, " +
                        (lost.high <= loss ? "at most " + allowed + ": most heads can go"
                         : lost.low > loss ? "more than " + allowed + ": most are needed"
                                           : "which may be more or less than " + allowed) +
                        ". Without the more important half it is worse by another " + points_text(apart) + ". " +
                        (positional == 0   ? "No head puts"
                         : positional == 1 ? "One head puts"
                                           : number_text(positional) + " heads put") +
                        " half of its attention or more on one offset. ";
    if (whole.low < 2 * kind.chance)
      undecided += kind.name + ": accuracy with all heads is " + interval_text(whole) + ", little above chance: the runs are too short. ";
    else if (apart.low <= 0 && apart.high >= 0)
      undecided += kind.name + ": without the less minus without the more important half is " + points_text(apart) + ": too few runs. ";
    else
      report.measured.push_back(at_least(
          kind.name + ": accuracy without the less important half of the heads, minus without the other half, lower bound", 0, apart.low));
    report.measured.push_back(equal_to(kind.name + ": difference of the orders without all heads", 0, same_end));
    const std::string layers = kind.task == "translate" ? " (layers: the encoder's, then self- and cross-attention of the decoder's)" : "";
    Table table{.title = kind.name + ", first run" + layers,
                .columns = {"layer.head", "gradient", "accuracy lost without it", "most attended offset", "mean weight there"}};
    for (const HeadRow& row : kind.rows) table.rows.push_back({row.place, row.gradient, row.without, row.offset, row.mass});
    report.tables.push_back(std::move(table));
    report.figures.push_back(figure("Accuracy by heads kept, " + kind.name, "Mean over runs; bands from the lowest to the highest.",
                                    Plot{.body = kept_curves(kind)}));
  }
  report.statement.pop_back();
  report.undecided = undecided;
  return report;
}

}  // namespace

Experiment head_pruning() {
  return {
      .number = "L47",
      .name = "head-pruning",
      .topic = Topic::learning,
      .title = "How many heads are needed",
      .claim =
          "Heads of a trained model differ in importance: without the less important half a model loses much less accuracy than without "
          "the more important half.",
      .formula =
          R"(I_h = \operatorname{mean} \left| \frac{\partial L}{\partial \xi_h} \right|, \quad z = \sum_h \xi_h \, z_h W_h, \; \xi_h = 1)",
      .setup =
          "A vision transformer and an encoder-decoder are trained. The importance of each head is measured by gradient and by "
          "leaving it out, on one half of some training batches; then more and more heads are switched off, and accuracy (of classes, "
          "and of the next word of a translation) is measured on the other half.",
      .budget = {"image_steps", "translation_steps"},
      .prepare = prepared(declare_pruning, run_pruning)};
}

}  // namespace heed::lab
