// Completion and manual pages, run through real shells and man(1).
#include "heed/cli/completion.h"

#include <gtest/gtest.h>

#include <set>

#include "heed/cli/command.h"
#include "heed/lab/experiment.h"
#include "heed/train/training_job.h"
#include "tests/cli/program.h"

namespace heed::cli {
namespace {

using heed::test::Folder;
using heed::test::get;
using heed::test::put;

bool is_installed(const char* program) { return std::system(("command -v " + std::string(program) + " >/dev/null 2>&1").c_str()) == 0; }

std::set<std::string> lines_of(const std::string& text) {
  std::set<std::string> out;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) out.insert(line);
  return out;
}

// The output of a script; the program is on PATH as heed.
std::string output_of_shell(const std::string& shell, const std::string& script) {
  const Folder folder;
  std::filesystem::create_symlink(HEED_PROGRAM, folder / "heed");
  put(folder / "script", script);
  const std::string at = folder.path();
  EXPECT_EQ(std::system(("PATH='" + at + "':\"$PATH\" " + shell + " '" + at + "/script' >'" + at + "/out' 2>&1").c_str()), 0)
      << get(folder / "out");
  return get(folder / "out");
}

// Completions offered by bash. words: the line split as readline does, also at every =
std::set<std::string> offered_by_bash(const std::string& words) {
  return lines_of(output_of_shell("bash --norc", "source <(heed completion bash)\nCOMP_WORDS=(heed " + words +
                                                     ")\nCOMP_CWORD=$((${#COMP_WORDS[@]} - 1))\ncompopt() { :; }\n_heed heed\n"
                                                     "printf '%s\\n' \"${COMPREPLY[@]}\"\n"));
}

std::set<std::string> names_of_commands() {
  std::set<std::string> out;
  for (const Command* each : all_commands())
    if (!each->name.starts_with("test-")) out.insert(each->name);  // of other tests
  return out;
}

TEST(Completion, bash_completes_commands_flags_settings_and_values) {
  std::set<std::string> first = names_of_commands();
  first.insert({"help", "version", "--help", "--version"});
  EXPECT_EQ(offered_by_bash("''"), first);
  EXPECT_EQ(offered_by_bash("tra"), (std::set<std::string>{"train", "translate"}));
  EXPECT_EQ(offered_by_bash("help tra"), (std::set<std::string>{"train", "translate"}));
  EXPECT_EQ(offered_by_bash("data l"), (std::set<std::string>{"look"}));
  EXPECT_TRUE(offered_by_bash("train --res").contains("--resume"));
  EXPECT_EQ(offered_by_bash("convert --dtype ''"), (std::set<std::string>{"bf16", "f16", "f32"}));
  EXPECT_EQ(offered_by_bash("convert --dtype = b"), (std::set<std::string>{"bf16"}));

  std::set<std::string> tasks;
  for (const TaskKind& kind : task_kinds()) tasks.insert(kind.name);
  EXPECT_EQ(offered_by_bash("train ''"), tasks);
  EXPECT_EQ(offered_by_bash("train --quiet --runs there ''"), tasks);
  for (const std::string& task : tasks) {
    const Json settings = TrainingJob(task).settings().json();
    const std::set<std::string> offered = offered_by_bash("train " + task + " ''");
    for (const auto& [key, value] : settings.items())
      EXPECT_TRUE(offered.contains(key + (value.is_object() ? "." : "="))) << task << " " << key;
    EXPECT_EQ(offered.size(), settings.size());
  }
  EXPECT_EQ(offered_by_bash("train classify optim"), (std::set<std::string>{"optimizer="}));
  EXPECT_EQ(offered_by_bash("train classify data = photos optimizer ="), (std::set<std::string>{"adam", "adamw", "sgd"}));
  EXPECT_EQ(offered_by_bash("train classify optimizer = s"), (std::set<std::string>{"sgd"}));
  EXPECT_EQ(offered_by_bash("train classify flip = t"), (std::set<std::string>{"true"}));
  EXPECT_EQ(offered_by_bash("demo preset = resn"), (std::set<std::string>{"resnet18"}));
  EXPECT_EQ(offered_by_bash("train classify data = x"), (std::set<std::string>{""}));  // left to bash: file names

  std::set<std::string> all_presets;
  for (const Preset& preset : presets()) all_presets.insert(preset.name);
  for (const char* words : {"cost ''", "inspect ''", "train classify preset ="}) EXPECT_EQ(offered_by_bash(words), all_presets) << words;
  std::set<std::string> experiments{"all", "heads"};
  for (const lab::Experiment& each : lab::all_experiments()) experiments.insert(each.name);
  EXPECT_EQ(offered_by_bash("lab ''"), experiments);
  EXPECT_EQ(offered_by_bash("nothing ''"), (std::set<std::string>{""}));
}

TEST(Completion, bash_registers_completion) {
  EXPECT_EQ(output_of_shell("bash --norc", "source <(heed completion bash)\ncomplete -p heed\n"),
            "complete -o bashdefault -o default -F _heed heed\n");
}

// All shells get the same completions.
TEST(Completion, zsh_and_fish_match_bash) {
  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{
           {""}, {"train", ""}, {"train", "classify", ""}, {"train", "classify", "--"}, {"lab", ""}, {"cost", "v"}}) {
    std::set<std::string> zsh, fish;
    for (const std::string& line : lines_of(completion_lines("zsh", words))) zsh.insert(line.substr(0, line.find(':')));
    for (const std::string& line : lines_of(completion_lines("fish", words))) fish.insert(line.substr(0, line.find('\t')));
    EXPECT_EQ(zsh, lines_of(completion_lines("bash", words)));
    EXPECT_EQ(fish, zsh);
    EXPECT_FALSE(zsh.empty());
  }
  const std::string position = completion_lines("fish", {"train", "classify", "optimizer=a"});
  EXPECT_NE(position.find("optimizer=adamw\toptimizer\n"), std::string::npos) << position;
  if (is_installed("fish")) {
    const std::string output =
        output_of_shell("fish --no-config", "heed completion fish | source\ncomplete -C 'heed train classify optimizer='\n");
    EXPECT_NE(output.find("optimizer=adamw"), std::string::npos) << output;
  }
  if (is_installed("zsh")) {
    const Folder folder;
    EXPECT_EQ(output_of_shell("zsh -f", "autoload -U compinit && compinit -u -d '" + (folder / "dump").string() +
                                            "' && source <(heed completion zsh) && print ${_comps[heed]}\n"),
              "_heed\n");
  }
}

