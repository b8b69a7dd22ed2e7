#include "heed/train/run_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <ctime>
#include <fstream>
#include <iomanip>
#include <sstream>
#include <system_error>

#include "heed/core/parse.h"
#include "heed/train/append_only_file.h"

namespace heed {
namespace {

namespace fs = std::filesystem;

constexpr const char* kHeads = "heads.jsonl";

// The shortest text that reads back as the same number.
std::string shortest_text(double value) {
  if (std::isnan(value)) return "nan";  // never -nan: the sign of a NaN depends on the CPU
  char text[32];
  return {text, std::to_chars(text, text + sizeof text, value).ptr};
}

// Released when the process ends, however it ends.
class Lock {
 public:
  explicit Lock(const Path& folder) : descriptor_(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
    check(descriptor_ >= 0, folder.string(), ": cannot be opened (", std::generic_category().message(errno), ")");
    if (::flock(descriptor_, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) return;  // not every file system supports locks
    ::close(descriptor_);
    fail<FileError>(folder.string(), ": another process is writing to this run; wait for it or stop it");
  }
  ~Lock() { ::close(descriptor_); }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

 private:
  int descriptor_;
};

// Names must be valid in all files without quoting.
void check_names(const Metrics& figures) {
  const auto fine = [](unsigned char letter) { return letter > ' ' && letter < 127 && letter != ',' && letter != '"' && letter != '\\'; };
  for (const auto& [name, value] : figures)
    check(!name.empty() && std::all_of(name.begin(), name.end(), fine), "run folder: found the figure ", in_quotes(name),
          ", expected an ASCII name without spaces, commas and quotes");
}

// A CSV file with the columns of its first row.
class Table {
 public:
  explicit Table(const Path& path) : file(path) {
    file.drop_partial_line();
    const std::string line = file.first_line();
    int64_t number = 0;
    for (size_t begin = 0; begin < line.size();) {
      const size_t end = std::min(line.find(',', begin), line.size());
      if (++number > 2) columns_.push_back(line.substr(begin, end - begin));  // after epoch and step
      begin = end + 1;
    }
  }

  void add(int64_t epoch, int64_t step, const Metrics& figures) {
    std::string text;
    std::vector<std::string> columns = columns_;
    if (file.size() == 0) {
      text = "epoch,step";
      columns.clear();
      for (const auto& [name, value] : figures) {
        columns.push_back(name);
        text += "," + name;
      }
      text += "\n";
    }
    text += std::to_string(epoch) + ',' + std::to_string(step);
    for (const std::string& column : columns) {
      const auto found = std::find_if(figures.begin(), figures.end(), [&](const auto& figure) { return figure.first == column; });
      text += ',';
      if (found != figures.end()) text += shortest_text(found->second);
    }
    file.append(text + "\n");
    columns_ = std::move(columns);
  }

  AppendOnlyFile file;

 private:
  std::vector<std::string> columns_;
};

std::string json_line(const char* kind, int64_t epoch, int64_t step, const Metrics& figures) {
  std::string text = std::string("{\"kind\":\"") + kind + "\",\"epoch\":" + std::to_string(epoch) + ",\"step\":" + std::to_string(step);
  for (const auto& [name, value] : figures) text += ",\"" + name + "\":" + (std::isfinite(value) ? shortest_text(value) : "null");
  return text + "}\n";
}

void check_name(const char* what, const std::string& name) {
  const auto bad = [](unsigned char letter) { return letter == '/' || letter < ' ' || letter == 127; };
  check<UsageError>(!name.empty() && name[0] != '.' && std::none_of(name.begin(), name.end(), bad), what, ": found the name ",
                    in_quotes(name), ", expected one without slashes and control characters that does not start with a dot");
}

// Returns false if the path exists. mkdir is atomic, so of two runs that start at the same time only one gets the name.
bool make_folder(const Path& folder) {
  if (::mkdir(folder.c_str(), 0777) == 0) return true;
  const int error = errno;
  check<WriteError>(error == EEXIST, folder.string(), ": cannot create the folder (", std::generic_category().message(error),
                    "); choose another place");
  return false;
}

int64_t largest_number(const Path& folder) {
  int64_t largest = 0;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename();
    if (name.size() < 10) largest = std::max(largest, parse_number<int64_t>(name).value_or(0));
  }
  return largest;
}

std::string date_and_time() {
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  ::localtime_r(&now, &local);
  char text[32];
  return {text, std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S ", &local)};
}

}  // namespace

struct RunFolder::Files {
  explicit Files(const Path& folder)
      : lock(folder),
        log(folder / "log.txt"),
        lines(folder / "metrics.jsonl"),
        epochs(folder / "metrics.csv"),
        speed(folder / "speed.csv"),
        events(folder) {
    log.drop_partial_line();
    lines.drop_partial_line();
    if (fs::exists(folder / kHeads)) head_lines(folder).drop_partial_line();
  }
  std::vector<AppendOnlyFile*> rewindable() {
    std::vector<AppendOnlyFile*> out{&lines, &epochs.file, &speed.file};
    if (heads) out.push_back(heads.get());
    return out;
  }
  AppendOnlyFile& head_lines(const Path& folder) {
    if (!heads) heads = std::make_unique<AppendOnlyFile>(folder / kHeads);
    return *heads;
  }

