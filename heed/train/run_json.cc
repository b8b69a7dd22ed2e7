#include "heed/train/run_json.h"

#include <sys/stat.h>

#include <fstream>
#include <sstream>

#include "heed/core/parse.h"
#include "heed/io/json_reader.h"
#include "heed/train/settings_value.h"

namespace heed {
namespace {

constexpr const char* kFile = "run.json";
constexpr size_t kLongestValue = 100;  // characters of values in messages

std::string shown_value(const Json& value) {
  if (value.is_null()) return "none";
  std::string text = value.is_string() ? value.get<std::string>() : list_text("", value);
  return text.empty() ? "nothing" : text;
}

std::string shortened_value(const std::string& text) { return text.size() > kLongestValue ? text.substr(0, kLongestValue) + "..." : text; }

}  // namespace

std::optional<RunJson> read_run_json(const Path& run) {
  std::error_code error;
  if (!std::filesystem::exists(run / kFile, error)) return std::nullopt;
  const Json document = read_json(run / kFile);
  const JsonReader json(document, (run / kFile).string());
  return RunJson{.state = json.text("state"),
                 .directory = json.text("directory"),
                 .metric = json.text("metric"),
                 .settings = json["settings"].object(),
                 .data = json["data"].object()};
}

void write_run_json(const Path& run, const RunJson& about) {
  const Json json{{"state", about.state},
                  {"directory", about.directory},
                  {"metric", about.metric},
                  {"settings", about.settings},
                  {"data", about.data.is_null() ? Json::object() : about.data}};
  write_text(run / kFile, json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");  // the directory may not be valid UTF-8
}

// Checksums have no values: their numbers tell a reader nothing.
std::string Change::text() const {
  return then.empty() && now.empty() ? "other " + key : key + ": " + shortened_value(then) + " then, " + shortened_value(now) + " now";
}

std::vector<Change> settings_changed(const Json& then, const Json& now) {
  std::vector<Change> out;
  for (const auto& [key, value] : then.items()) {
    if (!now.contains(key) || now[key] == value) continue;
    out.push_back(
        {key, value.is_object() ? value.dump() : shown_value(value), now[key].is_object() ? now[key].dump() : shown_value(now[key])});
  }
  return out;
}

std::vector<Change> data_changed(const Json& then, const Json& now) {
  std::vector<Change> out;
  for (const auto& [part, facts] : then.items()) {
    const Json present = now.contains(part) ? now[part] : Json::object();
    if (!facts.is_object() || !present.is_object()) continue;
    for (const auto& [fact, value] : facts.items()) {
      const Json other = present.contains(fact) ? present[fact] : Json();
      const bool readable = fact == "items" || fact == "classes" || fact == "bytes";
      if (other != value) out.push_back({part + " " + fact, readable ? shown_value(value) : "", readable ? shown_value(other) : ""});
    }
  }
  return out;
}

// Reads the kernel's list of locks, as trying to lock could block a process that starts at the same time.
std::optional<int> process_of_run(const Path& run) {
  struct stat about = {};
  if (::stat(run.c_str(), &about) != 0) return std::nullopt;
  std::ifstream locks("/proc/locks");
  for (std::string line; std::getline(locks, line);) {  // "1: FLOCK  ADVISORY  WRITE 23479 fe:00:2311457 0 EOF"
    std::istringstream words(line);
    std::string number, kind, advisory, mode, process, place;
    words >> number >> kind >> advisory >> mode >> process >> place;
    if (kind == "FLOCK" && mode == "WRITE" && place.ends_with(":" + std::to_string(about.st_ino))) return parse_number<int>(process);
  }
  return std::nullopt;
}

}  // namespace heed
