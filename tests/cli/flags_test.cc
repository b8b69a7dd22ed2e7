// Flags: invalid values, names that all commands share, and the text of --help.
#include <sstream>

#include "heed/cli/terminal_text.h"
#include "heed/io/json.h"
#include "tests/cli/program.h"
#include "tests/cli/terminal.h"

namespace heed::test {
namespace {

TEST(Flags, nan_and_inf_are_refused) {
  for (const char* command :
       {"generate x y --temperature ", "generate x y --top-p ", "generate x y --min-p ", "generate x y --length-penalty ",
        "generate x y --repetition-penalty ", "translate x y --length-penalty ", "parity x --tolerance "})
    for (const std::string value : {"nan", "inf", "-inf", "NaN", "1e999"}) {
      const std::string arguments = command + value,
                        flag = arguments.substr(arguments.find("--"), arguments.rfind(' ') - arguments.find("--"));
      const ProgramResult ran = run_heed(arguments);
      EXPECT_EQ(ran.exit_code, 2) << arguments << ran.err;
      EXPECT_NE(ran.err.find(flag), std::string::npos) << arguments << ran.err;
      EXPECT_NE(ran.err.find(value), std::string::npos) << arguments << ran.err;
    }
}

TEST(Flags, errors_state_the_value_and_what_is_expected) {
  const auto expect = [](const std::string& arguments, const std::string& message) {
    EXPECT_EQ(output_of_heed(arguments), "2: heed: " + message + "\n") << arguments;
  };
  expect("generate x y --top-k 1.5", "--top-k: found 1.5, expected a whole number");
  expect("generate x y --seed -3", "--seed: found -3, expected a whole number of 0 or more");
  expect("predict x y --top 99999999999999999999", "--top: found 99999999999999999999, expected a whole number");
  expect("predict x y --top -1", "--top: found -1, expected 0 or more");
  expect("generate x y --top-p 2", "--top-p: found 2, expected a number from 0 to 1");
  expect("generate x y --length-penalty abc", "--length-penalty: found abc, expected a finite number");
  expect("serve --port 99999", "--port: found 99999, expected a whole number from 0 to 65535");
  expect("completion tcsh", "shell: found tcsh, expected one of bash, fish, zsh");
  expect("predict x --top", "predict: --top without a value, expected --top K");
}

TEST(Flags, missing_arguments_name_the_command) {
  EXPECT_EQ(output_of_heed("predict"), "2: heed: predict: model is required; heed help predict explains the arguments\n");
  EXPECT_EQ(output_of_heed("data photos"), "2: heed: data: a subcommand is required; expected heed data look ...\n");
  EXPECT_EQ(output_of_heed("data look"), "2: heed: data look: path is required; heed help data look explains the arguments\n");
  EXPECT_EQ(output_of_heed("train my.toml"), "2: heed: train: found my.toml before the task, expected heed train TASK my.toml\n");
  for (const char* command : {"eval ", "prune ", "predict ", "parity "}) {
    const std::string error = output_of_heed(std::string(command) + "/nowhere");
    EXPECT_TRUE(error.starts_with("3: heed: /nowhere: there is no such folder")) << error;
  }
}

TEST(Flags, output_has_the_same_names_in_every_command) {
  const Folder folder;
  for (const char* flag : {"-o ", "--out ", "--output "}) {
    EXPECT_EQ(output_of_heed("man " + (flag + (folder / "pages").string())), "");
    for (const char* command :
         {"attend --help", "data look --help", "eval --help", "lab --help", "predict --help", "report --help", "vocabulary train --help"})
      EXPECT_NE(output_of_heed(command).find("-o,--out,--output"), std::string::npos) << command;
  }
  EXPECT_TRUE(std::filesystem::exists(folder / "pages/heed-man.1"));
  EXPECT_EQ(run_heed("man -o /proc/none").exit_code, 1);
  EXPECT_EQ(output_of_heed("--help").find("=[]"), std::string::npos);
  EXPECT_EQ(output_of_heed("convert --help").find("=[]"), std::string::npos);
  EXPECT_NE(output_of_heed("serve --help").find("--memory SIZE=8GB"), std::string::npos);
}

TEST(Flags, help_has_one_empty_line_between_its_parts) {
  for (const char* command : {"eval", "attend", "predict", "data", "data look"}) {
    const std::string help = output_of_heed(command + std::string(" --help"));
    EXPECT_EQ(help.find("\n\n\n"), std::string::npos) << help;
    EXPECT_NE(help.find("\n\n"), std::string::npos) << help;
  }
}

TEST(Flags, tables_can_be_printed_as_json) {
  const Json lists = Json::parse(output_of_heed("variants --json")).at("lists");
  EXPECT_EQ(lists.at(0).at("key"), "positions");
  const Json norms = Json::parse(output_of_heed("variants norm --json")).at("lists");
  ASSERT_EQ(norms.size(), 1u);
  EXPECT_EQ(norms[0]["choices"][0]["name"], "before");
  EXPECT_FALSE(Json::parse(output_of_heed("variants terms --json")).at("terms").empty());
  const Json parity = Json::parse(output_of_heed("parity --json '" + fixture("vit-classify").string() + "'"));
  EXPECT_EQ(parity.at("architecture"), "ViTForImageClassification");
  for (const Json& each : parity.at("outputs")) EXPECT_TRUE(each.at("same")) << each;
}

TEST(HelpText, shows_the_usage_of_arguments) {
  for (const auto& [command, usage] : std::vector<std::pair<std::string, std::string>>{{"predict", "MODEL [INPUT...]"},
                                                                                       {"inspect", "MODEL [INPUT]"},
                                                                                       {"report", "RUN..."},
                                                                                       {"train", "[TASK [CONFIG.toml] [KEY=VALUE ...]]"},
                                                                                       {"attend", "[FILE [name=value ...]]"},
                                                                                       {"vocabulary train", "FILE..."},
                                                                                       {"eval", "MODEL [DATA] [COLUMN=NAME ...]"}})
    EXPECT_NE(output_of_heed(command + " --help").find("\nUsage: heed " + command + " [OPTIONS] " + usage + "\n"), std::string::npos)
        << output_of_heed(command + " --help");
}

TEST(HelpText, is_wrapped_below_its_last_column) {
  const std::string flag = "  --flag X                    One two three four five";
  EXPECT_EQ(cli::wrapped(flag + "\nshort\n", 50), flag.substr(0, 48) + "\n                              five\nshort\n");
  EXPECT_EQ(cli::wrapped(flag, 40), flag.substr(0, 37) + "\n    three four five");  // the column would be too narrow
  EXPECT_EQ(cli::wrapped("  --text-column,--text COLUMN Of tables: the column", 50),
            "  --text-column,--text COLUMN Of tables: the\n                              column");
  EXPECT_EQ(cli::wrapped("one two three\n\nfour", 8), "one two\nthree\n\nfour");
  const std::string command = "  heed predict model 'a sentence' 'another sentence'";
  EXPECT_EQ(cli::wrapped(command, 20), command);
  EXPECT_EQ(cli::wrapped("aaaaaaaaaaaa bbbbbbbbbbbb c", 5), "aaaaaaaaaaaa\nbbbbbbbbbbbb\nc");  // longer than a line
}

TEST(HelpText, fits_a_terminal) {
  OnTerminal heed({"eval", "--help"}, 80, {"NO_COLOR=1"});
  EXPECT_EQ(heed.wait(), 0);
  std::istringstream lines(heed.output());
  for (std::string line; std::getline(lines, line);) EXPECT_TRUE(line.size() <= 80 || line.starts_with("  heed ")) << line;
  bool long_lines = false;  // it is not wrapped when it is piped
  std::istringstream piped(output_of_heed("eval --help"));
  for (std::string line; std::getline(piped, line);) long_lines |= line.size() > 80 && !line.starts_with("  heed ");
  EXPECT_TRUE(long_lines);
}

}  // namespace
}  // namespace heed::test
