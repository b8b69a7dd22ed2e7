// A command is one file that defines one static Command, which registers itself.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "heed/cli/flags.h"

namespace heed::cli {

class Command {
 public:
  // Declares the flags and returns the action to run once they are parsed.
  using Setup = std::function<std::function<void()>(Flags& flags)>;

  // Edits the arguments after the command's name before they are parsed. flags: the command's own flags, such as "--json"
  using Prepare = std::function<void(std::vector<std::string>& arguments, const std::vector<std::string>& flags)>;

  Command(std::string name, std::string summary, Setup setup, Prepare prepare = nullptr);
  Command(const Command&) = delete;
  Command& operator=(const Command&) = delete;

  const std::string name, summary;
  const Setup setup;
  const Prepare prepare;
};

const std::vector<const Command*>& all_commands();  // sorted by name
const std::vector<std::string>& given_arguments();  // of the command that runs, with its name

}  // namespace heed::cli
