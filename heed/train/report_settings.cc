// The settings of a run: the values in force, who chose them, and what differs between runs.
#include <algorithm>

#include "heed/io/markup.h"
#include "heed/train/dialect.h"
#include "heed/train/presets.h"
#include "heed/train/report_draw.h"
#include "heed/train/run_summary.h"

namespace heed {
namespace {

// Settings of the model that do nothing unless they are chosen.
const std::set<std::string> kOnlyIfChosen{"reach", "features", "reduction", "pattern", "soft_cap"};

std::string value_of(const Json& value) { return value.is_string() ? value.get<std::string>() : value.dump(); }

// "4" where all of the keys have it, "4, 6" where they differ.
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

// What config.json of the trained model has for a setting that was left to the preset. Empty: it says nothing about it.
std::string in_model(const Json& config, const std::string& key) {
  if (!config.is_object() || !config.contains("architectures")) return "";
  const std::string architecture = value_of(config["architectures"][0]);
  const auto words =
      std::find_if(dialects().begin(), dialects().end(), [&](const Dialect& each) { return architecture.starts_with(each.begins); });
  if (words == dialects().end()) return "";
  const Json own = config.value("heed", Json::object());
  const auto own_or = [&](const char* name, const std::string& otherwise) {
    return own.contains(name) ? values_at(own, {name}) : otherwise;
  };
  const bool attends = !words->heads.empty();
  if (key == "layers") return values_at(config, words->layers);
  if (key == "heads") return values_at(config, words->heads);
  if (key == "width") return values_at(config, words->width);
  if (key == "feed_forward") return values_at(config, words->feed_forward);
  if (key == "activation") return values_at(config, words->activation);
  if (key == "patch") return values_at(config, {"patch_size"});
  if (!attends) return "";
  if (key == "dropout") {
    const std::string found = values_at(config, words->dropout);
    return found.empty() ? "0" : found;
  }
  if (key == "position") return own_or("positions", words->own);
  if (key == "attention") return own_or("attention", "soft");
  if (key == "norm") return own_or("norm", words->norm);
  if (key == "pooling") return own_or("pooling", words->poolings.empty() ? "" : "cls");
  if (key == "stochastic_depth") return own_or("stochastic_depth", "0");
  for (const char* flag : {"content", "project_values"})
    if (key == flag) return own_or(flag, "true");
  return kOnlyIfChosen.contains(key) ? own_or(key.c_str(), "") : "";
}

bool left_to_the_preset(const std::string& value) { return value.empty() || value == "0" || value == "0.0" || value == "-1.0"; }

enum class ChosenBy { person, preset, none };  // none: the default

ChosenBy chosen_by(const RunRecord& run, const std::string& key) {
  if (!run.given) return ChosenBy::none;
  if (run.given->contains(key)) return ChosenBy::person;
  for (const Preset& preset : presets())
    if (preset.name == run.setting({"preset"}))
      for (const auto& [name, value] : preset.settings)
        if (name == key) return ChosenBy::preset;
  return ChosenBy::none;
}

struct SettingRow {
  std::string group = {}, name = {}, value = {}, meaning = {};
  ChosenBy by = ChosenBy::none;
};

std::vector<SettingRow> rows_of(const RunRecord& run) {
  std::vector<SettingRow> out;
  for (const auto& [key, value] : run.settings) {
    const auto found = run.setting_about.find(key);
    const SettingAbout about = found == run.setting_about.end() ? SettingAbout() : found->second;
    const size_t dot = key.rfind('.');
    SettingRow row{.group = about.group, .name = key, .value = value, .meaning = about.meaning, .by = chosen_by(run, key)};
    if (about.group.empty() && dot != key.npos) row.group = key.substr(0, dot), row.name = key.substr(dot + 1);
    if (left_to_the_preset(value) && kOnlyIfChosen.contains(key)) row.value = "";
    if (left_to_the_preset(value))
      if (const std::string made = in_model(run.model, key); !made.empty()) row.value = made, row.by = ChosenBy::preset;
    out.push_back(std::move(row));
  }
  const std::string size = image_size_text(run);
  if (size.empty()) return out;
  const auto named = [&](const char* name) {
    return std::find_if(out.begin(), out.end(), [&](const SettingRow& row) { return row.name == name; });
  };
  if (const auto image = named("image"); image != out.end()) {
    image->value = size;  // also where it says auto or model
    return out;
  }
  SettingRow row{.name = "image", .value = size, .meaning = "Size of the model's images: width and height in pixels", .by = ChosenBy::none};
  const auto data = named("data");
  if (data != out.end()) row.group = data->group;
  out.insert(data == out.end() ? data : data + 1, row);
  return out;
}

std::string row_html(const SettingRow& row) {
  const std::string title = row.meaning.empty() ? "" : " title=\"" + in_markup(row.meaning) + "\"";
  const std::string mark = row.by == ChosenBy::person   ? " <span class=\"tag given\">given</span>"
                           : row.by == ChosenBy::preset ? " <span class=\"tag\">preset</span>"
                                                        : "";
  return "<div" + std::string(row.by == ChosenBy::person ? " class=\"given\"" : "") + "><dt" + title + ">" + in_markup(row.name) +
         "</dt><dd>" + (row.value.empty() ? "–" : in_markup(row.value)) + mark + "</dd></div>";
}

}  // namespace

std::string image_size_text(const RunRecord& run) {
  if (!run.model.is_object() || !run.model.contains("image_size")) return "";
  const Json& size = run.model["image_size"];
  if (size.is_number_integer()) return size.dump() + " × " + size.dump();
  return size.is_array() && size.size() == 2 ? size[1].dump() + " × " + size[0].dump() : "";  // config.json has the height first
}

std::string settings_html(const RunRecord& run) {
  if (run.settings.empty()) return missing_html("config.toml", "its settings");
  std::string out, group;
  bool open = false, presets = false, people = false;
  for (const SettingRow& row : rows_of(run)) {
    presets = presets || row.by == ChosenBy::preset;
    people = people || row.by == ChosenBy::person;
    if (!open || row.group != group) {
      out += std::string(open ? "</dl>" : "") + "<dl class=\"card\">" +
             (row.group.empty() ? "" : "<dt class=\"group\">" + in_markup(row.group) + "</dt>");
      group = row.group;
      open = true;
    }
    out += row_html(row);
  }
  std::string legend;
  if (people) legend += "<span><span class=\"tag given\">given</span> chosen by you</span>";
  if (presets) legend += "<span><span class=\"tag\">preset</span> from the preset and its recipe</span>";
  if (!legend.empty()) legend = "<p class=\"legend\">" + legend + "<span>all others: defaults</span></p>";
  return legend + "<div class=\"settings\">" + out + "</dl></div>\n";
}

std::string differences_html(std::span<const RunRecord> runs) {
  std::string rows;
  for (const auto& [key, values] : compared_settings(runs)) {
    rows += "<tr><th scope=\"row\">" + in_markup(key) + "</th>";
    for (const std::string& value : values) rows += "<td>" + (value.empty() ? "–" : in_markup(value)) + "</td>";
    rows += "</tr>";
  }
  if (rows.empty()) return "<p class=\"faint\">The settings of these runs are the same.</p>\n";
  std::string head;
  for (size_t i = 0; i < runs.size(); ++i)
    head += "<th scope=\"col\"><i class=\"dot c" + std::to_string(i % 8) + "\"></i>" + in_markup(runs[i].name) + "</th>";
  return "<div class=\"card scroll\"><table><thead><tr><th scope=\"col\">setting</th>" + head + "</tr></thead><tbody>" + rows +
         "</tbody></table></div>\n";
}

}  // namespace heed
