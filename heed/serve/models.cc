#include "heed/serve/models.h"

#include <algorithm>

#include "heed/core/nearest.h"
#include "heed/io/paths.h"
#include "heed/serve/answer.h"
#include "heed/train/model_folder.h"

namespace heed::serve {
namespace {

// "models/gpt2" -> "gpt2"; "runs/classify/001" and "runs/classify/001/best" -> "classify/001"
std::string id_of(const Path& folder) {
  const Path run = run_of_model(folder);
  const Path whole = std::filesystem::weakly_canonical(run.empty() ? folder : run);
  return run.empty() ? whole.filename().string() : (whole.parent_path().filename() / whole.filename()).string();
}

const ModelInfo* find_info(const std::vector<ModelInfo>& infos, const std::string& id) {
  const auto found = std::find_if(infos.begin(), infos.end(), [&](const ModelInfo& each) { return each.id == id; });
  return found == infos.end() ? nullptr : &*found;
}

int64_t written_at(const Path& folder) {
  std::error_code error;
  return std::filesystem::last_write_time(folder / "config.json", error).time_since_epoch().count();
}

}  // namespace

Models::Models(const ModelsOptions& options, Metrics& metrics) : options_(options), metrics_(metrics) {
  for (const std::string& argument : options_.models) {
    const size_t equals = argument.find('=');
    const bool has_name = equals != std::string::npos && equals > 0 && !path_exists(argument);
    const Path folder = model_folder(has_name ? argument.substr(equals + 1) : argument);
    check<FileError>(is_folder(folder), folder.string(), ": there is no such folder, expected a model or a run");
    ModelInfo info = describe_model(has_name ? argument.substr(0, equals) : id_of(folder), folder);
    check<FileError>(info.error.empty(), info.error);
    check<UsageError>(!find_info(named_, info.id), "serve: two models are named ", info.id, ", expected NAME=FOLDER for one of them");
    named_.push_back(std::move(info));
  }
}

// The threads of models use hosts_ until they end.
Models::~Models() {
  std::map<std::string, std::shared_ptr<ModelHost>> hosts;
  const std::lock_guard lock(mutex_);
  hosts.swap(hosts_);
}

// Runs come and go while the server works.
Models::Hosts Models::find_run_models() {
  if (options_.runs.empty()) return {};
  std::vector<ModelInfo> found;
  for (const Path& run : is_folder(options_.runs) ? runs_below(options_.runs) : std::vector<Path>()) {
    const Path folder = run / "best";
    if (!path_exists(folder / "config.json")) continue;
    const std::string id = id_of(run);
    if (find_info(named_, id)) continue;
    const ModelInfo* known = find_info(of_runs_, id);
    ModelInfo info = known && known->written == written_at(folder) ? *known : describe_model(id, folder);
    info.written = written_at(folder);
    if (info.error.empty()) found.push_back(std::move(info));
  }
  of_runs_ = std::move(found);
  std::erase_if(hosts_, [&](auto& each) {
    const ModelInfo* info = find_info(of_runs_, each.first);
    if (find_info(named_, each.first) || (info && info->written == each.second->info().written)) return false;
    dropped_.push_back(std::move(each.second));
    return true;
  });
  const auto in_use = [](const std::shared_ptr<ModelHost>& each) { return each.use_count() > 1 || !each->idle(); };
  const auto done = std::partition(dropped_.begin(), dropped_.end(), in_use);
  Hosts out(std::make_move_iterator(done), std::make_move_iterator(dropped_.end()));
  dropped_.erase(done, dropped_.end());
  return out;
}

std::vector<ModelInfo> Models::list() {
  Hosts ending;
  const std::lock_guard lock(mutex_);
  ending = find_run_models();
  std::vector<ModelInfo> out = named_;
  out.insert(out.end(), of_runs_.begin(), of_runs_.end());
  return out;
}

bool Models::is_loaded(const std::string& id) {
  const std::lock_guard lock(mutex_);
  const auto found = hosts_.find(id);
  return found != hosts_.end() && found->second->loaded();
}

std::shared_ptr<ModelHost> Models::host(const std::string& id) {
  Hosts ending;
  const std::lock_guard lock(mutex_);
  const ModelInfo* info = find_info(named_, id);
  if (!info) {
    ending = find_run_models();
    info = find_info(of_runs_, id);
  }
  if (!info) {
    std::vector<std::string> names;
    for (const auto* list : {&named_, &of_runs_})
      for (const ModelInfo& each : *list) names.push_back(each.id);
    throw HttpError(404, "model: found " + in_quotes(id, 60) + ", which is not served" + did_you_mean(id, names), "model");
  }
  if (const auto found = hosts_.find(id); found != hosts_.end()) return found->second;
  const auto out = std::make_shared<ModelHost>(*info, options_.host, metrics_, [this, id](int64_t bytes) { make_room(id, bytes); });
  hosts_[id] = out;
  return out;
}

void Models::make_room(const std::string& id, int64_t bytes) {
  const std::lock_guard lock(mutex_);
  std::vector<ModelHost*> others;
  int64_t used = bytes;
  for (const auto& [name, host] : hosts_)
    if (name != id && host->loaded()) {
      others.push_back(host.get());
      used += host->bytes();
    }
  std::sort(others.begin(), others.end(), [](const ModelHost* a, const ModelHost* b) { return a->last_used() < b->last_used(); });
  for (ModelHost* each : others) {
    if (used <= options_.memory) return;
    const int64_t freed = each->bytes();
    if (each->unload_if_idle()) used -= freed;
  }
}

}  // namespace heed::serve
