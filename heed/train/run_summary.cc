#include "heed/train/run_summary.h"

#include <algorithm>

#include "heed/core/parse.h"
#include "heed/train/run_json.h"

namespace heed {
namespace {

std::string run_state(const RunSummary& run, const std::optional<RunJson>& about) {
  if (is_running(run.path)) return "running";
  if (about) return about->state == "running" ? "interrupted" : about->state;
  const bool evaluated = std::filesystem::exists(run.path / "evaluation.json");  // which older versions wrote at the end
  return evaluated ? "finished" : "interrupted";
}

}  // namespace

RunSummary summarize_run(const Path& path) {
  RunSummary out{.path = path};
  out.record = read_run(path);
  const RunRecord& record = out.record;
  std::optional<RunJson> about;
  try {
    about = read_run_json(path);
  } catch (const FileError& error) {
    out.record.damaged.push_back(error.what());
  }
  out.task = record.task;
  out.name = record.name;
  out.data = record.setting({"data"});
  if (const std::string source = record.setting({"train_source"}); !source.empty()) out.data = source;
  out.model = record.setting({"from", "preset"});
  out.planned = parse_number<int64_t>(record.setting({"epochs"})).value_or(0);
  if (!record.epochs.empty()) out.epochs = record.epochs.back().epoch;
  out.metric = record.best_metric();
  if (const RunRow* best = record.best_epoch()) out.best_epoch = best->epoch, out.best = best->figures.at("validation_" + out.metric);
  for (const RunRow& row : record.speed)
    if (const auto found = row.figures.find("seconds"); found != row.figures.end()) out.seconds += found->second;
  out.state = run_state(out, about);
  if (record.evaluation.is_object()) {
    if (record.evaluation.contains("part") && record.evaluation["part"].is_string())
      out.evaluated_part = record.evaluation["part"].get<std::string>();
    if (record.evaluation.contains("figures") && record.evaluation["figures"].is_object())
      for (const auto& [name, value] : record.evaluation["figures"].items())
        if (value.is_number()) out.figures[name] = value.get<double>();
  }
  return out;
}

Json to_json(const RunSummary& run) {
  Json out{{"run", run.path.string()},
           {"task", run.task},
           {"name", run.name},
           {"data", run.data},
           {"model", run.model},
           {"state", run.state},
           {"epochs", run.epochs},
           {"planned", run.planned},
           {"metric", run.metric},
           {"best_epoch", nullptr},
           {"best", nullptr},
           {"seconds", run.seconds},
           {"judged", run.evaluated_part},
           {"figures", run.figures},
           {"damaged", run.record.damaged}};
  if (run.best_epoch > 0) out["best_epoch"] = run.best_epoch, out["best"] = run.best;
  return out;
}

ComparedSettings compared_settings(std::span<const RunRecord> runs) {
  ComparedSettings out;
  std::vector<std::string> keys;
  for (const RunRecord& run : runs)
    for (const auto& [key, value] : run.settings)
      if (std::find(keys.begin(), keys.end(), key) == keys.end()) keys.push_back(key);
  for (const std::string& key : keys) {
    std::vector<std::string> values;
    for (const RunRecord& run : runs) values.push_back(run.setting({key.c_str()}));
    if (std::any_of(values.begin(), values.end(), [&](const std::string& value) { return value != values[0]; }))
      out.emplace_back(key, std::move(values));
  }
  return out;
}

}  // namespace heed
