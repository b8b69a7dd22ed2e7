// Completion and manual pages: what shells and man(1) make of them.
#include "heed/cli/completion.h"

#include <gtest/gtest.h>

#include <set>

#include "heed/cli/command.h"
#include "heed/lab/experiment.h"
#include "heed/train/training.h"
#include "tests/cli/program.h"

namespace heed::cli {
namespace {

using heed::test::Folder;
using heed::test::get;
using heed::test::put;

bool is_there(const char* program) { return std::system(("command -v " + std::string(program) + " >/dev/null 2>&1").c_str()) == 0; }

std::set<std::string> lines_of(const std::string& text) {
  std::set<std::string> out;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) out.insert(line);
  return out;
}

// What a shell prints; the program is on its PATH as heed.
std::string said_by_shell(const std::string& shell, const std::string& script) {
  const Folder folder;
  std::filesystem::create_symlink(HEED_PROGRAM, folder / "heed");
  put(folder / "script", script);
  const std::string at = folder.path();
  EXPECT_EQ(std::system(("PATH='" + at + "':\"$PATH\" " + shell + " '" + at + "/script' >'" + at + "/out' 2>&1").c_str()), 0)
      << get(folder / "out");
  return get(folder / "out");
}

// What bash offers for a line, of which words are given as readline parts them: at every =, too.
std::set<std::string> offered_by_bash(const std::string& words) {
  return lines_of(said_by_shell("bash --norc", "source <(heed completion bash)\nCOMP_WORDS=(heed " + words +
                                                   ")\nCOMP_CWORD=$((${#COMP_WORDS[@]} - 1))\ncompopt() { :; }\n_heed heed\n"
                                                   "printf '%s\\n' \"${COMPREPLY[@]}\"\n"));
}

std::set<std::string> names_of_commands() {
  std::set<std::string> out;
  for (const Command* each : every_command())
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
    const Json settings = Training(task).settings().json();
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
  EXPECT_EQ(offered_by_bash("train classify data = x"), (std::set<std::string>{""}));  // left to bash: a file

  std::set<std::string> all_presets;
  for (const Preset& preset : presets()) all_presets.insert(preset.name);
  for (const char* words : {"cost ''", "inspect ''", "train classify preset ="}) EXPECT_EQ(offered_by_bash(words), all_presets) << words;
  std::set<std::string> experiments{"all", "heads"};
  for (const lab::Experiment& each : lab::every_experiment()) experiments.insert(each.name);
  EXPECT_EQ(offered_by_bash("lab ''"), experiments);
  EXPECT_EQ(offered_by_bash("nothing ''"), (std::set<std::string>{""}));
}

TEST(Completion, bash_offers_it_at_the_prompt) {
  EXPECT_EQ(said_by_shell("bash --norc", "source <(heed completion bash)\ncomplete -p heed\n"),
            "complete -o bashdefault -o default -F _heed heed\n");
}

// The lines of all shells say the same.
TEST(Completion, zsh_and_fish_have_what_bash_has) {
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
  EXPECT_NE(position.find("optimizer=adamw\twho takes the steps\n"), std::string::npos) << position;
  if (is_there("fish")) {
    const std::string said =
        said_by_shell("fish --no-config", "heed completion fish | source\ncomplete -C 'heed train classify optimizer='\n");
    EXPECT_NE(said.find("optimizer=adamw"), std::string::npos) << said;
  }
  if (is_there("zsh")) {
    const Folder folder;
    EXPECT_EQ(said_by_shell("zsh -f", "autoload -U compinit && compinit -u -d '" + (folder / "dump").string() +
                                          "' && source <(heed completion zsh) && print ${_comps[heed]}\n"),
              "_heed\n");
  }
}

TEST(Manual, every_command_has_a_page_that_man_takes) {
  const Folder folder;
  EXPECT_EQ(heed::test::said_by_heed("man -o '" + (folder / "man1").string() + "'"), "");
  std::set<std::string> pages, expected{"heed.1"};
  for (const auto& entry : std::filesystem::directory_iterator(folder / "man1")) pages.insert(entry.path().filename());
  for (const std::string& name : names_of_commands()) expected.insert("heed-" + name + ".1");
  EXPECT_EQ(pages, expected);
  const std::string train = get(folder / "man1/heed-train.1");
  for (const char* words :
       {".SH NAME\nheed\\-train \\- Train a model", "\\fB\\-\\-resume\\fR \\fIRUN\\fR", "SETTINGS OF classify", "  optimizer=adamw"})
    EXPECT_NE(train.find(words), std::string::npos) << words;
  EXPECT_EQ(heed::test::said_by_heed("man train"), train);
  EXPECT_EQ(heed::test::said_by_heed("man tarin"), "2: heed: man: there is no command 'tarin'; did you mean 'train'?\n");
  for (const std::string& page : pages) {
    const std::string page_file = "'" + (folder / "man1" / page).string() + "'", out = (folder / "out").string();
    const auto complaints = [&](const std::string& command) {
      EXPECT_EQ(std::system((command + " >/dev/null 2>'" + out + "'").c_str()), 0) << command;
      return get(out);
    };
    if (is_there("groff")) {
      EXPECT_EQ(complaints("groff -k -man -Tutf8 -ww -rLL=100n " + page_file), "") << page;
    }
    if (is_there("mandoc")) {
      EXPECT_EQ(complaints("mandoc -T lint -W error " + page_file), "") << page;
    }
    if (is_there("man")) {
      EXPECT_EQ(complaints("LC_ALL=C.UTF-8 MANROFFSEQ= man --warnings -E UTF-8 -l -Tutf8 -Z " + page_file), "") << page;
    }
  }
}

}  // namespace
}  // namespace heed::cli
