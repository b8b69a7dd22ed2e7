// Shared by all commands: the list of commands, the command line, errors and exit codes.
#include "heed/cli/command.h"

#include <poll.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <new>
#include <sstream>

#include "heed/cli/completion.h"
#include "heed/cli/help_format.h"
#include "heed/cli/parse_error.h"
#include "heed/cli/read_progress.h"
#include "heed/cli/run.h"
#include "heed/cli/terminal_text.h"
#include "heed/core/check.h"
#include "heed/core/device.h"
#include "heed/core/isa.h"
#include "heed/core/nearest.h"
#include "heed/core/parallel.h"
#include "heed/io/json.h"
#include "heed/io/mapped_ranges.h"
#include "heed/io/paths.h"
#include "heed/io/printable.h"
#include "heed/io/terminal_style.h"

namespace heed::cli {
namespace {

constexpr const char* kExamples = R"(Examples:
  heed demo                 everything once: train on Fashion-MNIST, evaluate, report, predict
  heed train TASK --settings
                            lists the settings of a task; without TASK, the tasks
  heed train classify data=FOLDER
                            trains on your own images; also sentiment, pairs, translate, pretrain, language, contrastive, caption, answers
  heed train --resume RUN   resumes a run that was stopped
  heed runs                 lists training runs and their metrics
  heed eval MODEL DATA      evaluates a model; MODEL is always the folder of a model or of a run
  heed report RUN...        curves, errors and settings of runs on one page
  heed data look PATH       shows what is in a data set
  heed attend IN.safetensors causal=true -o OUT.safetensors
                            attention on your own tensors
  heed parity FOLDER        compares a checkpoint's outputs with those of transformers
  heed predict MODEL INPUT  labels for sentences or images
  heed embed MODEL 'one sentence' 'another'
                            how similar sentences are
  heed generate MODEL 'Once upon a time'
                            continues the text with a language model
  heed translate MODEL 'Good morning.'
  heed inspect MODEL        modules and cost of a model, and its attention maps
  heed lab all              tests claims about attention by experiment
  heed cost bert-base       predicts parameters, arithmetic and memory of a model
  heed prune RUN OUT        measures how much each attention head matters, and removes some
  heed devices              lists the CPU and the GPUs with their measured peaks

heed help COMMAND or heed COMMAND --help explains a command.
Models run on device=auto, cpu, cuda or cuda:1; auto, the default, is the first GPU if there is one. attend and lab use the CPU.
mpirun -n 4 heed train ... trains with several processes, also on several machines: docs/scale.md.
Environment: HEED_DEVICE (like device=), HEED_THREADS (1 to 1024, of each process), HEED_ISA (avx512, avx2, baseline),
HEED_PROCESS_TIMEOUT (seconds without a heartbeat after which a process counts as lost, 20), TMPDIR, NO_COLOR.
Exit codes: 0 success, 1 failure, 2 wrong usage, 3 bad input file, 4 training diverged, 130 stopped by Ctrl-C.
heed completion SHELL prints a completion script, heed man the manual pages.)";

std::vector<const Command*>& commands() {
  static std::vector<const Command*> list;
  return list;
}

std::vector<std::string>& all_arguments() {
  static std::vector<std::string> list;
  return list;
}

std::string version() {
  apply_instruction_set();
  const int threads = thread_count();
  return "heed " HEED_VERSION " (" + instruction_set() + ", " + std::to_string(threads) + (threads == 1 ? " thread)" : " threads)");
}

std::vector<std::string> flag_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options())
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  return names;
}

const Command& command_named(const std::string& name) {
  std::vector<std::string> names;
  for (const Command* command : all_commands()) {
    if (command->name == name) return *command;
    names.push_back(command->name);
  }
  fail<UsageError>("unknown command '", name, "'", did_you_mean(name, names));
}

// A message without invalid UTF-8 and control characters, which file names may contain.
std::string shown_message(std::string_view message) {
  std::string out;
  for (;;) {
    const size_t end = message.find_first_of("\n\t");  // used by heed's own messages
    out += printable(message.substr(0, end));
    if (end == message.npos) return out;
    out += message[end];
    message.remove_prefix(end + 1);
  }
}

