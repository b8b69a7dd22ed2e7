// /api/runs: training runs and their curves; starting, stopping and resuming them.
#include <signal.h>

#include <algorithm>

#include "heed/core/parse.h"
#include "heed/io/json_reader.h"
#include "heed/io/paths.h"
#include "heed/serve/app.h"
#include "heed/serve/run_files.h"
#include "heed/serve/setting_json.h"
#include "heed/train/head_record.h"
#include "heed/train/model_folder.h"
#include "heed/train/run_json.h"
#include "heed/train/run_summary.h"
#include "heed/train/sample_json.h"
#include "heed/train/training_job.h"

namespace heed::serve {
namespace {

bool is_plain_name(const std::string& name) {
  constexpr std::string_view letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-";
  return !name.empty() && name.size() <= 64 && name.find_first_not_of(letters) == std::string::npos && name != "." && name != "..";
}

const Path& runs_folder(const Call& call) {
  const Path& folder = call.app.options().models.runs;
  require(!folder.empty(), 404, "there is no folder of runs; heed serve --runs FOLDER names one");
  return folder;
}

Path run_in(const Call& call) {
  const std::string &task = call.path.at("task"), &name = call.path.at("name");
  const Path run = runs_folder(call) / task / name;
  require(is_plain_name(task) && is_plain_name(name) && is_run(run), 404, "run: found ", in_quotes(task + "/" + name, 80),
          ", which is not a run");
  return run;
}

std::string id_of_run(const Path& run) { return (run.parent_path().filename() / run.filename()).string(); }

Json summary_json(const RunSummary& summary) {
  Json out = to_json(summary);
  out["id"] = id_of_run(summary.path);
  return out;
}

void list_runs(const Call& call) {
  const Path& folder = runs_folder(call);
  Json runs = Json::array();
  if (is_folder(folder))
    for (const Path& run : runs_below(folder)) runs.push_back(summary_json(summarize_run(run)));
  call.reply({{"folder", folder.string()}, {"runs", std::move(runs)}, {"can_train", call.app.options().train}});
}

// At most `most` of them, evenly spread, with the last.
Json rows_json(const std::vector<RunRow>& rows, int64_t most) {
  Json out = Json::array();
  const int64_t count = std::ssize(rows), every = most > 0 ? std::max<int64_t>(1, (count + most - 1) / most) : count + 1;
  for (int64_t i = 0; i < count; ++i)
    if ((i + 1) % every == 0 || i + 1 == count) {
      const RunRow& row = rows[static_cast<size_t>(i)];
      out.push_back({{"epoch", row.epoch}, {"step", row.step}, {"figures", row.figures}});
    }
  return most > 0 ? out : Json::array();
}

Json run_settings_json(const RunRecord& record) {
  Json out = Json::array();
  for (const auto& [key, value] : record.settings) {
    const auto doc = record.setting_docs.find(key);
    out.push_back({{"key", key},
                   {"value", value},
                   {"group", doc == record.setting_docs.end() ? "" : doc->second.group},
                   {"meaning", doc == record.setting_docs.end() ? "" : doc->second.meaning},
                   {"given", record.user_keys ? Json(record.user_keys->contains(key)) : Json()}});
  }
  return out;
}

Json object_or_null(const Json& json) { return json.is_object() ? json : Json(); }

// A part of the details of the final evaluation.
Json evaluation_detail(const RunRecord& record, const char* key, Json fallback) {
  const Json& evaluation = record.evaluation;
  if (!evaluation.is_object() || !evaluation.contains("detail") || !evaluation["detail"].is_object()) return fallback;
  return evaluation["detail"].contains(key) ? evaluation["detail"][key] : fallback;
}

void give_run(const Call& call) {
  const Path run = run_in(call);
  const std::string limit = call.query("steps");
  const int64_t steps = limit.empty() ? 2000 : parse_number<int64_t>(limit).value_or(-1);
  require(steps >= 0 && steps <= 100000, 400, "steps: found ", in_quotes(limit, 20), ", expected a number from 0 to 100000");
  const std::string cursor = RunCursor::at_end(run).text();
  const RunSummary summary = summarize_run(run);
  const RunRecord& record = summary.record;
  Json samples = Json::array(), heads = Json::array();
  for (const Sample& each : record.samples) {
    Json sample;
    to_json(sample, each);
    samples.push_back(std::move(sample));
  }
  for (const HeadFrame& each : read_heads(run)) heads.push_back(Json::parse(head_line(each), nullptr, false));
  const Path best = run / "best";
  call.reply({{"summary", summary_json(summary)},
              {"settings", run_settings_json(record)},
              {"epochs", rows_json(record.epochs, 100000)},
              {"steps", rows_json(record.steps, steps)},
              {"speed", rows_json(record.speed, 100000)},
              {"samples", std::move(samples)},
              {"classes", evaluation_detail(record, "classes", Json::array())},
              {"confusion", evaluation_detail(record, "confusion", Json())},
              {"evaluation", object_or_null(record.evaluation)},
              {"costs", object_or_null(record.costs)},
              {"model", object_or_null(record.model)},
              {"heads", std::move(heads)},
              {"log", record.log},
              {"model_folder", is_folder(best) ? Json(best.string()) : Json()},
              {"cursor", cursor}});
}

void watch_run(const Call& call) {
  const Path run = run_in(call);
  std::string cursor = call.query("cursor");
  if (cursor.empty()) cursor = call.request().header("last-event-id");
  call.app.run_watch().add(call.exchange, call.events_head(), run, cursor.empty() ? RunCursor::at_end(run) : RunCursor::parse(cursor));
}

void check_may_train(const Call& call) {
  runs_folder(call);
  require(call.app.options().train, 403, "this server does not train (--no-train)");
}

std::string next_name(const Path& folder) {
  int64_t most = 0;
  std::error_code error;
  for (const auto& each : std::filesystem::directory_iterator(folder, error))
    most = std::max(most, parse_number<int64_t>(each.path().filename().string()).value_or(0));
  const std::string digits = std::to_string(most + 1);
  return std::string(digits.size() < 3 ? 3 - digits.size() : 0, '0') + digits;
}

void start_run(const Call& call) {
  check_may_train(call);
  const Json json = call.body();
  const JsonReader body(json, "body");
  const std::string task = body.text("task");
  const std::vector<std::string> settings = assignments_in(body);
  TrainingJob(task).apply(settings);  // errors in the settings
  const Path folder = runs_folder(call) / task;
  const std::string name = body.has("name") ? body.text("name") : next_name(folder);
  require(is_plain_name(name), 400, "body: name: found ", in_quotes(name, 80), ", expected letters, digits, _, . and -");
  require(!path_exists(folder / name), 409, "the run ", task, "/", name, " exists already");
  std::vector<std::string> arguments{"train", task};
  arguments.insert(arguments.end(), settings.begin(), settings.end());
  arguments.insert(arguments.end(), {"--runs", runs_folder(call).string(), "--name", name, "--quiet"});
  call.app.run_processes().start(call.app.options().program, arguments, folder / name);
  call.reply({{"id", task + "/" + name}}, 201);
}

void stop_run(const Call& call) {
  check_may_train(call);
  const Path run = run_in(call);
  const std::optional<int> process = process_of_run(run);
  require(process.has_value() && *process > 1, 409, "the run ", id_of_run(run), " is not running");
  require(::kill(*process, SIGINT) == 0, 409, "the run ", id_of_run(run), " cannot be stopped by this server");
  call.app.run_processes().reap();
  call.reply({{"id", id_of_run(run)}}, 202);
}

void resume_run(const Call& call) {
  check_may_train(call);
  const Path run = run_in(call);
  require(!is_running(run), 409, "the run ", id_of_run(run), " is running");
  call.app.run_processes().start(call.app.options().program, {"train", "--resume", run.string(), "--quiet"}, run);
  call.reply({{"id", id_of_run(run)}}, 202);
}

}  // namespace

Endpoints run_endpoints() {
  return {{"GET", "/api/runs", Where::worker, list_runs},
          {"POST", "/api/runs", Where::start, start_run},
          {"GET", "/api/runs/{task}/{name}", Where::worker, give_run},
          {"GET", "/api/runs/{task}/{name}/events", Where::worker, watch_run},
          {"POST", "/api/runs/{task}/{name}/stop", Where::worker, stop_run},
          {"POST", "/api/runs/{task}/{name}/resume", Where::start, resume_run}};
}

}  // namespace heed::serve
