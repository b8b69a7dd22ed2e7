#include "heed/train/report_run.h"

#include <cmath>
#include <cstdlib>
#include <sstream>

#include "heed/core/parse.h"
#include "heed/train/sample_json.h"
#include "heed/train/scores.h"

namespace heed {
namespace {

constexpr int64_t kMaxRunFileBytes = int64_t{256} << 20, kMaxSettingsBytes = int64_t{1} << 20;  // per file; of settings files
constexpr size_t kMaxLines = 2'000'000;
constexpr size_t kLogLines = 40;

// Skips an incomplete last line: the run may be in progress.
std::vector<std::string> lines_in(const Path& path, int64_t limit = kMaxRunFileBytes) {
  std::vector<std::string> out;
  if (!std::filesystem::exists(path)) return out;
  std::istringstream in(read_text(path, limit));
  for (std::string line; std::getline(in, line) && !in.eof();) {
    check<FileError>(out.size() < kMaxLines, path.string(), ": found more than ", kMaxLines, " lines");
    out.push_back(line);
  }
  return out;
}

Json json_in(const Path& path) { return std::filesystem::exists(path) ? read_json(path) : Json(); }

// Collects errors while parsing the parts of a file: reports the first and the number of others.
class DamageCollector {
 public:
  explicit DamageCollector(RunRecord& run) : run_(run) {}
  ~DamageCollector() {
    if (bad_ > 0) run_.damaged.push_back(first_ + (bad_ > 1 ? "; and " + std::to_string(bad_ - 1) + " similar errors" : ""));
  }
  DamageCollector(const DamageCollector&) = delete;
  DamageCollector& operator=(const DamageCollector&) = delete;

  template <class Read>
  void operator()(const Read& read) {
    try {
      read();
    } catch (const Error& error) {
      if (bad_++ == 0) first_ = error.what();
    }
  }

 private:
  RunRecord& run_;
  int64_t bad_ = 0;
  std::string first_ = {};
};

std::string trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t\r"), end = text.find_last_not_of(" \t\r");
  return begin == text.npos ? "" : std::string(text.substr(begin, end - begin + 1));
}

// An epoch or step number.
int64_t counted(double value, const std::string& where, const std::string& key) {
  constexpr double most = 9007199254740992;  // 2^53: doubles above it are not exact integers
  check<FileError>(std::abs(value) <= most, where, ": found the ", key, " ", value, ", expected at most 2^53");
  return static_cast<int64_t>(value);
}

void read_metrics(const Path& path, RunRecord& run) {
  int64_t number = 0;
  DamageCollector each(run);
  for (const std::string& line : lines_in(path))
    each([&] {
      const std::string where = path.string() + ": line " + std::to_string(++number);
      const Json row = parse_json(where, line);
      check<FileError>(row.is_object() && row.contains("kind") && row["kind"].is_string(), where,
                       ": found no kind, expected step or epoch");
      RunRow out;
      for (const auto& [key, value] : row.items())
        if (value.is_number()) out.figures[key] = value.get<double>();
      for (const char* key : {"epoch", "step"})
        check<FileError>(out.figures.contains(key), where, ": found no ", key, ", expected a number");
      out.epoch = counted(out.figures.extract("epoch").mapped(), where, "epoch");
      out.step = counted(out.figures.extract("step").mapped(), where, "step");
      (row["kind"].get<std::string>() == "epoch" ? run.epochs : run.steps).push_back(std::move(out));
    });
}

std::vector<std::string> cells_of(const std::string& line) {
  std::vector<std::string> out;
  std::istringstream in(line);
  for (std::string cell; std::getline(in, cell, ',');) out.push_back(trimmed(cell));
  return out;
}

void read_speed(const Path& path, RunRecord& run) {
  const std::vector<std::string> lines = lines_in(path);
  if (lines.empty()) return;
  const std::vector<std::string> names = cells_of(lines[0]);
  DamageCollector each(run);
  for (size_t i = 1; i < lines.size(); ++i)
    each([&] {
      const std::string where = path.string() + ": line " + std::to_string(i + 1);
      const std::vector<std::string> cells = cells_of(lines[i]);
      check<FileError>(cells.size() == names.size(), where, ": found ", cells.size(), " cells, expected ", names.size());
      RunRow row;
      for (size_t k = 0; k < cells.size(); ++k) {
        const double value = parse_number<double>(cells[k]).value_or(NAN);
        if (!std::isfinite(value)) continue;
        if (names[k] == "epoch")
          row.epoch = counted(value, where, "epoch");
        else if (names[k] == "step")
          row.step = counted(value, where, "step");
        else
          row.figures[names[k]] = value;
      }
      run.speed.push_back(std::move(row));
    });
}

// Start of a comment outside quotes.
size_t comment_at(const std::string& line) {
  char quote = 0;
  for (size_t i = 0; i < line.size(); ++i) {
    if (quote == '"' && line[i] == '\\')
      ++i;
    else if (quote != 0)
      quote = line[i] == quote ? 0 : quote;
    else if (line[i] == '"' || line[i] == '\'')
      quote = line[i];
    else if (line[i] == '#')
      return i;
  }
  return line.npos;
}

struct SettingLine {
  std::string key, value;
  SettingDoc doc;
};

// Parses the output of Settings::toml: tables, and one value per line with its description as a comment; a comment after an empty line is a
// heading. For display only.
std::vector<SettingLine> settings_in(const Path& path) {
  std::vector<SettingLine> out;
  std::string table, group;
  bool begins = true;  // at the first line of the file or of a group
  for (const std::string& whole : lines_in(path, kMaxSettingsBytes)) {
    const size_t comment = comment_at(whole);
    const std::string line = trimmed(whole.substr(0, comment)), remark = comment == whole.npos ? "" : trimmed(whole.substr(comment + 1));
    if (begins && line.empty() && !remark.empty()) group = remark.substr(0, remark.find(". "));
    begins = line.empty() && remark.empty();
    if (line.starts_with('[') && line.ends_with(']')) {
      table = line.substr(1, line.size() - 2) + ".";
      group = "";
      continue;
    }
    const std::optional<KeyValue> setting = parse_key_value(line);
    if (!setting) continue;
    std::string value = trimmed(setting->value);
    if (value.size() >= 2 && (value[0] == '"' || value[0] == '\'') && value.back() == value[0]) value = value.substr(1, value.size() - 2);
    out.push_back({table + trimmed(setting->key), value, {group, remark}});
  }
  return out;
}

void read_settings(const Path& folder, RunRecord& run) {
  for (SettingLine& line : settings_in(folder / "config.toml")) {
    run.setting_docs[line.key] = std::move(line.doc);
    run.settings.emplace_back(std::move(line.key), std::move(line.value));
  }
  if (!std::filesystem::exists(folder / "given.toml")) return;
  run.user_keys.emplace();
  for (SettingLine& line : settings_in(folder / "given.toml")) run.user_keys->insert(std::move(line.key));
}

void read_samples(const Path& path, RunRecord& run) {
  const Json list = json_in(path);
  check<FileError>(list.is_null() || list.is_array(), path.string(), ": found a ", list.type_name(), ", expected a list of samples");
  DamageCollector each(run);
  int64_t number = 0;
  for (const Json& item : list)
    each([&] {
      ++number;
      try {
        run.samples.push_back(item.get<Sample>());
      } catch (const FileError& error) {
        fail<FileError>(path.string(), ": sample ", number, ": ", error.what());
      }
    });
}

// Checks for truncated or invalid weight files.
void check_weights(const Path& folder, RunRecord& run) {
  std::vector<Path> files{folder / "best/model.safetensors", folder / "last/model.safetensors"};
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder / "checkpoints", error))
    if (entry.path().extension() == ".safetensors") files.push_back(entry.path());
  for (const Path& file : files)
    if (std::filesystem::exists(file, error))
      DamageCollector{run}([&] {
        try {
          Safetensors::parse(MappedFile::open(file));
        } catch (const FileError&) {
          if (std::filesystem::exists(file, error)) throw;  // else it was replaced while it was read
        }
      });
}

}  // namespace

