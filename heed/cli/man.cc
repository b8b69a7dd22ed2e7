// heed man: manual pages, generated from the same data as --help.
#include <algorithm>
#include <cctype>
#include <iostream>
#include <memory>
#include <sstream>

#include "heed/cli/command.h"
#include "heed/cli/command_info.h"
#include "heed/core/check.h"
#include "heed/core/nearest.h"
#include "heed/io/file.h"
#include "heed/io/paths.h"
#include "heed/train/training_job.h"

namespace heed::cli {
namespace {

// Escapes text for troff: copyable minus signs, literal backslashes and leading dots.
std::string troff(const std::string& text) {
  std::string out;
  bool line_start = true;
  for (const char c : text) {
    if (line_start && (c == '.' || c == '\'')) out += "\\&";
    if (c == '\\') out += "\\e";
    if (c == '-') out += "\\-";
    if (c != '\\' && c != '-') out += c;
    line_start = c == '\n';
  }
  return out;
}

std::string as_typed(const std::string& text) { return ".nf\n" + troff(text) + (text.ends_with('\n') ? "" : "\n") + ".fi\n"; }

void write_title(std::ostream& out, const std::string& name, const std::string& summary) {
  std::string title = name;
  for (char& c : title) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  out << ".TH " << troff(title) << " 1 \"\" \"heed " HEED_VERSION "\" \"heed\"\n.SH NAME\n"
      << troff(name) << " \\- " << troff(summary) << "\n.SH SYNOPSIS\n";
}

void flag_list(std::ostream& out, const std::string& heading, const std::vector<FlagInfo>& flags) {
  if (flags.empty()) return;
  out << ".SH " << heading << '\n';
  for (const FlagInfo& flag : flags) {
    out << ".TP\n";
    std::string names;
    for (const std::string& name : flag.names) names += (names.empty() ? "" : ", ") + name;
    const bool argument = heading == "ARGUMENTS";
    if (!argument) out << "\\fB" << troff(names) << "\\fR";
    if (!flag.value.empty()) out << (argument ? "" : " ") << "\\fI" << troff(flag.value) << "\\fR";
    out << '\n' << troff(flag.text.empty() ? names : flag.text) << '\n';
  }
}

void write_ending(std::ostream& out) {
  out << ".SH ENVIRONMENT\n.TP\nHEED_THREADS\nNumber of compute threads, 1 to 1024; by default the cores available to the process.\n"
         ".TP\nHEED_ISA\navx512, avx2 or baseline; by default the best that the machine supports.\n"
         ".TP\nHEED_DEVICE\nauto, cpu, cuda or cuda:NUMBER, like the setting device=; by default auto, the first GPU if there is one.\n"
         ".TP\nHEED_PROCESS_TIMEOUT\nSeconds without a heartbeat after which a process counts as lost; by default 20.\n"
         ".TP\nTMPDIR\nFolder for temporary files; by default /tmp.\n.TP\nNO_COLOR\nDisables colours if set to anything.\n"
         ".SH EXIT STATUS\n0 success, 1 failure, 2 wrong usage, 3 bad input file, 4 training diverged, 130 stopped by Ctrl\\-C.\n";
}

std::string command_page(const CommandInfo& info, const std::string& name) {
  std::ostringstream out;
  write_title(out, "heed-" + name, info.summary);
  out << "\\fBheed " << troff(name) << "\\fR";
  for (const FlagInfo& argument : info.arguments)
    out << " \\fI" << troff(argument.value.empty() ? argument.names[0] : argument.value) << "\\fR";
  if (!info.commands.empty()) out << " \\fICOMMAND\\fR";
  out << " [\\fIFLAGS\\fR]\n";
  flag_list(out, "ARGUMENTS", info.arguments);
  flag_list(out, "OPTIONS", info.flags);
  for (const CommandInfo& subcommand : info.commands) {
    out << ".SH \"HEED " << troff(name) << " " << troff(subcommand.name) << "\"\n" << troff(subcommand.summary) << '\n';
    for (const std::vector<FlagInfo>* flags : {&subcommand.arguments, &subcommand.flags})
      for (const FlagInfo& flag : *flags)
        out << ".TP\n\\fB" << troff(flag.names.back()) << "\\fR" << (flag.value.empty() ? "" : " \\fI" + troff(flag.value) + "\\fR") << '\n'
            << troff(flag.text) << '\n';
    if (!subcommand.footer.empty()) out << ".PP\n" << as_typed(subcommand.footer);
  }
  if (name == "train")
    for (const TaskKind& kind : task_kinds())
      out << ".SH \"SETTINGS OF " << troff(kind.name) << "\"\n"
          << troff(kind.summary) << "\n.PP\n"
          << as_typed(TrainingJob(kind.name).settings().help());
  if (!info.footer.empty()) out << ".SH NOTES\n" << as_typed(info.footer);
  write_ending(out);
  out << ".SH SEE ALSO\n.BR heed (1)\n";
  return out.str();
}

std::string main_page(const std::vector<CommandInfo>& commands) {
  std::ostringstream out;
  write_title(out, "heed", "a transformer toolkit");
  out << "\\fBheed\\fR \\fICOMMAND\\fR [\\fIARGUMENTS\\fR]\n.SH DESCRIPTION\nheed trains, evaluates, explains and runs transformers on "
         "CPUs "
         "and GPUs. \\fBheed help\\fR \\fICOMMAND\\fR explains a command.\n.SH COMMANDS\n";
  for (const CommandInfo& each : commands) out << ".TP\n.BR heed\\-" << troff(each.name) << " (1)\n" << troff(each.summary) << '\n';
  write_ending(out);
  return out.str();
}

void run_man(const std::string& name, const std::string& folder) {
  const std::vector<CommandInfo> commands = all_command_info();
  if (!folder.empty()) {
    check<UsageError>(name.empty(), "man: found '", name, "' and -o, which writes all pages; expected one of them");
    make_folders(folder);
    write_text(Path(folder) / "heed.1", main_page(commands));
    for (const CommandInfo& each : commands) write_text(Path(folder) / ("heed-" + each.name + ".1"), command_page(each, each.name));
    return;
  }
  if (name.empty()) {
    std::cout << main_page(commands);
    return;
  }
  std::vector<std::string> names;
  for (const CommandInfo& each : commands) {
    names.push_back(each.name);
    if (each.name == name) std::cout << command_page(each, name);
  }
  const bool known = std::find(names.begin(), names.end(), name) != names.end();
  check<UsageError>(known, "man: unknown command '", name, "'", did_you_mean(name, names));
}

const Command man_command("man", "The manual page of heed or of a command, for man(1)", [](Flags& flags) {
  auto name = std::make_shared<std::string>(), folder = std::make_shared<std::string>();
  flags.option("command", *name, "A command; by default the page of heed itself").value("COMMAND").no_default();
  flags.option(kOutputFlag, *folder, "Write heed.1 and a page per command to this folder").value("FOLDER").no_default();
  flags.completes([](const std::vector<std::string>& before) {
    std::vector<Candidate> out;
    for (const Command* each : all_commands())
      if (before.empty()) out.push_back({each->name, each->summary});
    return out;
  });
  flags.footer("cmake --install installs the pages.\n\nExamples:\n  heed man train | man -l -\n  heed man -o man1");
  return [name, folder] { run_man(*name, *folder); };
});

}  // namespace
}  // namespace heed::cli
