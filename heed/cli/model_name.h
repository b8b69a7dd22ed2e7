// What people may type as MODEL: the folder of a model, or of a run; and to learn what it is made of or costs, a config.json or a preset
// of heed train.
#pragma once

#include <string>

#include "heed/cli/flags.h"
#include "heed/models/model.h"
#include "heed/train/presets.h"

namespace heed::cli {

// The folder to load. Of a run it is that of its best model, and standard error says so.
std::string named_model(const std::string& typed);

// A UsageError that begins with `command`, or a FileError, where the name is none of these.
void check_model_name(const std::string& command, const std::string& name);
std::vector<Candidate> preset_candidates(const std::vector<std::string>& before);  // for the first argument
bool is_preset(const std::string& name);                                           // and no folder or file has the name

// config.json of a folder or file; of a preset with what was chosen.
Json config_named(const std::string& command, const std::string& name, const ModelChoice& choice);

// Shapes without numbers. With a folder's weights it is known how files hold them; without them shapes follow from `config`.
Model outlined(const std::string& name, const Json& config, bool with_weights = true);

}  // namespace heed::cli
