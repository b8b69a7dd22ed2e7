// Settings of a run: keys bound to variables, with descriptions and allowed values. Values come from a TOML file, a preset and key=value
// arguments. Unknown keys are errors that suggest the nearest key.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "heed/core/api.h"
#include "heed/io/json.h"

namespace HEED_API heed {

struct Allowed {  // range of a number, or the allowed strings
  double least = -1e300, most = 1e300;
  std::vector<std::string> choices = {};
  bool several = false;                             // a comma-separated list of `choices`
  bool with_settings = false;                       // a choice may be followed by its settings: window:4
  std::map<std::string, std::string> aliases = {};  // other names of choices, which they replace
  std::string hint = {};                            // appended to the error for other values
  bool path = false;                                // a file or folder, see absolute_paths()
  std::vector<std::string> synthetic = {};          // for paths: names of synthetic data, e.g. "shapes"; also shapes:5 and shapes/test
};

// A setting as forms show it.
struct SettingInfo {
  std::string key, heading, meaning;
  std::string type;  // string, path, list (of choices), integer, number, boolean, any (below an open prefix, which ends with a dot)
  Json value;        // the current one
  Allowed allowed;
};

// The settings of a command.
class Settings {
 public:
  explicit Settings(std::string command = "train");  // prefix of error messages
  ~Settings();
  Settings(const Settings&) = delete;
  Settings& operator=(const Settings&) = delete;

  // T: std::string, int64_t, uint64_t, float, bool. `value` holds the default and must outlive the settings.
  template <class T>
  void add(const std::string& key, T& value, const std::string& meaning, Allowed allowed = {});
  void heading(const std::string& text);                                    // of the keys added next, in help() and toml()
  void listed_by(std::string command) { listed_by_ = std::move(command); }  // lists all settings: for errors about unknown keys

  // Later values win, but a preset never overrides the user. Errors are UsageErrors (arguments) or FileErrors with file and line (TOML).
  enum class By { preset, user };
  void set(const std::string& key, const std::string& value, By by = By::user);
  void assign(const std::string& argument);  // "key=value"
  void read(const Path& toml);               // tables are dotted keys: [model] hidden_size = 64 is model.hidden_size
  bool given(const std::string& key) const;  // by the user
  void keep_given(const Path& toml);         // values that are not in that file count as not given
  // Resolves dashes and aliases of other programs ("lr"); empty if unknown.
  std::string key_of(const std::string& typed) const;
  bool is_flag(const std::string& key) const;                       // a boolean
  std::vector<std::string> keys() const;                            // without keys below an open prefix
  const std::vector<std::string>& notes() const { return notes_; }  // resolved aliases
  // Makes existing relative paths absolute, so that they work from any directory.
  void absolute_paths();
  std::vector<std::string> missing_paths() const;  // keys of relative paths that do not exist
  std::string text(const std::string& key) const;  // current value

  std::string toml() const;        // all current values under their headings, with descriptions as comments; read() accepts it
  std::string given_toml() const;  // only the values given by the user, and the task
  std::string help() const;        // one line per key: name, current value, description
  // All current values.
  Json json() const;

  // For shell completion: calls visit for every key in order. values: the allowed values, or empty if any value is allowed
  using Visitor = std::function<void(const std::string& key, const std::string& meaning, const std::vector<std::string>& values)>;
  void each(const Visitor& visit) const;  // open prefixes end with a dot
  std::vector<SettingInfo> infos() const;

  // Accepts any key below a prefix, e.g. for config.json: "model." takes model.hidden_size=64. Values are parsed as JSON if they are valid
  // JSON, as lists if they contain commas, else as strings. known: the allowed first names; null: any
  void add_open(const std::string& prefix, Json& values, const std::string& meaning, std::function<std::vector<std::string>()> known);

 private:
  struct Entry;
  void add(Entry entry);
  size_t place(const std::string& key) const;                  // index in entries_; error with the nearest key if there is none
  void put(const std::string& key, const Json& value, By by);  // errors do not name the source of the value; callers add it

  std::string resolve(const std::string& typed);  // key_of, and adds a note if an alias was resolved
  bool is_open(const std::string& table) const;

  std::string command_, heading_, listed_by_;
  std::vector<std::string> notes_;
  std::vector<Entry> entries_;
};

}  // namespace heed
