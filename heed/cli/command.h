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

  Command(std::string name, std::string summary, Setup setup);
  Command(const Command&) = delete;
  Command& operator=(const Command&) = delete;

  const std::string name, summary;
  const Setup setup;
};

const std::vector<const Command*>& every_command();  // by name

}  // namespace heed::cli
