// A run given as MODEL, in every command that takes one.
#include "heed/io/json.h"
#include "tests/cli/program.h"

namespace heed::test {
namespace {

namespace fs = std::filesystem;

// Two tiny runs, of images and of sentences.
struct RunAsModel : testing::Test {
  static void SetUpTestSuite() {
    folder = std::make_unique<Folder>();
    const std::string small = " layers=1 width=16 heads=2 epochs=1 batch=50 --quiet --runs '" + folder->path().string() + "'";
    ASSERT_EQ(output_of_heed("train classify data=shapes:60 patch=8" + small), "");
    ASSERT_EQ(output_of_heed("train sentiment data=opinions limit=100 vocabulary=200" + small), "");
    ASSERT_EQ(output_of_heed("train language data=opinions vocabulary=200 length=16 steps=3" + small), "");
    ASSERT_EQ(output_of_heed("train translate data=numbers count=60 vocabulary=100" + small), "");
  }
  static void TearDownTestSuite() { folder.reset(); }

  static std::string run(const std::string& task) { return (*folder / (task + "/001")).string(); }
  static inline std::unique_ptr<Folder> folder;
};

// %1 in the arguments is replaced by the model.
void expect_same(const std::string& run, std::string arguments) {
  const auto with = [&](const std::string& model) {
    std::string out = arguments;
    for (size_t at = out.find("%1"); at != std::string::npos; at = out.find("%1")) out.replace(at, 2, "'" + model + "'");
    return run_heed(out, "some words\n");
  };
  const ProgramResult named = with(run), best = with(run + "/best");
  EXPECT_EQ(best.exit_code, 0) << arguments << best.err;
  EXPECT_EQ(named.exit_code, 0) << arguments << named.err;
  EXPECT_EQ(named.out, best.out) << arguments;
  EXPECT_NE(named.err.find("heed: using " + run + "/best\n"), std::string::npos) << arguments << named.err;
  EXPECT_EQ(best.err.find("heed: using"), std::string::npos) << arguments << best.err;
}

TEST_F(RunAsModel, works_in_every_command_with_a_model) {
  for (const char* arguments : {"eval %1 shapes:60", "inspect %1", "cost %1", "cost %1 batch=2"}) expect_same(run("classify"), arguments);
  expect_same(run("classify"), "convert %1 '" + (*folder / "converted").string() + "'");
  for (const char* arguments : {"predict %1", "embed %1", "tokenize %1 'some words'", "eval %1 opinions/test"})
    expect_same(run("sentiment"), arguments);
  expect_same(run("language"), "generate %1 some --greedy --max-new-tokens 3");
  expect_same(run("translate"), "translate %1 one");
}

TEST_F(RunAsModel, names_the_cost) {
  for (const char* model : {"", "/best", "/last"}) {
    const std::string cost = output_of_heed("cost " + run("classify") + model);
    EXPECT_TRUE(cost.starts_with(run("classify") + ", ViTForImageClassification: ")) << cost;
  }
}

TEST_F(RunAsModel, can_start_another_run) {
  const std::string arguments = "train sentiment limit=100 epochs=1 --runs '" + folder->path().string() + "' --name tuned from='";
  const ProgramResult ran = run_heed(arguments + run("sentiment") + "'");
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_NE(ran.out.find("from=" + run("sentiment") + ": using " + run("sentiment") + "/best\n"), std::string::npos) << ran.out;
  EXPECT_NE(get(*folder / "sentiment/tuned/config.toml").find("from = \"" + run("sentiment") + "/best\""), std::string::npos);
  fs::remove_all(*folder / "sentiment/tuned");
}

TEST_F(RunAsModel, folders_without_a_model_are_refused) {
  const auto refused = [](const std::string& arguments, int code, const std::string& message) {
    const ProgramResult ran = run_heed(arguments);
    EXPECT_EQ(ran.exit_code, code) << arguments << ran.err;
    EXPECT_NE(ran.err.find(message), std::string::npos) << ran.err;
  };
  const std::string all = folder->path().string();
  refused("predict " + all + "/classify x.png", 2,
          all + "/classify: found a folder of runs, expected one run, for example the newest: " + all + "/classify/001");
  refused("inspect " + all, 2, ": found a folder of runs, expected one run, for example the newest: " + all);
  refused("lab heads " + all + "/classify", 2, "/classify: found a folder of runs");
  refused("train --resume " + all + "/classify", 2, "/classify: found a folder of runs");
  refused("train sentiment from=" + all + "/sentiment", 2, "/sentiment: found a folder of runs");
  refused("eval " + all + "/classify/7 shapes", 3, "/classify/7: no such run; " + all + "/classify has 001");
  refused("eval " + run("classify") + "/bets shapes", 3, "/bets: no such folder, expected best or last, or the run itself");
  fs::create_directories(*folder / "classify/002/checkpoints");
  put(*folder / "classify/002/config.toml", "task = \"classify\"\n");
  refused("predict " + all + "/classify/002 x.png", 3,
          "/classify/002: found no model in the run, expected a run that has finished its first epoch");
  fs::remove_all(*folder / "classify/002");
}

}  // namespace
}  // namespace heed::test
