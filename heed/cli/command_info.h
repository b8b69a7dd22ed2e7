// The command line of the program as data, for completion and manual pages.
#pragma once

#include <string>
#include <vector>

#include "heed/cli/flags.h"

namespace heed::cli {

struct FlagInfo {
  std::vector<std::string> names;    // "-o", "--out"; or the name of an argument
  std::string value, text;           // value: its placeholder in --help; empty: takes no value
  std::vector<std::string> choices;  // allowed values; empty: any
};

struct CommandInfo {
  std::string name, summary, footer;
  std::vector<FlagInfo> flags, arguments;
  std::vector<CommandInfo> commands;  // subcommands
  Completer completes;                // completes arguments; null: file names
};

std::vector<CommandInfo> all_command_info();  // sorted by name

}  // namespace heed::cli
