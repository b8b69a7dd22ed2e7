// Completion candidates of a command line, for shells.
#pragma once

#include <string>
#include <vector>

#include "heed/cli/flags.h"
#include "heed/train/settings.h"

namespace heed::cli {

// words: the arguments; the last one is being typed and may be empty. A candidate that ends with = expects a value.
std::vector<Candidate> completions(const std::vector<std::string>& words);

// One line per candidate, in the format the scripts of heed completion read. shell: bash, zsh or fish. Bash splits words at every =.
std::string completion_lines(const std::string& shell, std::vector<std::string> words);

// key=value for every allowed value of a setting, or key= if any value is allowed
std::vector<Candidate> setting_candidates(const Settings& settings);

}  // namespace heed::cli