TEST(Manual, every_command_has_a_valid_man_page) {
  const Folder folder;
  EXPECT_EQ(heed::test::output_of_heed("man -o '" + (folder / "man1").string() + "'"), "");
  std::set<std::string> pages, expected{"heed.1"};
  for (const auto& entry : std::filesystem::directory_iterator(folder / "man1")) pages.insert(entry.path().filename());
  for (const std::string& name : names_of_commands()) expected.insert("heed-" + name + ".1");
  EXPECT_EQ(pages, expected);
  const std::string train = get(folder / "man1/heed-train.1");
  for (const char* words :
       {".SH NAME\nheed\\-train \\- Train a model", "\\fB\\-\\-resume\\fR \\fIRUN\\fR", "SETTINGS OF classify", "  optimizer=adamw"})
    EXPECT_NE(train.find(words), std::string::npos) << words;
  EXPECT_EQ(heed::test::output_of_heed("man train"), train);
  EXPECT_EQ(heed::test::output_of_heed("man tarin"), "2: heed: man: unknown command 'tarin'; did you mean 'train'?\n");
  for (const std::string& page : pages) {
    const std::string page_file = "'" + (folder / "man1" / page).string() + "'", out = (folder / "out").string();
    const auto errors_of = [&](const std::string& command) {
      EXPECT_EQ(std::system((command + " >/dev/null 2>'" + out + "'").c_str()), 0) << command;
      return get(out);
    };
    if (is_installed("groff")) {
      EXPECT_EQ(errors_of("groff -k -man -Tutf8 -ww -rLL=100n " + page_file), "") << page;
    }
    if (is_installed("mandoc")) {
      EXPECT_EQ(errors_of("mandoc -T lint -W error " + page_file), "") << page;
    }
    if (is_installed("man")) {
      EXPECT_EQ(errors_of("LC_ALL=C.UTF-8 MANROFFSEQ= man --warnings -E UTF-8 -l -Tutf8 -Z " + page_file), "") << page;
    }
  }
}

}  // namespace
}  // namespace heed::cli
