#include "heed/cli/parse_error.h"

#include <CLI/CLI.hpp>

namespace heed::cli {

std::string parse_error_text(const CLI::ParseError& error, const CLI::App& app) {
  std::string what = error.what(), command;
  const CLI::App* chosen = &app;
  while (!chosen->get_subcommands().empty()) {
    chosen = chosen->get_subcommands().front();
    command += (command.empty() ? "" : " ") + chosen->get_name();
  }
  if (error.get_name() == "RequiredError") {
    std::vector<std::string> names;
    for (const CLI::App* each : chosen->get_subcommands([](const CLI::App*) { return true; })) names.push_back(each->get_name());
    if (!names.empty()) return command + ": a subcommand is required; expected heed " + command + " " + names.front() + " ...";
    return command + ": " + what + "; heed help " + command + " explains the arguments";
  }
  // "--top: 1 required K missing"
  const size_t colon = what.find(": "), value = what.find(" required ");
  if (error.get_name() != "ArgumentMismatch" || colon == what.npos || value == what.npos || !what.ends_with(" missing")) return what;
  const std::string flag = what.substr(0, colon), placeholder = what.substr(value + 10, what.size() - value - 10 - 8);
  return command + ": " + flag + " without a value, expected " + flag + " " + placeholder;
}

}  // namespace heed::cli
