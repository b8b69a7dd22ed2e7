// heed completion: scripts for bash, zsh and fish that complete commands, flags, settings, presets and experiments. The scripts call
// heed complete SHELL WORDS..., so they are never out of date.
#include "heed/cli/completion.h"

#include <algorithm>
#include <iostream>
#include <map>
#include <memory>

#include "heed/cli/command.h"
#include "heed/cli/command_info.h"
#include "heed/core/check.h"

namespace heed::cli {
namespace {

const std::map<std::string, std::string> kScripts{
    {"bash", R"(# Completion of heed for bash. Source it, or put it into ~/.local/share/bash-completion/completions/heed
_heed() {
  local IFS=$'\n'
  COMPREPLY=($("$1" complete bash "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
  if [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *= ]]; then compopt -o nospace; fi
}
complete -o bashdefault -o default -F _heed heed
)"},
    {"zsh", R"(#compdef heed
# Completion of heed for zsh. Put it into a folder of $fpath as _heed
_heed() {
  local -a lines keys others
  lines=("${(@f)$("${words[1]}" complete zsh "${(@)words[2,CURRENT]}" 2>/dev/null)}")
  keys=(${(M)lines:#*=:*})
  others=(${lines:#*=:*})
  if [[ -z "${lines[*]}" ]]; then
    compset -P '*='
    _files
    return
  fi
  (( ${#keys} )) && _describe setting keys -S ''
  (( ${#others} )) && _describe word others
}
if [[ "${funcstack[1]}" == _heed ]]; then _heed "$@"; else compdef _heed heed; fi
)"},
    {"fish", R"(# Completion of heed for fish. Put it into ~/.config/fish/completions/heed.fish
function __heed_words
  set -l words (commandline -opc)
  set -l current (commandline -ct)
  $words[1] complete fish $words[2..-1] "$current" 2>/dev/null
end
complete -c heed -a '(__heed_words)'
)"}};

const CommandInfo* found_command(const std::vector<CommandInfo>& commands, const std::string& name) {
  const auto found = std::find_if(commands.begin(), commands.end(), [&](const CommandInfo& each) { return each.name == name; });
  return found == commands.end() ? nullptr : &*found;
}

const FlagInfo* found_flag(const CommandInfo& command, const std::string& name) {
  for (const FlagInfo& flag : command.flags)
    if (std::find(flag.names.begin(), flag.names.end(), name) != flag.names.end()) return &flag;
  return nullptr;
}

std::vector<Candidate> to_candidates(const std::vector<std::string>& values, const std::string& prefix = "") {
  std::vector<Candidate> out;
  for (const std::string& value : values) out.push_back({prefix + value, ""});
  return out;
}

std::vector<Candidate> named_commands(const std::vector<CommandInfo>& commands) {
  std::vector<Candidate> out;
  for (const CommandInfo& each : commands) out.push_back({each.name, each.summary});
  return out;
}

// Completions of a command's arguments. words: the arguments after its name
std::vector<Candidate> argument_completions(const CommandInfo& command, const std::vector<std::string>& words) {
  if (!command.commands.empty()) {
    if (words.size() == 1) return named_commands(command.commands);
    const CommandInfo* subcommand = found_command(command.commands, words[0]);
    return subcommand ? argument_completions(*subcommand, {words.begin() + 1, words.end()}) : std::vector<Candidate>();
  }
  const std::string& current = words.back();
  if (words.size() > 1)
    if (const FlagInfo* flag = found_flag(command, words[words.size() - 2]); flag && !flag->value.empty())
      return to_candidates(flag->choices);
  if (current.starts_with('-')) {
    const std::string name = current.substr(0, current.find('='));
    if (name != current) {
      const FlagInfo* flag = found_flag(command, name);
      return flag ? to_candidates(flag->choices, name + "=") : std::vector<Candidate>();
    }
    std::vector<Candidate> out;
    for (const FlagInfo& flag : command.flags) out.push_back({flag.names.back(), flag.text});
    return out;
  }
  std::vector<std::string> arguments;
  for (size_t i = 0; i + 1 < words.size(); ++i) {
    const FlagInfo* flag = found_flag(command, words[i]);
    if (!words[i].starts_with('-')) arguments.push_back(words[i]);
    if (flag && !flag->value.empty()) ++i;
  }
  return command.completes ? command.completes(arguments) : std::vector<Candidate>();
}

// Undoes the splitting at = by bash: "a" "=" "b" -> "a=b"
std::vector<std::string> join_at_equals(const std::vector<std::string>& words) {
  std::vector<std::string> out;
  for (size_t i = 0; i < words.size(); ++i) {
    const bool joins = i > 0 && !out.empty() && (words[i] == "=" || words[i - 1] == "=");
    joins ? void(out.back() += words[i]) : out.push_back(words[i]);
  }
  return out;
}

std::string escaped_colons(const std::string& text) {
  std::string out;
  for (const char c : text) out += c == ':' ? "\\:" : std::string(1, c);
  return out;
}

void print_script(const std::string& shell) { std::cout << kScripts.at(shell); }

const Command completion_command("completion", "Print a completion script for a shell", [](Flags& flags) {
  auto shell = std::make_shared<std::string>();
  flags.option("shell", *shell, "bash, zsh or fish").value("SHELL").required().must_be(key_of(kScripts));
  flags.completes([](const std::vector<std::string>&) {
    std::vector<Candidate> out;
    for (const auto& [name, script] : kScripts) out.push_back({name, ""});
    return out;
  });
  flags.footer(
      "cmake --install installs the scripts.\n\nExamples:\n  source <(heed completion bash)\n"
      "  heed completion zsh > ~/.zfunc/_heed\n  heed completion fish > ~/.config/fish/completions/heed.fish");
  return [shell] { print_script(*shell); };
});

}  // namespace

std::vector<Candidate> completions(const std::vector<std::string>& words) {
  const std::vector<CommandInfo> commands = all_command_info();
  if (words.empty()) return {};
  std::vector<Candidate> all;
  if (words.size() == 1) {
    all = named_commands(commands);
    for (const char* word : {"help", "version", "--help", "--version"}) all.push_back({word, ""});
  } else if (words[0] == "help") {
    if (words.size() == 2) all = named_commands(commands);
  } else if (const CommandInfo* command = found_command(commands, words[0])) {
    all = argument_completions(*command, {words.begin() + 1, words.end()});
  }
  // Keys are completed first, then their values.
  const std::string& current = words.back();
  std::vector<Candidate> out;
  for (Candidate& each : all) {
    const size_t equals = each.text.find('=');
    if (current.find('=') == std::string::npos && equals != std::string::npos) each.text.resize(equals + 1);
    if (!each.text.starts_with(current) || each.text == current) continue;
    const bool known = std::any_of(out.begin(), out.end(), [&](const Candidate& other) { return other.text == each.text; });
    if (!known) out.push_back(std::move(each));
  }
  return out;
}

std::string completion_lines(const std::string& shell, std::vector<std::string> words) {
  check<UsageError>(kScripts.contains(shell), "complete: found '", shell, "', expected bash, zsh or fish");
  if (shell == "bash") words = join_at_equals(words);
  std::string out;
  for (const Candidate& each : completions(words)) {
    const size_t equals = words.back().find('=');
    if (shell == "bash") out += equals == std::string::npos ? each.text : each.text.substr(equals + 1);
    if (shell == "zsh") out += escaped_colons(each.text) + ":" + each.meaning;
    if (shell == "fish") out += each.text + "\t" + each.meaning;
    out += '\n';
  }
  return out;
}

std::vector<Candidate> setting_candidates(const Settings& settings) {
  std::vector<Candidate> out;
  settings.each([&](const std::string& key, const std::string& meaning, const std::vector<std::string>& values) {
    if (values.empty()) out.push_back({key.ends_with('.') ? key : key + "=", meaning});
    for (const std::string& value : values) out.push_back({key + "=" + value, meaning});
  });
  return out;
}

}  // namespace heed::cli
