#include "heed/train/settings.h"

#include <algorithm>
#include <array>
#include <set>
#include <variant>

#include "heed/core/nearest.h"
#include "heed/train/setting_aliases.h"
#include "heed/train/settings_toml.h"
#include "heed/train/settings_value.h"

namespace heed {

struct Settings::Entry {
  std::string key, meaning, heading;
  std::variant<std::string*, int64_t*, uint64_t*, float*, bool*, Json*> value;
  Allowed allowed = {};
  std::function<std::vector<std::string>()> known = {};  // of open ones
  std::set<std::string> given = {};                      // set by the user: the key, or the keys below an open prefix

  bool open() const { return std::holds_alternative<Json*>(value); }
  // The value is a path and not the name of synthetic data.
  bool is_path() const {
    if (!allowed.path || std::get<std::string*>(value)->empty()) return false;
    const std::string& text = *std::get<std::string*>(value);
    return std::none_of(allowed.synthetic.begin(), allowed.synthetic.end(), [&](const std::string& name) {
      return text == name || text.starts_with(name + ":") || text.starts_with(name + "/");
    });
  }
};

namespace {

// The value at path a.b.c in an object; null if missing, unless `make` is set.
Json* below(Json& object, const std::string& path, bool make) {
  Json* at = &object;
  for (const std::string& name : split(path, '.')) {
    if (make && !at->is_object()) *at = Json::object();
    if (!make && (!at->is_object() || !at->contains(name))) return nullptr;
    at = &(*at)[name];
  }
  return at;
}

struct AsText {
  std::string operator()(const Json* value) const { return value->dump(); }
  template <class T>
  std::string operator()(const T* value) const {
    return value_text(*value);
  }
};

}  // namespace

Settings::Settings(std::string command) : command_(std::move(command)) {}
Settings::~Settings() = default;

void Settings::add(Entry entry) {
  for (const Entry& other : entries_) {
    const bool clash = entry.key == other.key || entry.key.starts_with(other.key + ".") || other.key.starts_with(entry.key + ".");
    check(!clash, "settings: '", entry.key, "' with '", other.key, "', expected that no key is a prefix of another");
  }
  check(entry.meaning.find('\n') == std::string::npos, "settings: the meaning of '", entry.key, "' has several lines, expected one");
  entry.heading = heading_;
  entries_.push_back(std::move(entry));
}

template <class T>
void Settings::add(const std::string& key, T& value, const std::string& meaning, Allowed allowed) {
  add(Entry{.key = key, .meaning = meaning, .heading = {}, .value = &value, .allowed = std::move(allowed)});
}
template void Settings::add(const std::string&, std::string&, const std::string&, Allowed);
template void Settings::add(const std::string&, int64_t&, const std::string&, Allowed);
template void Settings::add(const std::string&, uint64_t&, const std::string&, Allowed);
template void Settings::add(const std::string&, float&, const std::string&, Allowed);
template void Settings::add(const std::string&, bool&, const std::string&, Allowed);

void Settings::add_open(const std::string& prefix, Json& values, const std::string& meaning,
                        std::function<std::vector<std::string>()> known) {
  check(prefix.ends_with('.'), "settings: the prefix '", prefix, "' has no dot at its end, expected one");
  if (values.is_null()) values = Json::object();
  add(Entry{.key = prefix.substr(0, prefix.size() - 1), .meaning = meaning, .heading = {}, .value = &values, .known = std::move(known)});
}

void Settings::heading(const std::string& text) { heading_ = text; }

size_t Settings::place(const std::string& key) const {
  std::vector<std::string> names;
  for (size_t i = 0; i < entries_.size(); ++i) {
    const Entry& entry = entries_[i];
    if (entry.key == key) return i;
    if (!entry.open()) {
      names.push_back(entry.key);
      continue;
    }
    const std::vector<std::string> known = entry.known ? entry.known() : std::vector<std::string>();
    const std::string first = key.starts_with(entry.key + ".") ? split(key.substr(entry.key.size() + 1), '.')[0] : "";
    if (!first.empty() && (known.empty() || std::find(known.begin(), known.end(), first) != known.end())) return i;
    for (const std::string& each : known) names.push_back(entry.key + "." + each);
  }
  const std::string hint = did_you_mean(key, names), list = listed_by_.empty() ? "" : listed_by_ + " lists all settings";
  fail("unknown setting ", quoted(key), hint, list.empty() ? "" : hint.empty() ? "; " : " ", list);
}

void Settings::put(const std::string& key, const Json& value, By by) {
  Entry& entry = entries_[place(key)];
  if (by == By::preset && entry.given.contains(key)) return;
  check_writable("a key", key);
  if (entry.open()) {
    check_writable(key, value);
    check(key != entry.key, key, "=", quoted(value.is_string() ? value.get<std::string>() : value.dump()),
          ", expected a key below it: ", key, ".NAME=VALUE",
          key_of("preset").empty() ? "" : "; preset=NAME selects a model, from=FOLDER a trained one");
    *below(*std::get<Json*>(entry.value), key.substr(entry.key.size() + 1), true) = value;
  } else {
    const std::string text = list_text(key, value);
    check_writable(key, text);
    std::visit([&](auto* bound) { parse_value(*bound, key, text, entry.allowed); }, entry.value);
  }
  if (by == By::user) entry.given.insert(key);
}

std::string Settings::key_of(const std::string& typed) const {
  const auto known = [&](const std::string& key) {
    return std::any_of(entries_.begin(), entries_.end(),
                       [&](const Entry& entry) { return entry.key == key || (entry.open() && key.starts_with(entry.key + ".")); });
  };
  std::string key = typed;
  std::replace(key.begin(), key.end(), '-', '_');
  for (const std::string& each : {typed, key, setting_alias(key)})
    if (!each.empty() && known(each)) return each;
  return "";
}

std::string Settings::resolve(const std::string& typed) {
  const std::string key = key_of(typed);
  if (key.empty() || key == typed) return typed;
  notes_.push_back(typed + ": the name of this setting is " + key);
  return key;
}

bool Settings::is_flag(const std::string& key) const { return std::holds_alternative<bool*>(entries_[place(key)].value); }

std::vector<std::string> Settings::keys() const {
  std::vector<std::string> out;
  for (const Entry& entry : entries_)
    if (!entry.open()) out.push_back(entry.key);
  return out;
}

void Settings::absolute_paths() {
  for (Entry& entry : entries_) {
    std::error_code error;
    if (!entry.is_path() || !std::filesystem::exists(std::get<std::string*>(entry.value)->c_str(), error)) continue;
    std::string& path = *std::get<std::string*>(entry.value);
    const Path whole = std::filesystem::absolute(path);
    const bool up =
        std::find(whole.begin(), whole.end(), "..") != whole.end();  // ".." after a symbolic link must not be removed from the text
    path = (up ? whole : whole.lexically_normal()).string();
  }
}

std::vector<std::string> Settings::missing_paths() const {
  std::vector<std::string> out;
  for (const Entry& entry : entries_) {
    std::error_code error;
    if (!entry.is_path()) continue;
    const Path path = *std::get<std::string*>(entry.value);
    if (path.is_relative() && !std::filesystem::exists(path, error)) out.push_back(entry.key);
  }
  return out;
}

void Settings::set(const std::string& typed, const std::string& value, By by) {
  const std::string key = resolve(typed);
  try {
    put(key, entries_[place(key)].open() ? guess_json(value) : Json(value), by);
  } catch (const Error& error) {
    fail<UsageError>(command_, ": ", key == typed ? "" : typed + " means " + key + ": ", error.what());
  }
}

void Settings::assign(const std::string& argument) {
  const KeyValue setting = key_value_in(command_, argument);
  set(setting.key, setting.value);
}

bool Settings::is_open(const std::string& table) const {
  return std::any_of(entries_.begin(), entries_.end(), [&](const Entry& entry) { return entry.open() && entry.key == table; });
}

void Settings::keep_given(const Path& toml) {
  std::set<std::string> keys;
  for (const TomlValue& each : read_toml(toml, [this](const std::string& table) { return is_open(table); })) keys.insert(each.key);
  for (Entry& entry : entries_) std::erase_if(entry.given, [&](const std::string& key) { return !keys.contains(key); });
}

void Settings::read(const Path& toml) {
  for (const auto& [key, value, line] : read_toml(toml, [this](const std::string& table) { return is_open(table); })) {
    try {
      put(resolve(key), value, By::user);
    } catch (const Error& error) {
      fail<FileError>(toml.string(), ":", line, ": ", error.what());
    }
  }
}

bool Settings::given(const std::string& key) const { return entries_[place(key)].given.contains(key); }

std::string Settings::text(const std::string& key) const {
  const Entry& entry = entries_[place(key)];
  if (key == entry.key) return std::visit(AsText{}, entry.value);
  const Json* found = below(*std::get<Json*>(entry.value), key.substr(entry.key.size() + 1), false);
  return found ? list_text(key, *found) : "";
}

Json Settings::json() const {
  Json out = Json::object();
  for (const Entry& entry : entries_) std::visit([&](const auto* value) { out[entry.key] = value_json(*value); }, entry.value);
  return out;
}

void Settings::each(const Visitor& visit) const {
  for (const Entry& entry : entries_) {
    const bool truth = std::holds_alternative<bool*>(entry.value);
    visit(entry.key + (entry.open() ? "." : ""), entry.meaning, truth ? std::vector<std::string>{"true", "false"} : entry.allowed.choices);
  }
}

std::vector<SettingInfo> Settings::infos() const {
  static constexpr std::array types{"string", "integer", "integer", "number", "boolean", "any"};  // as in Entry::value
  std::vector<SettingInfo> out;
  for (const Entry& entry : entries_)
    out.push_back({.key = entry.key + (entry.open() ? "." : ""),
                   .heading = entry.heading,
                   .meaning = entry.meaning,
                   .type = entry.allowed.path      ? "path"
                           : entry.allowed.several ? "list"
                                                   : types[entry.value.index()],
                   .value = std::visit([](const auto* value) { return value_json(*value); }, entry.value),
                   .allowed = entry.allowed});
  return out;
}

std::string Settings::toml() const {
  std::string out, heading;
  for (const Entry& entry : entries_) {
    if (entry.heading != heading) out += (out.empty() ? "# " : "\n# ") + entry.heading + "\n";
    heading = entry.heading;
    const std::string comment = "  # " + entry.meaning + choices_text(entry.allowed) + "\n";
    if (!entry.open()) {
      out += toml_line(entry.key, std::visit([](const auto* value) { return value_json(*value); }, entry.value)) + comment;
      continue;
    }
    out += comment.substr(2);
    for (const auto& [name, value] : std::get<Json*>(entry.value)->items())
      out += toml_line(entry.key + "." + toml_key(name), value) + "\n";
  }
  return out;
}

std::string Settings::given_toml() const {
  std::string out = "# The settings given for this run; config.toml has all values.\n";
  for (const Entry& entry : entries_) {
    if (!entry.open() && (entry.given.contains(entry.key) || entry.key == "task"))
      out += toml_line(entry.key, std::visit([](const auto* value) { return value_json(*value); }, entry.value)) + "\n";
    if (!entry.open()) continue;
    for (const auto& [name, value] : std::get<Json*>(entry.value)->items())
      out += toml_line(entry.key + "." + toml_key(name), value) + "\n";
  }
  return out;
}

std::string Settings::help() const {
  size_t widest = 0;
  const auto left = [](const Entry& entry) {
    return "  " + entry.key + (entry.open() ? ".NAME=VALUE" : "=" + std::visit(AsText{}, entry.value));
  };
  for (const Entry& entry : entries_) widest = std::max(widest, left(entry).size());
  std::string out, heading;
  for (const Entry& entry : entries_) {
    if (entry.heading != heading) out += (out.empty() ? "" : "\n") + entry.heading + "\n";
    heading = entry.heading;
    std::string line = left(entry);
    line.resize(widest + 2, ' ');
    out += line + entry.meaning + choices_text(entry.allowed) + "\n";
  }
  return out;
}

}  // namespace heed
