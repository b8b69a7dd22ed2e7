// The MODEL argument of commands: the folder of a model or of a run. Commands that need no weights also take a config.json or a preset
// of heed train.
#pragma once

#include <string>

#include "heed/cli/flags.h"
#include "heed/models/model.h"
#include "heed/train/presets.h"

namespace heed::cli {

// The folder to load. For a run this is its best model, which is printed on standard error.
std::string resolve_model(const std::string& typed);
std::string resolve_model_or_preset(const std::string& typed);  // for commands that take presets, too

// Throws a UsageError that starts with `command`, or a FileError, if the name is none of these.
void check_model_name(const std::string& command, const std::string& name);
std::vector<Candidate> preset_candidates(const std::vector<std::string>& before);  // for the first argument
bool is_preset(const std::string& name);                                           // false if a folder or file has this name

// The config.json of a folder or file, or the config of a preset with `choice` applied.
Json config_named(const std::string& command, const std::string& name, const ModelChoice& choice);

}  // namespace heed::cli