std::string RunRecord::setting(std::initializer_list<const char*> keys) const {
  for (const char* key : keys)
    for (const auto& [known, value] : settings)
      if (known == key && !value.empty()) return value;
  return "";
}

bool RunRecord::finished() const {
  if (evaluation.is_null()) return false;
  const auto number = [&](std::initializer_list<const char*> keys) { return std::strtoll(setting(keys).c_str(), nullptr, 10); };
  const bool may_end_early = number({"patience"}) > 0 || number({"steps"}) > 0;
  return may_end_early || epochs.empty() || epochs.back().epoch >= number({"epochs"});
}

std::string RunRecord::best_metric() const {
  if (const std::string metric = setting({"best"}); !metric.empty()) return metric;
  // Runs of older versions used the task's default.
  return task == "classify" || task == "sentiment" || task == "pairs" ? "accuracy" : "loss";
}

const RunRow* RunRecord::best_epoch() const {
  const std::string metric = best_metric();
  const RunRow* best = nullptr;
  for (const RunRow& row : epochs) {
    const auto found = row.figures.find("validation_" + metric);
    if (found == row.figures.end()) continue;
    if (!best || is_better(metric, found->second, best->figures.at("validation_" + metric))) best = &row;
  }
  return best;
}

RunRecord read_run(const Path& folder) {
  check<FileError>(std::filesystem::is_directory(folder), folder.string(), ": found no folder, expected a run folder");
  bool any = false;
  for (const char* file : {"config.toml", "metrics.jsonl", "evaluation.json"}) any = any || std::filesystem::exists(folder / file);
  check<FileError>(any, folder.string(), ": found none of config.toml, metrics.jsonl and evaluation.json, expected a run folder");
  RunRecord run;
  const Path whole = std::filesystem::canonical(folder);  // resolves "." to a name
  run.name = whole.filename().string();
  run.task = whole.parent_path().filename().string();
  const auto read = [&](const auto& part) { DamageCollector{run}(part); };
  read([&] { read_settings(folder, run); });
  read([&] { read_metrics(folder / "metrics.jsonl", run); });
  read([&] { read_speed(folder / "speed.csv", run); });
  read([&] { run.evaluation = json_in(folder / "evaluation.json"); });
  read([&] { run.costs = json_in(folder / "costs.json"); });
  read([&] { run.model = json_in(folder / "best/config.json"); });
  read([&] {
    if (run.model.is_null()) run.model = json_in(folder / "last/config.json");
  });
  read([&] { read_samples(folder / "samples.json", run); });
  read([&] { run.log = lines_in(folder / "log.txt"); });
  check_weights(folder, run);
  if (run.log.size() > kLogLines) run.log.erase(run.log.begin(), run.log.end() - static_cast<int64_t>(kLogLines));
  if (const std::string task = run.setting({"task"}); !task.empty()) run.task = task;
  return run;
}

}  // namespace heed
