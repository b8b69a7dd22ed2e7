// Every command in README.md and docs/ runs as it is written, in a folder that holds what docs/names.md says.
//
// Fenced blocks: ```sh is a script. ```console has commands behind "$ " and what they print; where that is an error of heed's, just
// this error must come. ```sh brief is a script whose trainings end after two steps. ```sh skip: REASON is a script whose calls of heed are
// only parsed, with the settings of heed train. Code within sentences that begins with heed is parsed, too; words in capitals stand for
// anything.
#include <gtest/gtest.h>

#include <regex>
#include <set>

#include "tests/cli/examples.h"
#include "tests/house/source.h"

namespace heed::test {
namespace {

namespace fs = std::filesystem;

struct Block {
  std::string kind, text;  // "sh", "brief", "console", "skip"
  int line;
};

std::vector<Path> documents() {
  std::vector<Path> out{Path(HEED_SOURCE_DIR) / "README.md"};
  for (const auto& entry : fs::recursive_directory_iterator(Path(HEED_SOURCE_DIR) / "docs"))
    if (entry.path().extension() == ".md") out.push_back(entry.path());
  std::sort(out.begin(), out.end());
  return out;
}
std::string name_of_document(const Path& document) { return fs::relative(document, HEED_SOURCE_DIR).string(); }

// A block without a word that says what it is.
std::string guessed_kind(const std::string& text) {
  if (text.starts_with("$ ")) return "console";
  return text.starts_with("heed ") || text.starts_with("./dev ") ? "sh" : "";
}

std::vector<Block> blocks_in(const Path& document) {
  std::vector<Block> out;
  std::istringstream lines(get(document));
  std::string line, info;
  bool inside = false;
  Block block;
  for (int number = 1; std::getline(lines, line); ++number) {
    if (line.starts_with("```") && !inside) {
      inside = true;
      info = line.substr(3);
      block = {"", "", number};
    } else if (line.starts_with("```")) {
      inside = false;
      block.kind = info == "sh" || info == "console" ? info
                   : info == "sh brief"              ? "brief"
                   : info.starts_with("sh skip:")    ? "skip"
                   : info.empty()                    ? guessed_kind(block.text)
                                                     : "";
      EXPECT_TRUE(block.kind != "skip" || info.size() > 14) << name_of_document(document) << ":" << number << ": why is it skipped?";
      if (!block.kind.empty()) out.push_back(block);
    } else if (inside) {
      block.text += line + "\n";
    }
  }
  return out;
}

// A folder as somebody has it who follows the documents, and programs that the documents name.
struct Docs : testing::Test {
  // Not of the whole suite: every test of it may be run by itself.
  void SetUp() override {
    shelf = std::make_unique<Folder>();
    programs = std::make_unique<Folder>();
  }
  void TearDown() override {
    shelf.reset();
    programs.reset();
  }
  static void put_programs() {
    fs::create_symlink(HEED_PROGRAM, *programs / "heed");
    // Programs of others are not what is tested here.
    for (const char* name : {"tensorboard", "huggingface-cli", "apt-get", "sudo"}) put_program(*programs / name, "#!/bin/sh\n");
  }
  static void put_program(const Path& file, const std::string& text) {
    put(file, text);
    fs::permissions(file, fs::perms::owner_all);
  }

  struct Sandbox {
    Sandbox() {
      fs::copy(shelf->path(), folder.path(), fs::copy_options::recursive);
      fs::create_symlink(Path(HEED_SOURCE_DIR) / "tests", folder / "tests");
      // ./dev builds for minutes; here it only knows its commands.
      put_program(folder / "dev",
                  "#!/bin/sh\n'" HEED_SOURCE_DIR "/dev' --help | grep -q \"^  $1 \" || { echo \"no ./dev $1\"; exit 2; }\n");
      fs::create_directory(folder / "build");
    }
    // Runs a script in the folder. -> its exit code and all that it printed
    std::pair<int, std::string> bash(const std::string& script) const {
      put(scripts / "script", script);
      const std::string command = "cd '" + folder.path().string() + "' && PATH='" + programs->path().string() +
                                  "':\"$PATH\" HOME=\"$PWD\" NO_COLOR=1 bash '" + (scripts / "script").string() + "' >'" +
                                  (scripts / "out").string() + "' 2>&1 </dev/null";
      const int status = std::system(command.c_str());
      return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, get(scripts / "out")};
    }
    Folder folder, scripts;
  };

