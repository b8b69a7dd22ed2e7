#include "heed/cli/model_name.h"

#include <algorithm>
#include <iostream>

#include "heed/core/nearest.h"
#include "heed/io/paths.h"
#include "heed/io/printable.h"
#include "heed/train/model_folder.h"
#include "heed/train/settings_value.h"

namespace heed::cli {

std::string resolve_model(const std::string& typed) {
  check<FileError>(!is_preset(typed), typed,
                   ": there is no such folder; the preset of this name has no weights, expected a model or a run");
  return resolve_model_or_preset(typed);
}

std::string resolve_model_or_preset(const std::string& typed) {
  const std::string folder = model_folder(typed);
  if (folder != typed) std::cerr << "heed: using " << printable(folder) << '\n';
  return folder;
}

bool is_preset(const std::string& name) {
  return !path_exists(name) && std::any_of(presets().begin(), presets().end(), [&](const Preset& each) { return each.name == name; });
}

std::vector<Candidate> preset_candidates(const std::vector<std::string>& before) {
  std::vector<Candidate> out;
  for (const Preset& each : presets())
    if (before.empty()) out.push_back({each.name, each.summary});
  return out;
}

void check_model_name(const std::string& command, const std::string& name) {
  if (path_exists(name) || is_preset(name)) return;
  const bool path = name.find('/') != std::string::npos || name.ends_with(".json");
  check<FileError>(!path, name, ": there is no such folder or file");
  std::vector<std::string> names;
  for (const Preset& each : presets()) names.push_back(each.name);
  fail<UsageError>(command, ": ", quoted(name), " is not a folder, a file or a preset", did_you_mean(name, names), "; presets are ",
                   listed(names));
}

Json config_named(const std::string& command, const std::string& name, const ModelChoice& choice) {
  if (is_folder(name)) return read_json(Path(name) / "config.json");
  if (path_exists(name)) return read_json(name);
  check<UsageError>(choice.preset == name, command, ": found ", quoted(name), " and preset=", choice.preset, ", expected one of them");
  return model_config(choice);
}

}  // namespace heed::cli
