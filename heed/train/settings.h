// The settings of a run: keys with values, meanings and bounds. They come from a TOML file, from a preset and from key=value
// words; what a key is bound to takes the value. Unknown keys are refused with the nearest right one.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "heed/io/json.h"

namespace heed {

struct Allowed {  // bounds of a number, or the words that there are
  double least = -1e300, most = 1e300;
  std::vector<std::string> words = {};
  bool several = false;                // of the words, parted by commas
  std::string why = {};                // said where another word is refused
  bool path = false;                   // of a file or a folder: absolute_paths() completes it
  std::vector<std::string> made = {};  // of paths: names that are none, "shapes"; also shapes:5 and shapes/test
};

class Settings {
 public:
  explicit Settings(std::string command = "train");  // which messages begin with
  ~Settings();
  Settings(const Settings&) = delete;
  Settings& operator=(const Settings&) = delete;

  // T: std::string, int64_t, uint64_t, float, bool. `value` must outlive the settings and holds the default.
  template <class T>
  void add(const std::string& key, T& value, const std::string& meaning, Allowed allowed = {});
  void heading(const std::string& text);  // above the keys that follow, in help() and toml()

  // Later ones win, but a preset never takes the place of what a person said. Errors are UsageErrors (words) or FileErrors that
  // name file and line (TOML).
  enum class By { preset, person };
  void set(const std::string& key, const std::string& value, By by = By::person);
  void assign(const std::string& word);      // "key=value"
  void read(const Path& toml);               // tables are dotted keys: [model] hidden_size = 64 is model.hidden_size
  bool given(const std::string& key) const;  // by a person
  void keep_given(const Path& toml);         // values that are not in that file count as given by nobody
  // The key that somebody means, who may write dashes or the name that another program has for it ("lr"); empty: none.
  std::string key_of(const std::string& typed) const;
  bool is_flag(const std::string& key) const;                       // true or false
  std::vector<std::string> keys() const;                            // without those below an open prefix
  const std::vector<std::string>& notes() const { return notes_; }  // names that were understood as others
  // Paths that are there become absolute, so that they are found from anywhere.
  void absolute_paths();
  std::vector<std::string> missing_paths() const;  // keys of relative paths that are not there
  std::string text(const std::string& key) const;  // the value in force

  std::string toml() const;        // all values in force under their headings, with meanings as comments; read() takes it back
  std::string given_toml() const;  // those alone that a person gave, with the task's name
  std::string help() const;        // a line a key: name, value in force, meaning
  Json json() const;

  // For completion: every key in order. values: the words that there are, true and false, or none where it may be anything
  using Look = std::function<void(const std::string& key, const std::string& meaning, const std::vector<std::string>& values)>;
  void each(const Look& look) const;  // keys that are open end with a dot

  // Keys below a prefix that only others can judge, config.json's for example: "model." takes model.hidden_size=64. Values are
  // JSON where they read as JSON, lists where they hold commas, else words. known: the first names that there are; null: any
  void add_open(const std::string& prefix, Json& values, const std::string& meaning, std::function<std::vector<std::string>()> known);

 private:
  struct Entry;
  void add(Entry entry);
  size_t place(const std::string& key) const;                  // in entries_; an error that names the nearest key where there is none
  void put(const std::string& key, const Json& value, By by);  // errors are plain: who calls says where the value came from

  std::string understood(const std::string& typed);  // key_of, with a note where it differs
  bool is_open(const std::string& table) const;

  std::string command_, heading_;
  std::vector<std::string> notes_;
  std::vector<Entry> entries_;
};

}  // namespace heed
