// heed lab from the command line: the list, one experiment, wrong arguments.
#include <gtest/gtest.h>

#include "heed/io/json.h"
#include "tests/cli/program.h"

namespace heed::test {
namespace {

std::string shell_quoted(const Path& path) { return "'" + path.string() + "'"; }

TEST(LabCommand, lists_the_experiments) {
  const std::string list = output_of_heed("lab");
  for (const char* text : {"L1 ", "softmax-temperature", "dot-product-variance", "corrects a published claim"})
    EXPECT_NE(list.find(text), std::string::npos) << list;
  const Json json = parse_json("list", output_of_heed("lab --json"));
  EXPECT_EQ(json["experiments"][0]["name"], "softmax-temperature");
  EXPECT_EQ(json["experiments"][0]["number"], "L1");
}

TEST(LabCommand, runs_one_experiment_and_writes_its_report) {
  const Folder folder;
  const Path out = folder / "report";
  const ProgramResult ran = run_heed("lab l1 tokens=8 -o " + shell_quoted(out));
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_NE(ran.out.find("✓"), std::string::npos);
  EXPECT_TRUE(ran.out.ends_with(out.string() + "/index.html\n")) << ran.out;
  EXPECT_EQ(read_json(out / "report.json")["experiments"][0]["settings"]["tokens"], 8);
  EXPECT_EQ(output_of_heed("lab L1 --quiet -o " + shell_quoted(out)), out.string() + "/index.html\n");
  const Json json = parse_json("lab", output_of_heed("lab L1 --json -o " + shell_quoted(out)));
  EXPECT_EQ(json["experiments"][0]["verdict"], "holds");
  EXPECT_FALSE(json.contains("twice"));
  const Json twice = parse_json("lab", output_of_heed("lab L1 --twice --json -o " + shell_quoted(out)));
  EXPECT_EQ(twice["twice"], Json::array());  // L1 does not train
}

TEST(LabCommand, verdicts_that_differ_from_the_documents_are_exit_code_1) {
  const Folder folder;
  // So small that the time is that of the call, whatever the number of tokens.
  const ProgramResult ran = run_heed("lab L11 width=1 keys=1 values=1 least_tokens=16 lengths=2 most_heads=1 head_tokens=16 rounds=3 -o " +
                                     shell_quoted(folder / "report"));
  EXPECT_EQ(ran.exit_code, 1);
  EXPECT_EQ(ran.err, "heed: lab: 1 of 1 verdicts not as documented: L11 attention-cost\n");
  EXPECT_NE(ran.out.find("does not hold"), std::string::npos);
  EXPECT_TRUE(std::filesystem::exists(folder / "report/index.html"));
}

// Trained in processes of their own or one after the other: the same results, in the order of their numbers, and kept.
TEST(LabCommand, trains_several_models_side_by_side) {
  const Folder folder;
  const auto results_of = [&](const std::string& threads, const std::string& cache, const std::string& more) {
    ::setenv("HEED_THREADS", threads.c_str(), 1);
    ::setenv("XDG_CACHE_HOME", (folder / cache).c_str(), 1);
    const ProgramResult ran =
        run_heed("lab L46 L1 L38 images=40 epochs=2 seeds=2 width=16 layers=1 heads=2 --json -o " + shell_quoted(folder / "report") + more);
    ::unsetenv("HEED_THREADS");
    ::unsetenv("XDG_CACHE_HOME");
    EXPECT_EQ(ran.exit_code, 0) << ran.err;
    Json out = parse_json("lab", ran.out)["experiments"];
    for (Json& each : out) each.erase("seconds");
    return out;
  };
  const Json one = results_of("1", "one", ""), two = results_of("2", "two", "");
  ASSERT_EQ(one.size(), 3u);
  EXPECT_EQ(one, two);
  EXPECT_EQ(one[0]["number"], "L46");  // as they were named
  EXPECT_EQ(one[1]["number"], "L1");
  const auto kept = [&](const std::string& cache) {
    std::map<std::string, std::filesystem::file_time_type> out;
    for (const auto& each : std::filesystem::directory_iterator(folder / cache / "heed/lab"))
      out[each.path().filename()] = each.last_write_time();
    return out;
  };
  const auto before = kept("two");
  EXPECT_EQ(before.size(), 2u);
  results_of("2", "two", "");
  EXPECT_EQ(kept("two"), before);
  results_of("2", "two", " --fresh");
  EXPECT_NE(kept("two"), before);
}

TEST(LabCommand, invalid_arguments_are_exit_code_2_before_running) {
  const Folder folder;
  const auto error_of = [&](const std::string& arguments) {
    const ProgramResult ran = run_heed("lab " + arguments + " -o " + shell_quoted(folder / "none"));
    EXPECT_EQ(ran.exit_code, 2) << arguments;
    EXPECT_FALSE(std::filesystem::exists(folder / "none"));
    return ran.err;
  };
  EXPECT_EQ(error_of("sofmax-temperature"),
            "heed: lab: there is no experiment 'sofmax-temperature'; did you mean 'softmax-temperature'?\n");
  EXPECT_EQ(error_of("L1 seeds=2"), "heed: lab: softmax-temperature has no setting 'seeds'; did you mean 'seed'?\n");
  EXPECT_NE(error_of("L1 tokens=0").find("tokens=0, expected 2 to 512"), std::string::npos);
  EXPECT_NE(error_of("seed=2").find("found settings but no experiment"), std::string::npos);
  EXPECT_NE(error_of("L1 =2").find("expected key=value"), std::string::npos);
  put(folder / "file", "");
  EXPECT_EQ(run_heed("lab L1 -o " + shell_quoted(folder / "file")).exit_code, 2);
}

}  // namespace
}  // namespace heed::test