// Reports arguments the parser did not consume. The first one is the error; the others may be its values.
void refuse_leftovers(const CLI::App& app) {
  std::vector<std::string> leftovers = app.remaining(true);
  std::erase(leftovers, "--");  // only marks the end of flags
  if (leftovers.empty()) return;
  const std::string& argument = leftovers.front();
  const std::vector<CLI::App*> chosen = app.get_subcommands();
  if (argument.starts_with('-')) {
    const std::string flag = argument.substr(0, argument.find('='));
    fail<UsageError>("unknown flag '", flag, "'", did_you_mean(flag, flag_names(chosen.empty() ? app : *chosen.front())));
  }
  if (!chosen.empty()) fail<UsageError>(chosen.front()->get_name(), ": unexpected argument '", argument, "'");
  command_named(argument);
}

// "heed help train" becomes "heed train --help"; "heed train help" is an error.
std::vector<std::string> normalized_arguments(int argc, const char* const* argv) {
  std::vector<std::string> arguments(argv + std::min(argc, 1), argv + argc);
  if (arguments.empty()) return arguments;
  if (arguments == std::vector<std::string>{"version"}) return {"--version"};
  if (arguments[0] == "help") {
    arguments.erase(arguments.begin());
    if (!arguments.empty() && !arguments[0].starts_with('-')) command_named(arguments[0]);
    arguments.emplace_back("--help");
  }
  const bool misplaced_help =
      arguments.size() == 2 && arguments[1] == "help" && !arguments[0].starts_with('-') && !std::filesystem::exists("help");
  if (misplaced_help) fail<UsageError>(command_named(arguments[0]).name, ": found 'help'; did you mean 'heed help ", arguments[0], "'?");
  return arguments;
}

// The device that `device=NAME` or `--device NAME` anywhere in the arguments selects, which are removed; else HEED_DEVICE or auto.
std::string device_in(std::vector<std::string>& arguments) {
  const char* const environment = std::getenv("HEED_DEVICE");
  std::string name = environment && *environment ? environment : "auto";
  const auto end = std::find(arguments.begin(), arguments.end(), "--");
  const auto at = std::find_if(arguments.begin(), end, [](const std::string& argument) {
    return argument.starts_with("device=") || argument.starts_with("--device=") || argument == "--device";
  });
  if (at == end) return name;
  const bool separate = *at == "--device";
  check<UsageError>(!separate || at + 1 != end, "--device without a value, expected auto, cpu, cuda or cuda:NUMBER");
  name = separate ? at[1] : at->substr(at->find('=') + 1);
  const bool is_setting = arguments[0] == "train";  // saved with the others
  if (!is_setting) arguments.erase(at, at + (separate ? 2 : 1));
  return name;
}

