// heed prune: removes the least important heads of a trained model.
#include <algorithm>
#include <cmath>
#include <iostream>
#include <memory>

#include "heed/cli/command.h"
#include "heed/cli/model_name.h"
#include "heed/cli/module_tree.h"
#include "heed/cli/print_evaluation.h"
#include "heed/cli/print_json.h"
#include "heed/io/paths.h"
#include "heed/models/prune.h"
#include "heed/train/head_importance.h"
#include "heed/train/model_folder.h"
#include "heed/train/resume.h"
#include "heed/train/scores.h"

namespace heed::cli {
namespace {

struct PruneFlags {
  std::string typed, model, out, by = "gradient";
  double keep = 0.5;
  int64_t batches = 8;
  bool json = false;
};

// The first `count` heads of the order, but one head of every layer stays.
std::map<int64_t, std::vector<int64_t>> heads_to_prune(const HeadNumbers& heads, const std::vector<HeadPlace>& order, int64_t count) {
  std::map<int64_t, std::vector<int64_t>> out;
  for (const auto& [layer, head] : order) {
    if (count == 0) break;
    std::vector<int64_t>& gone = out[layer];
    if (std::ssize(gone) + 1 >= std::ssize(heads[static_cast<size_t>(layer)])) continue;
    gone.push_back(head);
    --count;
  }
  std::erase_if(out, [](const auto& each) { return each.second.empty(); });
  for (auto& [layer, gone] : out) std::sort(gone.begin(), gone.end());
  return out;
}

// What was measured and removed.
struct Pruned {
  std::string metric = {};
  HeadNumbers importance = {};
  int64_t heads = 0;               // of all layers, before
  std::vector<int64_t> left = {};  // of these, as many as were left in: one count for every score
  std::vector<double> scores = {};
  std::map<int64_t, std::vector<int64_t>> gone = {};  // by layer
  int64_t parameters_before = 0, parameters = 0;
  double score = 0;  // of the smaller model
};

// Replaces the model of the task by one without its least important heads.
Pruned prune_heads(const Task& task, const PruneFlags& options) {
  Pruned out{.metric = task.metric, .parameters_before = task.model->params().count()};
  const int64_t layers = std::ssize(prunable_heads(*task.model));
  const std::vector<std::vector<int64_t>> batches = task.batches(0);
  const auto loss = [&](int64_t i) { return task.forward(task.batch(0, batches.at(static_cast<size_t>(i))), {}).loss; };
  const auto score = [&] {
    const NoGrad no_grad;
    for (const auto& [name, value] : task.evaluate().figures)
      if (name == task.metric) return value;
    fail("prune: the task has no ", task.metric);
  };
  const HeadNumbers heads = head_numbers([&] {
    const NoGrad no_grad;
    loss(0);
  });
  const double sign = larger_is_better(task.metric) ? 1 : -1;
  out.importance = options.by == "gradient" ? importance_by_gradient(heads, std::min<int64_t>(options.batches, std::ssize(batches)), loss)
                                            : importance_by_leaving_out(heads, [&] { return sign * score(); });
  std::vector<HeadPlace> order = by_importance(out.importance);
  std::erase_if(order, [&](const HeadPlace& place) { return place.first >= layers; });  // of a pooling by attention
  out.heads = std::ssize(order);
  std::vector<int64_t> counts;
  for (int64_t tenth = 0; tenth <= 10; ++tenth)
    if (const int64_t count = out.heads * tenth / 10; counts.empty() || counts.back() != count) counts.push_back(count);
  for (const int64_t count : counts) out.left.push_back(out.heads - count);
  out.scores = scores_without(heads, order, counts, score);
  out.gone = heads_to_prune(heads, order, out.heads - std::llround(options.keep * static_cast<double>(out.heads)));
  *task.model = without_heads(*task.model, out.gone);
  out.parameters = task.model->params().count();
  out.score = score();
  return out;
}

Json pruned_json(const Pruned& pruned) {
  Json json{{"metric", pruned.metric},  {"importance", pruned.importance}, {"curve", Json::array()},
            {"pruned", Json::object()}, {"parameters", pruned.parameters}, {"parameters_before", pruned.parameters_before},
            {"score", pruned.score}};
  for (size_t i = 0; i < pruned.left.size(); ++i) json["curve"].push_back({{"kept", pruned.left[i]}, {pruned.metric, pruned.scores[i]}});
  for (const auto& [layer, list] : pruned.gone) json["pruned"][std::to_string(layer)] = list;
  return json;
}

void print_importance(const HeadNumbers& importance, const std::string& by) {
  std::cout << "importance of every head by " << (by == "gradient" ? "the gradient of its factor" : "leaving it out") << ":\n";
  std::vector<std::vector<std::string>> rows{{"layer"}};
  size_t most = 0;
  for (const std::vector<double>& layer : importance) most = std::max(most, layer.size());
  for (size_t head = 0; head < most; ++head) rows[0].push_back("head " + std::to_string(head));
  for (size_t layer = 0; layer < importance.size(); ++layer) {
    rows.push_back({std::to_string(layer)});
    for (size_t head = 0; head < most; ++head)
      rows.back().push_back(head < importance[layer].size() ? fixed_number(importance[layer][head], 5) : "");
  }
  print_rows(std::cout, rows, std::vector<bool>(most + 1, false));
}

void print_pruned(const Pruned& pruned, const std::string& by) {
  print_importance(pruned.importance, by);
  std::cout << "\nwithout the least important heads, on the validation part:\n";
  std::vector<std::vector<std::string>> rows{{"kept", pruned.metric}};
  for (size_t i = 0; i < pruned.left.size(); ++i) rows.push_back({std::to_string(pruned.left[i]), fixed_number(pruned.scores[i], 4)});
  print_rows(std::cout, rows, {false, false});
  int64_t removed = 0;
  for (const auto& [layer, list] : pruned.gone) removed += std::ssize(list);
  std::cout << '\n'
            << removed << " of " << pruned.heads << " heads removed, " << pruned.parameters_before << " -> " << pruned.parameters
            << " parameters: " << pruned.metric << ' ' << fixed_number(pruned.score, 4) << '\n';
}

void run_prune(const PruneFlags& options) {
  check<FileError>(path_exists(options.typed), options.typed, ": there is no such folder, expected a run");
  const Path run = run_of_model(options.typed);
  check<UsageError>(!run.empty(), "prune: found ", options.typed, ", expected a run: importance is measured on its data");
  check<UsageError>(options.out.empty() || run_of_model(options.out).empty(), "prune: found the run ", options.out,
                    " to write to, expected another folder: runs keep their models");
  const std::unique_ptr<TrainingJob> training = TrainingJob::for_evaluation(run, options.model);
  check_paths_of(*training, run);
  const Task task = training->make();
  if (!options.out.empty()) make_folders(options.out);  // an error before the work, not after it
  const Pruned pruned = prune_heads(task, options);
  if (!options.out.empty()) {
    if (task.save_preprocessing) task.save_preprocessing(options.out);
    save(*task.model, options.out);
  }
  if (options.json) return print_json_line(pruned_json(pruned));
  print_pruned(pruned, options.by);
  if (!options.out.empty()) std::cout << "model: " << options.out << '\n';
}

const Command prune_command(
    "prune", "Measure how much each head of a run's model matters, and remove the least important", [](Flags& flags) {
      auto options = std::make_shared<PruneFlags>();
      flags.option("run", options->typed, "Folder of a run").value("RUN").required();
      flags.option("out", options->out, "Folder to write the smaller model to, created if missing; without it nothing is written")
          .value("OUT");
      flags.option("--keep", options->keep, "Share of heads to keep; at least one of every layer stays")
          .value("SHARE")
          .must_be(within(0, 1));
      flags
          .option(
              "--by", options->by,
              "gradient: of the loss with respect to a factor on the head's output; leave-one-out: change of the metric without the head")
          .value("HOW")
          .must_be(one_of({"gradient", "leave-one-out"}));
      flags.option("--batches", options->batches, "Training batches for the gradient").value("N").must_be(positive());
      flags.flag("--json", options->json, "Print one JSON object");
      flags.footer(
          "Examples:\n  heed prune runs/classify/001\n  heed prune runs/classify/001 pruned --keep 0.4\n"
          "  heed prune runs/sentiment/001 pruned --by leave-one-out");
      return [options] {
        options->model = resolve_model(options->typed);
        run_prune(*options);
      };
    });

}  // namespace
}  // namespace heed::cli
