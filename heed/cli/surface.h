// What the command line of the program looks like, as data: for completion and manual pages.
#pragma once

#include <string>
#include <vector>

#include "heed/cli/flags.h"

namespace heed::cli {

struct FlagInfo {
  std::vector<std::string> names;  // "-o", "--out"; of an argument its name alone
  std::string value, text;         // value: how --help calls it; empty: there is none
  std::vector<std::string> words;  // that the value may be; empty: any
};

struct CommandInfo {
  std::string name, summary, footer;
  std::vector<FlagInfo> flags, arguments;
  std::vector<CommandInfo> commands;  // below this one
  Completes completes;                // arguments; null: files
};

std::vector<CommandInfo> described_commands();  // by name

}  // namespace heed::cli
