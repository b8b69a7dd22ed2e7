// What a shell may offer behind the words that stand on its command line.
#pragma once

#include <string>
#include <vector>

#include "heed/cli/flags.h"
#include "heed/train/settings.h"

namespace heed::cli {

// words: behind the program's name; the last one is the one being typed and may be empty. Words that end with = want a value behind it.
std::vector<Candidate> completions(const std::vector<std::string>& words);

// A line a candidate, as the scripts of heed completion read them. shell: bash, zsh or fish. Bash has taken words apart at every =.
std::string completion_lines(const std::string& shell, std::vector<std::string> words);

// key=value words: one for each value where they are known, else one that ends with =.
std::vector<Candidate> setting_candidates(const Settings& settings);

}  // namespace heed::cli
