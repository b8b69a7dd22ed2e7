#include "heed/train/model_folder.h"

#include <algorithm>
#include <array>

namespace heed {
namespace {

namespace fs = std::filesystem;

constexpr std::array kModels{"best", "last"};  // in order of preference
constexpr size_t kListedRuns = 8;

bool by_number(const Path& a, const Path& b) {
  const auto number = [](const std::string& text) { return !text.empty() && text.find_first_not_of("0123456789") == text.npos; };
  const std::string left = a.filename(), right = b.filename();
  if (a.parent_path() != b.parent_path()) return a.parent_path() < b.parent_path();
  if (number(left) && number(right) && left.size() != right.size()) return left.size() < right.size();
  return left < right;
}

std::vector<Path> folders_in(const Path& folder) {
  std::vector<Path> out;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error))
    if (entry.is_directory(error) && !entry.path().filename().string().starts_with('.')) out.push_back(entry.path());
  return out;
}

std::vector<Path> runs_in(const Path& folder) {
  std::vector<Path> out = folders_in(folder);
  std::erase_if(out, [](const Path& each) { return !is_run(each); });
  std::sort(out.begin(), out.end(), by_number);
  return out;
}

Path newest_of(const std::vector<Path>& runs) {
  const auto changed = [](const Path& run) {
    std::error_code error;
    const fs::file_time_type time = fs::last_write_time(run / "log.txt", error);
    return error ? fs::file_time_type::min() : time;
  };
  return *std::max_element(runs.begin(), runs.end(), [&](const Path& a, const Path& b) { return changed(a) < changed(b); });
}

std::string names_of(const std::vector<Path>& runs) {
  std::string out;
  for (size_t i = runs.size() > kListedRuns ? runs.size() - kListedRuns : 0; i < runs.size(); ++i)
    out += (out.empty() ? runs.size() > kListedRuns ? "..., " : "" : ", ") + runs[i].filename().string();
  return out;
}

// Error for a missing path inside a run or next to runs, with what exists there.
void explain_missing(const Path& typed) {
  const Path parent = typed.parent_path();
  if (parent.empty()) return;
  check<FileError>(!is_run(parent), typed.string(), ": no such folder, expected best or last, or the run itself: ", parent.string());
  const std::vector<Path> siblings = runs_in(parent);
  check<FileError>(siblings.empty(), typed.string(), ": no such run; ", parent.string(), " has ", names_of(siblings));
}

void refuse_folder_of_runs(const Path& folder) {
  const std::vector<Path> runs = runs_below(folder);
  if (runs.empty() || is_run(folder)) return;
  fail<UsageError>(folder.string(), ": found a folder of runs, expected one run, for example the newest: ", newest_of(runs).string(),
                   "; heed runs ", folder.string(), " lists them");
}

Path without_slash(const Path& folder) { return folder.has_filename() ? folder : folder.parent_path(); }

}  // namespace

bool is_run(const Path& folder) {
  std::error_code error;
  return fs::is_regular_file(folder / "config.toml", error) && !fs::exists(folder / "config.json", error);
}

std::vector<Path> runs_below(const Path& folder) {
  if (is_run(folder)) return {folder};
  std::vector<Path> out = runs_in(folder), tasks = folders_in(folder);
  std::sort(tasks.begin(), tasks.end());
  for (const Path& task : tasks)
    if (!is_run(task)) {
      const std::vector<Path> more = runs_in(task);
      out.insert(out.end(), more.begin(), more.end());
    }
  return out;
}

Path model_folder(const Path& typed) {
  std::error_code error;
  const Path folder = without_slash(typed);
  if (!fs::exists(folder, error)) explain_missing(folder);
  if (!fs::is_directory(folder, error) || fs::exists(folder / "config.json", error)) return typed;
  if (is_run(folder)) {
    for (const char* name : kModels)
      if (fs::is_directory(folder / name, error)) return folder / name;
    fail<FileError>(folder.string(),
                    ": found no model in the run, expected a run that has finished its first epoch; to resume it: heed train --resume ",
                    folder.string());
  }
  refuse_folder_of_runs(folder);
  return typed;
}

Path run_of_model(const Path& folder) {
  const Path clean = without_slash(folder), parent = clean.has_parent_path() ? clean.parent_path() : Path(".");
  if (is_run(clean)) return clean;
  const bool inside = std::find(kModels.begin(), kModels.end(), clean.filename().string()) != kModels.end();
  return inside && is_run(parent) ? parent : Path();
}

Path run_folder(const Path& typed) {
  std::error_code error;
  if (const Path run = run_of_model(typed); !run.empty()) return run;
  if (!fs::exists(without_slash(typed), error)) explain_missing(without_slash(typed));
  refuse_folder_of_runs(typed);
  return typed;
}

}  // namespace heed