  Lock lock;
  AppendOnlyFile log, lines;
  std::unique_ptr<AppendOnlyFile> heads;  // most runs have none
  Table epochs, speed;
  EventFile events;
};

// A run that stopped before writing config.toml leaves an empty folder, or only given.toml. Its name is free.
static bool is_abandoned(const Path& run) {
  std::error_code error;
  fs::directory_iterator each(run, error);
  if (error) return false;
  for (; each != fs::directory_iterator(); each.increment(error))
    if (each->path().filename() != "given.toml") return false;
  return !error;
}

RunFolder::RunFolder(Path path) : path_(std::move(path)) {}
RunFolder::~RunFolder() = default;
RunFolder::RunFolder(RunFolder&& other) noexcept = default;
RunFolder& RunFolder::operator=(RunFolder&& other) noexcept = default;

RunFolder RunFolder::create(const Path& runs, const std::string& task, const std::string& name) {
  check_name("task", task);
  const Path folder = runs / task;
  if (!name.empty()) check_name("run", name);
  std::error_code error;
  fs::create_directories(folder, error);
  check<WriteError>(!error, folder.string(), ": cannot create the folder (", error.message(), "); choose another place");
  if (!name.empty()) {
    RunFolder run(folder / name);
    const bool free = make_folder(run.path()) || is_abandoned(run.path());
    check<UsageError>(free, "run: found the name ", in_quotes(name), " taken in ", folder.string(),
                      ", expected a new name; choose another, or resume that run");
    return run;
  }
  for (int64_t number = largest_number(folder) + 1;; ++number) {
    const std::string digits = std::to_string(number);
    RunFolder run(folder / (std::string(digits.size() < 3 ? 3 - digits.size() : 0, '0') + digits));
    if (make_folder(run.path())) return run;
  }
}

RunFolder RunFolder::open(const Path& folder) {
  std::error_code ignored;
  check<FileError>(fs::is_directory(folder, ignored), folder.string(), ": found no such folder, expected a run folder");
  check<FileError>(fs::is_regular_file(folder / "config.toml", ignored), folder.string(),
                   ": found no config.toml, expected a run folder; runs are stored in runs/<task>/<name>");
  return RunFolder(folder);
}

RunFolder::Files& RunFolder::files() {
  if (!files_) files_ = std::make_unique<Files>(path_);
  return *files_;
}

EventFile& RunFolder::events() { return files().events; }

std::string figures_text(const Metrics& figures) {
  std::ostringstream text;
  for (const auto& [name, value] : figures) text << (text.tellp() > 0 ? ", " : "") << name << ' ' << std::setprecision(4) << value;
  return text.str();
}

void RunFolder::log(const std::string& line) { files().log.append(date_and_time() + line + "\n"); }

void RunFolder::add_step(int64_t epoch, int64_t step, const Metrics& figures) {
  check_names(figures);
  files().lines.append(json_line("step", epoch, step, figures));
  for (const auto& [name, value] : figures) events().scalar("step/" + name, step, value);
}

void RunFolder::add_epoch(int64_t epoch, int64_t step, const Metrics& figures) {
  check_names(figures);
  files().lines.append(json_line("epoch", epoch, step, figures));
  files().epochs.add(epoch, step, figures);
  for (const auto& [name, value] : figures) events().scalar("epoch/" + name, step, value);
}

void RunFolder::add_speed(int64_t epoch, int64_t step, const Metrics& figures) {
  check_names(figures);
  files().speed.add(epoch, step, figures);
  for (const auto& [name, value] : figures) events().scalar("speed/" + name, step, value);
}

void RunFolder::add_heads(const std::string& line) { files().head_lines(path_).append(line + "\n"); }

Json RunFolder::mark() {
  Json out = Json::object();
  for (AppendOnlyFile* file : files().rewindable()) {
    file->sync();
    out[file->path().filename()] = file->size();
  }
  out["events"] = events().size();
  sync_folder(path_);
  return out;
}

void RunFolder::rewind(const Json& mark, std::optional<int64_t> step) {
  check(mark.is_object() || mark.is_null(), "run folder: found a mark that is ", mark.type_name(), ", expected an object");
  const auto marked = [&](const std::string& name) { return mark.is_null() ? int64_t{0} : mark.value(name, int64_t{0}); };
  if (marked(kHeads) > 0) files().head_lines(path_);
  log("continued" + (step ? " from step " + std::to_string(*step) : std::string()));
  for (AppendOnlyFile* file : files().rewindable()) {
    const std::string name = file->path().filename();
    if (file->size() < marked(name))
      log(name + " has " + std::to_string(file->size()) + " bytes, " + std::to_string(marked(name)) +
          " expected: it was truncated, and lines are missing");
    file->truncate_to(marked(name));
    file->drop_partial_line();
  }
  events().truncate_to(marked("events"));
}

}  // namespace heed
