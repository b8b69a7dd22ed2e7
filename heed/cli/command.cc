// The parts that all commands share: the list of them, the command line, errors and exit codes.
#include "heed/cli/command.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <iostream>
#include <new>
#include <sstream>

#include "heed/cli/completion.h"
#include "heed/cli/read_progress.h"
#include "heed/cli/run.h"
#include "heed/core/check.h"
#include "heed/core/isa.h"
#include "heed/core/nearest.h"
#include "heed/core/parallel.h"
#include "heed/io/json.h"
#include "heed/io/mapped_ranges.h"
#include "heed/io/paint.h"
#include "heed/io/paths.h"
#include "heed/io/printable.h"

namespace heed::cli {
namespace {

constexpr const char* kExamples = R"(Examples:
  heed demo                 the main job in one go: train on Fashion-MNIST, judge, report, predict
  heed train TASK --settings
                            what can be learned, and every setting of it
  heed train classify data=FOLDER
                            a model of your own pictures; also sentiment, pairs, translate, pretrain, language
  heed train --resume RUN   go on with a run that was stopped
  heed runs                 which runs there are, and how good they are
  heed eval MODEL DATA      how good a model is; MODEL is everywhere a model's folder or a run's
  heed report RUN...        curves, mistakes and settings of runs on one page
  heed data look PATH       what is in a data set
  heed attend IN.safetensors causal=true -o OUT.safetensors
                            attention on your own tensors
  heed parity FOLDER        a checkpoint against what transformers computed
  heed predict MODEL INPUT  labels for sentences or pictures
  heed embed MODEL 'one sentence' 'another'
                            how alike sentences are
  heed generate MODEL 'Once upon a time'
                            a language model goes on
  heed translate MODEL 'Good morning.'
  heed inspect MODEL        what a model is made of, and where its heads look
  heed lab all              claims about attention, each run and judged
  heed cost bert-base       what a model takes, before anything runs

heed help COMMAND or heed COMMAND --help explains a command.
Environment: HEED_THREADS (1 to 1024), HEED_ISA (avx512, avx2, baseline), TMPDIR, NO_COLOR.
Exit codes: 0 fine, 1 failure, 2 wrong usage, 3 bad input file, 4 training diverged, 130 stopped by Ctrl-C.
heed completion SHELL and heed man make what shells complete with and manual pages.)";

std::vector<const Command*>& commands() {
  static std::vector<const Command*> list;
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
  for (const Command* command : every_command()) {
    if (command->name == name) return *command;
    names.push_back(command->name);
  }
  fail<UsageError>("unknown command '", name, "'", did_you_mean(name, names));
}

// A message as a terminal may show it: names of files may hold bytes that are no text, or that a terminal would obey.
std::string shown_message(std::string_view message) {
  std::string out;
  for (;;) {
    const size_t end = message.find_first_of("\n\t");  // which heed's own messages have
    out += printable(message.substr(0, end));
    if (end == message.npos) return out;
    out += message[end];
    message.remove_prefix(end + 1);
  }
}

// What the parser could not place. Its first word is the culprit; others may be its values.
void refuse_leftovers(const CLI::App& app) {
  std::vector<std::string> leftovers = app.remaining(true);
  std::erase(leftovers, "--");  // it only says that no flags follow
  if (leftovers.empty()) return;
  const std::string& word = leftovers.front();
  const std::vector<CLI::App*> chosen = app.get_subcommands();
  if (word.starts_with('-')) {
    const std::string flag = word.substr(0, word.find('='));
    fail<UsageError>("unknown flag '", flag, "'", did_you_mean(flag, flag_names(chosen.empty() ? app : *chosen.front())));
  }
  if (!chosen.empty()) fail<UsageError>(chosen.front()->get_name(), ": unexpected argument '", word, "'");
  command_named(word);
}

// "heed help train" is "heed train --help"; "heed train help" is a slip.
std::vector<std::string> understood(int argc, const char* const* argv) {
  std::vector<std::string> words(argv + std::min(argc, 1), argv + argc);
  if (words.empty()) return words;
  if (words == std::vector<std::string>{"version"}) return {"--version"};
  if (words[0] == "help") {
    words.erase(words.begin());
    if (!words.empty() && !words[0].starts_with('-')) command_named(words[0]);
    words.emplace_back("--help");
  }
  const bool slip = words.size() == 2 && words[1] == "help" && !words[0].starts_with('-') && !std::filesystem::exists("help");
  if (slip) fail<UsageError>(command_named(words[0]).name, ": found 'help'; did you mean 'heed help ", words[0], "'?");
  return words;
}

int parse_and_run(int argc, const char* const* argv) {
  std::vector<std::string> words = understood(argc, argv);
  if (words.size() > 2 && words[0] == "complete") {  // asked by the scripts of heed completion
    std::cout << completion_lines(words[1], {words.begin() + 2, words.end()});
    return 0;
  }
  // For those who check the commands in documents: parsed as ever, and nothing is run.
  const bool only_parse = !words.empty() && words[0] == "parse";
  if (only_parse) words.erase(words.begin());
  CLI::App app("heed: a C++ transformer toolkit", "heed");
  app.set_version_flag("-V,--version", version, "Print the version and exit");
  app.footer(kExamples);
  app.allow_extras();
  app.require_subcommand(0, 1);  // a word such as translate may be an argument of another command
  std::vector<std::pair<CLI::App*, std::function<void()>>> actions;
  for (const Command* command : every_command()) {
    CLI::App* own = app.add_subcommand(command->name, command->summary);
    own->allow_extras();
    own->option_defaults()->always_capture_default();
    Flags flags(*own);
    actions.emplace_back(own, command->setup(flags));
    if (command->prepare && !words.empty() && words[0] == command->name) {
      std::vector<std::string> rest(words.begin() + 1, words.end());
      command->prepare(rest, flag_names(*own));
      words.resize(1);
      words.insert(words.end(), rest.begin(), rest.end());
    }
  }
  try {
    std::reverse(words.begin(), words.end());  // as the parser takes them
    app.parse(std::move(words));
  } catch (const CLI::Success& asked) {  // --help, --version
    std::ostringstream text;
    app.exit(asked, text);
    std::cout << painted_headings(text.str(), has_colour(STDOUT_FILENO));
    return 0;
  } catch (const CLI::ParseError& error) {
    throw UsageError(error.what());
  }
  refuse_leftovers(app);
  if (only_parse) return 0;
  apply_instruction_set();  // what is wrong with the environment shows here, before a file could be blamed for it
  thread_count();
  for (const auto& [flags, action] : actions)
    if (flags->parsed()) {
      action();
      return 0;
    }
  fail<UsageError>("no command given; heed --help lists them");
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

const std::vector<const Command*>& every_command() { return commands(); }

int run(int argc, const char* const* argv) {
  const auto report = [](const std::string& message, int exit_code) {
    std::cout.exceptions(std::ios::goodbit);
    std::cout.flush();  // what was said before the error stands before it
    std::cerr << painted("heed:", Paint::red, has_colour(STDERR_FILENO)) << ' ' << shown_message(message) << '\n';
    return exit_code;
  };
  const auto report_path = [&](const std::filesystem::filesystem_error& error) {
    try {
      refuse_path(error);
    } catch (const Error& ours) {
      return report(ours.what(), ours.exit_code());
    }
  };
  end_on_shortened_files();
  try {
    std::cout.exceptions(std::ios::badbit);  // stop as soon as the output cannot be written
    show_long_reads();
    const int exit_code = parse_and_run(argc, argv);
    check(std::cout.flush().good(), "standard output: cannot write");
    std::cout.exceptions(std::ios::goodbit);
    return exit_code;
  } catch (const std::ios_base::failure&) {
    return report("standard output: cannot write", 1);
  } catch (const Error& error) {
    return report(error.what(), error.exit_code());
  } catch (const std::filesystem::filesystem_error& error) {
    return report_path(error);
  } catch (const std::bad_alloc&) {
    return report("out of memory", 1);
  } catch (const std::length_error&) {  // as large as no memory is
    return report("out of memory: something larger than any memory was asked for", 1);
  } catch (const Json::exception& error) {
    return report(std::string("a value of a JSON file is not what heed expects: ") + error.what(), FileError("").exit_code());
  } catch (const std::exception& error) {
    return report(std::string("unexpected: ") + error.what(), 1);
  } catch (...) {
    return report("unexpected failure", 1);
  }
}

}  // namespace heed::cli
