// Completions of a command line, for the shells.
#pragma once

#include <string>
#include <vector>

#include "heed/cli/flags.h"
#include "heed/train/settings.h"

namespace heed::cli {

// words: the arguments; the last one is being typed and may be empty. A candidate that ends with = is to be followed by a value.
std::vector<Candidate> completions(const std::vector<std::string>& words);

// A line a candidate, as the scripts of heed completion read them. shell: bash, zsh or fish. Bash has taken words apart at every =.
std::string completion_lines(const std::string& shell, std::vector<std::string> words);

// key=value words: one for each value where they are known, else one that ends with =.
std::vector<Candidate> setting_candidates(const Settings& settings);

}  // namespace heed::cli
