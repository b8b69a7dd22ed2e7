// Every command in README.md and docs/ runs as written, in a folder that holds what docs/names.md lists.
//
// Fenced blocks: ```sh is a script. ```console has commands after "$ " and their output; if that is an error of heed, exactly this error
// must occur. ```sh brief is a script whose trainings stop after two steps. ```sh skip: REASON is a script whose calls of heed are only
// parsed, including the settings of heed train. Inline code that starts with heed is parsed too; words in capitals are placeholders.
#include <gtest/gtest.h>

#include <regex>
#include <set>

#include "tests/cli/examples.h"
#include "tests/structure/source.h"

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

// The kind of a block without an info string.
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

// A folder with the data of the documents, and the programs they name.
struct Docs : testing::Test {
  // Per test, not per suite, as each test may be run alone.
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
    // Other programs are replaced by stubs.
    for (const char* name : {"tensorboard", "hf", "apt-get", "sudo"}) put_program(*programs / name, "#!/bin/sh\n");
  }
  static void put_program(const Path& file, const std::string& text) {
    put(file, text);
    fs::permissions(file, fs::perms::owner_all);
  }

  struct Sandbox {
    Sandbox() {
      fs::copy(shelf->path(), folder.path(), fs::copy_options::recursive);
      fs::create_symlink(Path(HEED_SOURCE_DIR) / "tests", folder / "tests");
      // ./dev would build for minutes; this stub only checks its command.
      put_program(folder / "dev",
                  "#!/bin/sh\n'" HEED_SOURCE_DIR "/dev' --help | grep -q \"^  $1 \" || { echo \"no ./dev $1\"; exit 2; }\n");
      fs::create_directory(folder / "build");
    }
    // Runs a script in the folder. -> its exit code and output
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
// heed that only parses its arguments and the settings of trainings.
const std::string kParse = R"(heed() {
  command heed parse "$@" >/dev/null || return
  if [[ " $* " == *" 1 "* ]]; then return; fi
  if [[ $1 == train && " $* " != *" --resume "* ]]; then command heed "$@" --settings >/dev/null || return; fi
  if [[ $1 == lab && $# -gt 1 && $2 != heads ]]; then command heed "$@" --settings >/dev/null || return; fi
}
)";

// The commands of a console block with their output.
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
  if (kSanitized) GTEST_SKIP() << "takes long, and the programs are sanitized in all other tests";
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
  EXPECT_LE(skipped, 4u);  // more would leave too much unchecked
}

// "heed predict MODEL [--top K] INPUT..." -> "heed predict 1 --top 1 1"
std::string with_placeholders_filled(std::string text) {
  text = std::regex_replace(text, std::regex(R"([\[\]]|\.\.\.)"), "");
  text = std::regex_replace(text, std::regex(R"(\|[^ ]*)"), "");
  return std::regex_replace(text, std::regex(R"( [A-Z][A-Z,]*(?= |$))"), " 1");
}

TEST_F(Docs, inline_commands_have_existing_flags_and_settings) {
  put_programs();
  const Sandbox sandbox;
  std::string script = kParse;
  std::set<std::string> seen;
  const std::regex code("`(heed [^`\n]*)`");
  for (const Path& document : documents()) {
    const std::string text = get(document);
    for (auto found = std::sregex_iterator(text.begin(), text.end(), code); found != std::sregex_iterator(); ++found) {
      const std::string command = with_placeholders_filled((*found)[1]);
      const std::string name = command.substr(5, command.find(' ', 5) - 5);
      if (name == "1" || name == "help" || name == "version" || !seen.insert(command).second) continue;
      const std::string checked = command == "heed " + name ? "command heed help " + name : command;
      // Inline code may leave out required arguments.
      script += "error=$(" + checked + " 2>&1 >/dev/null) || [[ $error == *' is required; '* ]] || echo '" + name_of_document(document) +
                "': \"$error\"\n";
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
