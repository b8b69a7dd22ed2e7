// heed lab as people meet it: the list, one experiment, what is wrong with words.
#include <gtest/gtest.h>

#include "heed/io/json.h"
#include "tests/cli/program.h"

namespace heed::test {
namespace {

std::string in_quotes_of_shell(const Path& path) { return "'" + path.string() + "'"; }

TEST(LabCommand, lists_the_experiments) {
  const std::string list = said_by_heed("lab");
  for (const char* words : {"L1 ", "softmax-temperature", "dot-product-variance", "corrects what was published"})
    EXPECT_NE(list.find(words), std::string::npos) << list;
}

TEST(LabCommand, runs_one_and_writes_its_report) {
  const Folder folder;
  const Path out = folder / "report";
  const Ran ran = run_heed("lab l1 tokens=8 -o " + in_quotes_of_shell(out));
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_NE(ran.out.find("✓"), std::string::npos);
  EXPECT_TRUE(ran.out.ends_with(out.string() + "/index.html\n")) << ran.out;
  EXPECT_EQ(read_json(out / "report.json")["experiments"][0]["settings"]["tokens"], 8);
  EXPECT_EQ(said_by_heed("lab L1 --quiet -o " + in_quotes_of_shell(out)), out.string() + "/index.html\n");
  const Json json = parse_json("lab", said_by_heed("lab L1 --json -o " + in_quotes_of_shell(out)));
  EXPECT_EQ(json["experiments"][0]["verdict"], "holds");
}

TEST(LabCommand, a_verdict_that_is_not_as_documented_is_exit_code_1) {
  const Folder folder;
  const Ran ran = run_heed("lab L1 beta=1 -o " + in_quotes_of_shell(folder / "report"));
  EXPECT_EQ(ran.exit_code, 1);
  EXPECT_EQ(ran.err, "heed: lab: 1 of 1 verdicts not as documented: L1 softmax-temperature\n");
  EXPECT_NE(ran.out.find("does not hold"), std::string::npos);
  EXPECT_TRUE(std::filesystem::exists(folder / "report/index.html"));
}

TEST(LabCommand, wrong_words_are_exit_code_2_and_nothing_runs) {
  const Folder folder;
  const auto complaint = [&](const std::string& words) {
    const Ran ran = run_heed("lab " + words + " -o " + in_quotes_of_shell(folder / "none"));
    EXPECT_EQ(ran.exit_code, 2) << words;
    EXPECT_FALSE(std::filesystem::exists(folder / "none"));
    return ran.err;
  };
  EXPECT_EQ(complaint("sofmax-temperature"),
            "heed: lab: there is no experiment 'sofmax-temperature'; did you mean 'softmax-temperature'?\n");
  EXPECT_EQ(complaint("L1 seeds=2"), "heed: lab: softmax-temperature has no setting 'seeds'; did you mean 'seed'?\n");
  EXPECT_NE(complaint("L1 tokens=0").find("tokens=0, expected 2 to 512"), std::string::npos);
  EXPECT_NE(complaint("seed=2").find("found settings and no experiment"), std::string::npos);
  EXPECT_NE(complaint("L1 =2").find("expected key=value"), std::string::npos);
  put(folder / "file", "");
  EXPECT_EQ(run_heed("lab L1 -o " + in_quotes_of_shell(folder / "file")).exit_code, 2);
}

}  // namespace
}  // namespace heed::test
