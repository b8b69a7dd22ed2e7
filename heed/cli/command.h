// A command of the program is one file that defines one Command; the program finds it by itself.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "heed/cli/flags.h"

namespace heed::cli {

class Command {
 public:
  // Tells the parser about the flags and gives back what the command does once they are parsed.
  using Setup = std::function<std::function<void()>(Flags& flags)>;

  // Edits the arguments after the command's name before they are parsed. flags: the command's own flags, such as "--json"
  using Prepare = std::function<void(std::vector<std::string>& words, const std::vector<std::string>& flags)>;

  Command(std::string name, std::string summary, Setup setup, Prepare prepare = nullptr);
  Command(const Command&) = delete;
  Command& operator=(const Command&) = delete;

  const std::string name, summary;
  const Setup setup;
  const Prepare prepare;
};

const std::vector<const Command*>& every_command();  // by name

}  // namespace heed::cli
