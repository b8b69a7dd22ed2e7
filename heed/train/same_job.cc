#include "heed/train/same_job.h"

#include "heed/train/run_json.h"

namespace heed {
namespace {

void check_same_job(Group& group, const char* what, const Json& own, std::vector<Change> (*changes)(const Json& then, const Json& now)) {
  if (group.size() == 1) return;
  const std::vector<std::string> all = group.all_gather(own.dump());
  const Json first = Json::parse(all[0]);
  for (int p = 1; p < group.size(); ++p)
    for (const Change& each : changes(first, Json::parse(all[static_cast<size_t>(p)])))
      fail<UsageError>("train: ", what, " differ between processes: ", each.key, " is ", each.now, " for ", group.name_of(p), ", and ",
                       each.then, " for ", group.name_of(0), "; expected the same in all of them");
}

}  // namespace

void check_same_settings(Group& group, const Settings& settings) { check_same_job(group, "settings", settings.json(), settings_changed); }

void check_same_data(Group& group, const Task& task) { check_same_job(group, "data", task.data, data_changed); }

}  // namespace heed
