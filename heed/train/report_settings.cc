// Report section of settings: values, who set them, and differences between runs.
#include <algorithm>

#include "heed/io/markup.h"
#include "heed/models/architecture.h"
#include "heed/train/presets.h"
#include "heed/train/report_draw.h"
#include "heed/train/run_summary.h"

namespace heed {
namespace {

// Model settings that have no effect unless they are set.
const std::set<std::string> kOnlyIfSet{"reach", "features", "reduction", "pattern", "soft_cap"};

std::string value_of(const Json& value) { return value.is_string() ? value.get<std::string>() : value.dump(); }

// "4" if all keys have the same value, else "4, 6".
std::string values_at(const Json& config, const std::vector<std::string>& keys) {
  std::vector<std::string> found;
  for (const std::string& key : keys)
    if (config.contains(key) && !config[key].is_null())
      if (const std::string value = value_of(config[key]); std::find(found.begin(), found.end(), value) == found.end())
        found.push_back(value);
  std::string out;
  for (const std::string& value : found) out += (out.empty() ? "" : ", ") + value;
  return out;
}

// The value in config.json of the trained model for a setting left to the preset; empty if unknown.
std::string in_model(const Json& config, const std::string& key) {
  if (!config.is_object() || !config.contains("architectures")) return "";
  const Family& family = *architecture_of(Config(config, "config.json")).family;
  const ConfigKeys* const keys = &family.keys;
  const Json own = config.value("heed", Json::object());
  const auto own_or = [&](const char* name, const std::string& fallback) { return own.contains(name) ? values_at(own, {name}) : fallback; };
  const bool attends = !keys->heads.empty();
  if (key == "layers") return values_at(config, keys->layers);
  if (key == "heads") return values_at(config, keys->heads);
  if (key == "width") return values_at(config, keys->width);
  if (key == "feed_forward") return values_at(config, keys->feed_forward);
  if (key == "activation") return values_at(config, keys->activation);
  if (key == "patch") return values_at(config, {"patch_size"});
  if (!attends) return "";
  if (key == "dropout") {
    const std::string found = values_at(config, keys->dropout);
    return found.empty() ? "0" : found;
  }
  if (key == "position") return own_or("positions", family.default_position);
  if (key == "attention") return own_or("attention", choices("attention").all[0].name);
  if (key == "norm") return own_or("norm", family.norm);
  if (key == "pooling")
    return own_or("pooling", supported_choices(family, choices("pooling")).empty() ? "" : choices("pooling").all[0].name);
  if (key == "stochastic_depth") return own_or("stochastic_depth", "0");
  for (const char* flag : {"content", "project_values"})
    if (key == flag) return own_or(flag, "true");
  return kOnlyIfSet.contains(key) ? own_or(key.c_str(), "") : "";
}

bool is_left_to_preset(const std::string& value) { return value.empty() || value == "0" || value == "0.0" || value == "-1.0"; }

enum class SetBy { user, preset, none };  // none: default

SetBy set_by(const RunRecord& run, const std::string& key) {
  if (!run.user_keys) return SetBy::none;
  if (run.user_keys->contains(key)) return SetBy::user;
  for (const Preset& preset : presets())
    if (preset.name == run.setting({"preset"}))
      for (const auto& [name, value] : preset.settings)
        if (name == key) return SetBy::preset;
  return SetBy::none;
}

struct SettingRow {
  std::string group = {}, name = {}, value = {}, meaning = {};
  SetBy by = SetBy::none;
};

std::vector<SettingRow> rows_of(const RunRecord& run) {
  std::vector<SettingRow> out;
  for (const auto& [key, value] : run.settings) {
    const auto found = run.setting_docs.find(key);
    const SettingDoc doc = found == run.setting_docs.end() ? SettingDoc() : found->second;
    const size_t dot = key.rfind('.');
    SettingRow row{.group = doc.group, .name = key, .value = value, .meaning = doc.meaning, .by = set_by(run, key)};
    if (doc.group.empty() && dot != key.npos) row.group = key.substr(0, dot), row.name = key.substr(dot + 1);
    if (is_left_to_preset(value) && kOnlyIfSet.contains(key)) row.value = "";
    if (is_left_to_preset(value))
      if (const std::string value_in_model = in_model(run.model, key); !value_in_model.empty())
        row.value = value_in_model, row.by = SetBy::preset;
    out.push_back(std::move(row));
  }
  const std::string size = image_size_text(run);
  if (size.empty()) return out;
  const auto named = [&](const char* name) {
    return std::find_if(out.begin(), out.end(), [&](const SettingRow& row) { return row.name == name; });
  };
  if (const auto image = named("image"); image != out.end()) {
    image->value = size;  // replaces auto and model
    return out;
  }
  SettingRow row{.name = "image", .value = size, .meaning = "Size of the model's images: width and height in pixels", .by = SetBy::none};
  const auto data = named("data");
  if (data != out.end()) row.group = data->group;
  out.insert(data == out.end() ? data : data + 1, row);
  return out;
}

std::string row_html(const SettingRow& row) {
  const std::string title = row.meaning.empty() ? "" : " title=\"" + escape_markup(row.meaning) + "\"";
  const std::string mark = row.by == SetBy::user     ? " <span class=\"tag given\">given</span>"
                           : row.by == SetBy::preset ? " <span class=\"tag\">preset</span>"
                                                     : "";
  return "<div" + std::string(row.by == SetBy::user ? " class=\"given\"" : "") + "><dt" + title + ">" + escape_markup(row.name) +
         "</dt><dd>" + (row.value.empty() ? "–" : escape_markup(row.value)) + mark + "</dd></div>";
}

}  // namespace

std::string image_size_text(const RunRecord& run) {
  if (!run.model.is_object() || !run.model.contains("image_size")) return "";
  const Json& size = run.model["image_size"];
  if (size.is_number_integer()) return size.dump() + " × " + size.dump();
  return size.is_array() && size.size() == 2 ? size[1].dump() + " × " + size[0].dump() : "";  // config.json stores the height first
}

std::string settings_html(const RunRecord& run) {
  if (run.settings.empty()) return missing_html("config.toml", "the settings");
  std::string out, group;
  bool open = false, presets = false, user = false;
  for (const SettingRow& row : rows_of(run)) {
    presets = presets || row.by == SetBy::preset;
    user = user || row.by == SetBy::user;
    if (!open || row.group != group) {
      out += std::string(open ? "</dl></div>" : "") + "<div class=\"card\">" +
             (row.group.empty() ? "" : "<h3>" + escape_markup(row.group) + "</h3>") + "<dl>";
      group = row.group;
      open = true;
    }
    out += row_html(row);
  }
  std::string legend;
  if (user) legend += "<span><span class=\"tag given\">given</span> set by you</span>";
  if (presets) legend += "<span><span class=\"tag\">preset</span> from the preset</span>";
  if (!legend.empty()) legend = "<p class=\"legend\">" + legend + "<span>all others: defaults</span></p>";
  return legend + "<div class=\"settings\">" + out + "</dl></div></div>\n";
}

std::string differences_html(std::span<const RunRecord> runs) {
  std::string rows;
  for (const auto& [key, values] : compared_settings(runs)) {
    rows += "<tr><th scope=\"row\">" + escape_markup(key) + "</th>";
    for (const std::string& value : values) rows += "<td>" + (value.empty() ? "–" : escape_markup(value)) + "</td>";
    rows += "</tr>";
  }
  if (rows.empty()) return "<p class=\"faint\">The settings of these runs are the same.</p>\n";
  std::string head;
  for (size_t i = 0; i < runs.size(); ++i)
    head += "<th scope=\"col\"><i class=\"dot c" + std::to_string(i % 8) + "\"></i>" + escape_markup(runs[i].name) + "</th>";
  return std::string(kScrollingCard) + "<table><thead><tr><th scope=\"col\">setting</th>" + head + "</tr></thead><tbody>" + rows +
         "</tbody></table></div>\n";
}

}  // namespace heed