int parse_and_run(int argc, const char* const* argv) {
  std::vector<std::string> arguments = normalized_arguments(argc, argv);
  if (arguments.size() > 2 && arguments[0] == "complete") {  // called by the scripts of heed completion
    std::cout << completion_lines(arguments[1], {arguments.begin() + 2, arguments.end()});
    return 0;
  }
  // heed parse COMMAND... only parses: for tests of the commands in the documentation.
  const bool only_parse = !arguments.empty() && arguments[0] == "parse";
  if (only_parse) arguments.erase(arguments.begin());
  all_arguments() = arguments;
  const std::string device = device_in(arguments);
  CLI::App app("heed: a C++ transformer toolkit", "heed");
  app.set_version_flag("-V,--version", version, "Print the version and exit");
  app.footer(kExamples);
  app.formatter(help_format());
  app.allow_extras();
  app.require_subcommand(0, 1);  // a command name such as translate may be an argument of another command
  std::vector<std::pair<CLI::App*, std::function<void()>>> actions;
  for (const Command* command : all_commands()) {
    CLI::App* subcommand = app.add_subcommand(command->name, command->summary);
    subcommand->allow_extras();
    subcommand->option_defaults()->always_capture_default();
    Flags flags(*subcommand);
    actions.emplace_back(subcommand, command->setup(flags));
    if (command->prepare && !arguments.empty() && arguments[0] == command->name) {
      std::vector<std::string> rest(arguments.begin() + 1, arguments.end());
      command->prepare(rest, flag_names(*subcommand));
      arguments.resize(1);
      arguments.insert(arguments.end(), rest.begin(), rest.end());
    }
  }
  try {
    std::reverse(arguments.begin(), arguments.end());  // CLI11 expects reversed arguments
    app.parse(std::move(arguments));
  } catch (const CLI::Success& request) {  // --help, --version
    std::ostringstream text;
    app.exit(request, text);
    std::cout << styled_headings(for_terminal(text.str()), has_colour(STDOUT_FILENO));
    return 0;
  } catch (const CLI::ParseError& error) {
    throw UsageError(parse_error_text(error, app));
  }
  refuse_leftovers(app);
  if (only_parse) return 0;
  apply_instruction_set();  // report errors in the environment before any file is read
  set_default_device(device_named(device));
  thread_count();
  for (const auto& [flags, action] : actions)
    if (flags->parsed()) {
      action();
      return 0;
    }
  fail<UsageError>("no command given; heed --help lists them");
}

RunResult path_error(const std::filesystem::filesystem_error& error) {
  try {
    refuse_path(error);
  } catch (const Error& translated) {
    return {translated.exit_code(), translated.what()};
  }
}

// Without a message if its reader has seen enough: heed help | head
RunResult unwritable_output() {
  pollfd output{STDOUT_FILENO, POLLOUT, 0};
  const bool reader_left = ::poll(&output, 1, 0) == 1 && (output.revents & POLLERR) != 0;
  return {1, reader_left ? "" : "standard output: cannot write"};
}

}  // namespace

Command::Command(std::string command_name, std::string command_summary, Setup command_setup, Prepare command_prepare)
    : name(std::move(command_name)),
      summary(std::move(command_summary)),
      setup(std::move(command_setup)),
      prepare(std::move(command_prepare)) {
  std::vector<const Command*>& list = commands();
  list.insert(std::upper_bound(list.begin(), list.end(), this, [](auto* a, auto* b) { return a->name < b->name; }), this);
}

const std::vector<const Command*>& all_commands() { return commands(); }
const std::vector<std::string>& given_arguments() { return all_arguments(); }

void print_error(const std::string& message) {
  std::cout.exceptions(std::ios::goodbit);
  std::cout.flush();  // keep the order of output and error
  std::cerr << styled("heed:", TextStyle::red, has_colour(STDERR_FILENO)) << ' ' << shown_message(message) << '\n';
}

RunResult run_without_message(int argc, const char* const* argv) {
  exit_on_truncated_mapping();
  try {
    std::cout.exceptions(std::ios::badbit);  // stop as soon as the output cannot be written
    show_long_reads();
    const int exit_code = parse_and_run(argc, argv);
    if (!std::cout.flush().good()) return unwritable_output();
    std::cout.exceptions(std::ios::goodbit);
    return {exit_code};
  } catch (const std::ios_base::failure&) {
    return unwritable_output();
  } catch (const Error& error) {
    return {error.exit_code(), error.what()};
  } catch (const std::filesystem::filesystem_error& error) {
    return path_error(error);
  } catch (const std::bad_alloc&) {
    return {1, "out of memory"};
  } catch (const std::length_error&) {  // a container size beyond max_size()
    return {1, "out of memory: a requested size is larger than any memory"};
  } catch (const Json::exception& error) {
    return {FileError("").exit_code(), std::string("a value of a JSON file is not what heed expects: ") + error.what()};
  } catch (const std::exception& error) {
    return {1, std::string("unexpected: ") + error.what()};
  } catch (...) {
    return {1, "unexpected failure"};
  }
}

int run(int argc, const char* const* argv) {
  const RunResult result = run_without_message(argc, argv);
  if (!result.error.empty()) print_error(result.error);
  return result.exit_code;
}

}  // namespace heed::cli
