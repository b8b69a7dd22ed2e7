#include "heed/cli/eval_run.h"

#include <iostream>

#include "heed/cli/int8_flag.h"
#include "heed/train/resume.h"

namespace heed::cli {

RunEvaluation evaluate_on_run_data(const Path& run, const Path& model, const std::string& part, bool int8) {
  const std::unique_ptr<TrainingJob> training = TrainingJob::for_evaluation(run, model);
  check_paths_of(*training, run);
  const Task task = training->make();
  check<UsageError>(part != "train", "eval: --part train of the data of a run, expected test or validation; heed eval ", run.string(),
                    " DATA --part train evaluates on DATA");
  check<UsageError>(part != "test" || task.test, "eval: --part test, but the data of ", run.string(),
                    " has no test part, expected --part validation");
  if (const std::optional<RunJson> about = read_run_json(run)) {
    std::string changes;
    for (const Change& each : data_changed(about->data, task.data)) changes += (changes.empty() ? "" : "; ") + each.text();
    if (!changes.empty())
      std::cerr << "heed: warning: the data changed since the run started: " << changes
                << ". Samples that are held out now may have been trained on\n";
  }
  const std::string chosen = !part.empty() ? part : task.test ? "test" : "validation";
  const NoGrad no_grad;
  *task.model = load(model, {.weights = weights_for(int8)});
  int64_t items = 0;
  for (const auto& [name, count] : task.counts)
    if (name == chosen) items = count;
  return {.evaluation = chosen == "test" ? task.test() : task.evaluate(),
          .data = training->settings().text("data"),
          .what = std::to_string(items) + " items, " + chosen + " part of " + run.string()};
}

}  // namespace heed::cli