  static inline std::unique_ptr<Folder> shelf, programs;
};

const std::string kStrict = "set -euo pipefail\ntrap 'echo \"failed: $BASH_COMMAND\"' ERR\n";
const std::string kBrief = R"(heed() {
  if [[ $1 == train && " $* " != *" --resume "* ]]; then command heed "$@" steps=2; else command heed "$@"; fi
}
)";
// heed that only looks at the words, and at settings of trainings.
const std::string kParse = R"(heed() {
  command heed parse "$@" >/dev/null || return
  if [[ " $* " == *" 1 "* ]]; then return; fi
  if [[ $1 == train && " $* " != *" --resume "* ]]; then command heed "$@" --settings >/dev/null || return; fi
  if [[ $1 == lab && $# -gt 1 && $2 != heads ]]; then command heed "$@" --settings >/dev/null || return; fi
}
)";

// Each command of a console with what is shown below it.
std::vector<std::pair<std::string, std::string>> commands_in_console(const std::string& text) {
  std::vector<std::pair<std::string, std::string>> out;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("$ "))
      out.emplace_back(line.substr(2), "");
    else if (!out.empty())
      out.back().second += line + "\n";
  }
  return out;
}

TEST_F(Docs, every_block_of_commands_runs_as_it_is_written) {
  if (kSanitized) GTEST_SKIP() << "the programs of all other tests are sanitized, and this takes long";
  put_programs();
  put_example_data(shelf->path());
  put_example_models(shelf->path());
  size_t run = 0, skipped = 0;
  for (const Path& document : documents()) {
    const std::vector<Block> blocks = blocks_in(document);
    if (blocks.empty()) continue;
    const Sandbox sandbox;
    for (const Block& block : blocks) {
      const std::string place = name_of_document(document) + ":" + std::to_string(block.line) + "\n";
      if (block.kind == "skip") {
        const auto [code, out] = sandbox.bash(kStrict + kParse + block.text);
        EXPECT_EQ(code, 0) << place << block.text << out;
        ++skipped;
      } else if (block.kind != "console") {
        const auto [code, out] = sandbox.bash(kStrict + (block.kind == "brief" ? kBrief : "") + block.text);
        EXPECT_EQ(code, 0) << place << block.text << out;
        ++run;
      } else {
        for (const auto& [command, shown] : commands_in_console(block.text)) {
          const auto [code, out] = sandbox.bash("set -o pipefail\n" + command + "\n");
          const bool fails = shown.starts_with("heed: ");
          EXPECT_TRUE(fails ? code != 0 && out.starts_with(shown) : code == 0) << place << command << "\n" << out;
        }
        ++run;
      }
    }
  }
  EXPECT_GE(run, 12u);
  EXPECT_LE(skipped, 4u);  // few of them, or nothing is promised
}

// "heed predict MODEL [--top K] INPUT..." -> "heed predict 1 --top 1 1"
std::string with_words_for_capitals(std::string text) {
  text = std::regex_replace(text, std::regex(R"([\[\]]|\.\.\.)"), "");
  text = std::regex_replace(text, std::regex(R"(\|[^ ]*)"), "");
  return std::regex_replace(text, std::regex(R"( [A-Z][A-Z,]*(?= |$))"), " 1");
}

TEST_F(Docs, commands_within_sentences_have_flags_and_settings_that_there_are) {
  put_programs();
  const Sandbox sandbox;
  std::string script = kParse;
  std::set<std::string> seen;
  const std::regex code("`(heed [^`\n]*)`");
  for (const Path& document : documents()) {
    const std::string text = get(document);
    for (auto found = std::sregex_iterator(text.begin(), text.end(), code); found != std::sregex_iterator(); ++found) {
      const std::string command = with_words_for_capitals((*found)[1]);
      const std::string name = command.substr(5, command.find(' ', 5) - 5);
      if (name == "1" || name == "help" || name == "version" || !seen.insert(command).second) continue;
      const std::string checked = command == "heed " + name ? "command heed help " + name : command;
      // A sentence may leave out what the command needs.
      script += "said=$(" + checked + " 2>&1 >/dev/null) || [[ $said == *' is required' ]] || echo '" + name_of_document(document) +
                "': \"$said\"\n";
    }
  }
  EXPECT_GT(seen.size(), 40u);
  EXPECT_EQ(sandbox.bash(script).second, "");
}

TEST_F(Docs, every_name_in_the_examples_is_explained) {
  const std::string names = read_source("docs/names.md");
  for (const char* name : kExampleModels) EXPECT_NE(names.find("`" + std::string(name) + "`"), std::string::npos) << name;
  put_example_data(shelf->path());
  for (const auto& entry : fs::directory_iterator(shelf->path()))
    EXPECT_NE(names.find("`" + entry.path().filename().string()), std::string::npos) << entry.path().filename();
}

}  // namespace
}  // namespace heed::test
