#include "heed/train/report_run.h"

#include <charconv>
#include <cmath>
#include <sstream>

#include "heed/train/sample_json.h"

namespace heed {
namespace {

constexpr int64_t kMostBytes = int64_t{256} << 20;
constexpr size_t kLogLines = 40;

// Whole lines alone: of a run that is still going on the last one may be half there.
std::vector<std::string> lines_in(const Path& path) {
  std::vector<std::string> out;
  if (!std::filesystem::exists(path)) return out;
  std::istringstream in(read_text(path, kMostBytes));
  for (std::string line; std::getline(in, line) && !in.eof();) out.push_back(line);
  return out;
}

Json json_in(const Path& path) { return std::filesystem::exists(path) ? read_json(path) : Json(); }

std::string trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t\r"), end = text.find_last_not_of(" \t\r");
  return begin == text.npos ? "" : std::string(text.substr(begin, end - begin + 1));
}

void read_metrics(const Path& path, RunRecord& run) {
  int64_t number = 0;
  for (const std::string& line : lines_in(path)) {
    const std::string where = path.string() + ": line " + std::to_string(++number);
    const Json row = parse_json(where, line);
    check<FileError>(row.is_object() && row.contains("kind") && row["kind"].is_string(), where, ": found no kind, expected step or epoch");
    RunRow out;
    for (const auto& [key, value] : row.items())
      if (value.is_number()) out.figures[key] = value.get<double>();
    for (const char* key : {"epoch", "step"}) check<FileError>(out.figures.contains(key), where, ": found no ", key, ", expected a number");
    out.epoch = static_cast<int64_t>(out.figures.extract("epoch").mapped());
    out.step = static_cast<int64_t>(out.figures.extract("step").mapped());
    (row["kind"].get<std::string>() == "epoch" ? run.epochs : run.steps).push_back(std::move(out));
  }
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
  for (size_t i = 1; i < lines.size(); ++i) {
    const std::vector<std::string> cells = cells_of(lines[i]);
    check<FileError>(cells.size() == names.size(), path.string(), ": line ", i + 1, ": found ", cells.size(), " cells, expected ",
                     names.size());
    RunRow row;
    for (size_t k = 0; k < cells.size(); ++k) {
      double value = 0;
      const auto [end, error] = std::from_chars(cells[k].data(), cells[k].data() + cells[k].size(), value);
      if (error != std::errc() || !std::isfinite(value)) continue;
      if (names[k] == "epoch")
        row.epoch = static_cast<int64_t>(value);
      else if (names[k] == "step")
        row.step = static_cast<int64_t>(value);
      else
        row.figures[names[k]] = value;
    }
    run.speed.push_back(std::move(row));
  }
}

// Where a comment begins that is not inside quotes.
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

// The lines that Settings::toml writes: tables and one value a line. The report shows values and never acts on them.
void read_settings(const Path& path, RunRecord& run) {
  std::string table;
  for (const std::string& whole : lines_in(path)) {
    const std::string line = trimmed(whole.substr(0, comment_at(whole)));
    if (line.starts_with('[') && line.ends_with(']')) {
      table = line.substr(1, line.size() - 2) + ".";
      continue;
    }
    const size_t equals = line.find('=');
    if (equals == line.npos) continue;
    std::string value = trimmed(line.substr(equals + 1));
    if (value.size() >= 2 && (value[0] == '"' || value[0] == '\'') && value.back() == value[0]) value = value.substr(1, value.size() - 2);
    run.settings.emplace_back(table + trimmed(line.substr(0, equals)), value);
  }
}

void read_samples(const Path& path, RunRecord& run) {
  const Json list = json_in(path);
  check<FileError>(list.is_null() || list.is_array(), path.string(), ": found a ", list.type_name(), ", expected a list of samples");
  for (const Json& item : list) {
    try {
      run.samples.push_back(item.get<Sample>());
    } catch (const FileError& error) {
      fail<FileError>(path.string(), ": sample ", run.samples.size() + 1, ": ", error.what());
    }
  }
}

}  // namespace

std::string RunRecord::setting(std::initializer_list<const char*> keys) const {
  for (const char* key : keys)
    for (const auto& [known, value] : settings)
      if (known == key && !value.empty()) return value;
  return "";
}

RunRecord read_run(const Path& folder) {
  check<FileError>(std::filesystem::is_directory(folder), folder.string(), ": found no folder, expected that of a run");
  bool any = false;
  for (const char* file : {"config.toml", "metrics.jsonl", "evaluation.json"}) any = any || std::filesystem::exists(folder / file);
  check<FileError>(any, folder.string(), ": found none of config.toml, metrics.jsonl and evaluation.json, expected the folder of a run");
  RunRecord run;
  const Path whole = std::filesystem::canonical(folder);  // a name also where "." is asked for
  run.name = whole.filename().string();
  run.task = whole.parent_path().filename().string();
  read_settings(folder / "config.toml", run);
  read_metrics(folder / "metrics.jsonl", run);
  read_speed(folder / "speed.csv", run);
  run.evaluation = json_in(folder / "evaluation.json");
  run.costs = json_in(folder / "costs.json");
  read_samples(folder / "samples.json", run);
  run.log = lines_in(folder / "log.txt");
  if (run.log.size() > kLogLines) run.log.erase(run.log.begin(), run.log.end() - static_cast<int64_t>(kLogLines));
  if (const std::string task = run.setting({"task"}); !task.empty()) run.task = task;
  return run;
}

}  // namespace heed
