#include "heed/cli/command_info.h"

#include <CLI/CLI.hpp>

#include "heed/cli/command.h"

namespace heed::cli {
namespace {

FlagInfo described_flag(const CLI::Option& option) {
  FlagInfo out{.names = {}, .value = option.get_type_name(), .text = option.get_description(), .choices = choices_of(option)};
  for (const std::string& name : option.get_snames()) out.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) out.names.push_back("--" + name);
  if (out.names.empty()) out.names.push_back(option.get_name());
  if (option.get_items_expected_max() == 0) out.value.clear();
  if (!option.get_option_text().empty()) out.value = option.get_option_text();
  return out;
}

CommandInfo described_app(const CLI::App& app, const Completer& completes) {
  CommandInfo out{.name = app.get_name(),
                  .summary = app.get_description(),
                  .footer = app.get_footer(),
                  .flags = {},
                  .arguments = {},
                  .commands = {},
                  .completes = completes};
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_group().empty()) continue;  // hidden
    (option->get_positional() ? out.arguments : out.flags).push_back(described_flag(*option));
  }
  for (const CLI::App* subcommand : app.get_subcommands([](const CLI::App*) { return true; }))
    out.commands.push_back(described_app(*subcommand, {}));
  return out;
}

}  // namespace

std::vector<CommandInfo> all_command_info() {
  std::vector<CommandInfo> out;
  for (const Command* command : all_commands()) {
    CLI::App app(command->summary, command->name);
    Completer completes;
    Flags flags(app, &completes);
    command->setup(flags);
    out.push_back(described_app(app, completes));
  }
  return out;
}

}  // namespace heed::cli
