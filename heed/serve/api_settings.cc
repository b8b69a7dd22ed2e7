// /api/settings: every setting of a training task, for forms.
#include "heed/serve/app.h"
#include "heed/serve/setting_json.h"
#include "heed/train/training_job.h"

namespace heed::serve {
namespace {

void list_settings(const Call& call) {
  const std::string requested = call.query("task");
  Json tasks = Json::array(), settings = Json::array();
  bool known = false;
  for (const TaskKind& each : task_kinds()) {
    tasks.push_back({{"name", each.name},
                     {"summary", each.summary},
                     {"preset", each.preset},
                     {"presets", presets_of(each.families)},
                     {"examples", each.examples}});
    known = known || each.name == requested;
  }
  require(requested.empty() || known, 404, "task: found ", in_quotes(requested, 40), ", which is not a task");
  const std::string task = requested.empty() ? "classify" : requested;
  const TrainingJob job(task);
  for (const SettingInfo& each : job.settings().infos())
    if (each.key != "task") settings.push_back(setting_json(each));
  call.reply({{"tasks", std::move(tasks)}, {"task", task}, {"settings", std::move(settings)}});
}

}  // namespace

Endpoints setting_endpoints() { return {{"GET", "/api/settings", Where::worker, list_settings}}; }

}  // namespace heed::serve
