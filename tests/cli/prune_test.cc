// heed prune from the command line: what it prints and writes, and what it refuses to overwrite.
#include "heed/io/json.h"
#include "tests/cli/program.h"

namespace heed::test {
namespace {

constexpr const char* kTwoLayersOfFourHeads = "preset=bert-mini width=32 layers=2 feed_forward=32";

class PruneProgram : public testing::Test {
 protected:
  std::string path(const char* name) const { return (folder / name).string(); }
  std::string trained(const std::string& name, const std::string& model) {
    std::string table = "text\tlabel\n";
    for (int i = 0; i < 40; ++i)
      table += std::string(i % 2 ? "a good film " : "a bad film ") + std::to_string(i) + (i % 2 ? "\t1\n" : "\t0\n");
    put(folder / "films.tsv", table);
    const ProgramResult ran = run_heed("train sentiment " + model + " data=" + path("films.tsv") +
                                       " validation=0.25 epochs=1 --quiet --name " + name + " --runs " + path("runs"));
    EXPECT_EQ(ran.exit_code, 0) << ran.err;
    return path("runs/sentiment/") + name;
  }
  void refused(const std::string& arguments, int exit_code, const std::string& message) {
    const ProgramResult ran = run_heed("prune " + arguments);
    EXPECT_EQ(ran.exit_code, exit_code) << arguments << "\n" << ran.err;
    EXPECT_NE(ran.err.find(message), std::string::npos) << ran.err;
  }
  const Folder folder;
};

TEST_F(PruneProgram, writes_a_smaller_model) {
  const std::string run = trained("one", kTwoLayersOfFourHeads), out = path("smaller");
  std::filesystem::create_directories(out);
  put(folder / "smaller" / "notes.txt", "mine");
  const Json found = Json::parse(output_of_heed("prune " + run + " " + out + " --keep 0.5 --batches 2 --json"));
  EXPECT_EQ(found["importance"].size(), 2u);
  EXPECT_EQ(found["importance"][0].size(), 4u);
  EXPECT_EQ(found["curve"].front()["kept"], 8);
  EXPECT_EQ(found["curve"].back()["kept"], 0);
  size_t removed = 0;
  for (const Json& heads : found["pruned"]) removed += heads.size();
  EXPECT_EQ(removed, 4u);
  // Rows of 8 features in three projections with biases, and columns of a fourth.
  EXPECT_EQ(found["parameters_before"].get<int64_t>() - found["parameters"].get<int64_t>(), 4 * (3 * 8 * 33 + 8 * 32));
  EXPECT_EQ(read_json(folder / "smaller" / "config.json")["heed"]["pruned_heads"], found["pruned"]);
  EXPECT_EQ(get(folder / "smaller" / "notes.txt"), "mine");  // other files stay
  EXPECT_NE(output_of_heed("predict " + out + " 'a good film'").find("%  a good film"), std::string::npos);
  const std::string table = output_of_heed("prune " + run + " --by leave-one-out --keep 0");
  EXPECT_NE(table.find("by leaving it out"), std::string::npos) << table;
  EXPECT_NE(table.find("6 of 8 heads removed"), std::string::npos) << table;  // each layer keeps one
}

TEST_F(PruneProgram, refuses_invalid_arguments) {
  const std::string run = trained("one", kTwoLayersOfFourHeads);
  refused(run + " " + run, 2, "runs keep their models");
  refused(run + " " + run + "/best", 2, "runs keep their models");
  EXPECT_TRUE(std::filesystem::exists(folder / "runs/sentiment/one/config.toml"));
  refused(std::string(HEED_SOURCE_DIR) + "/tests/fixtures/bert-sentiment", 2, "expected a run");
  refused(run + " " + run + "/best/config.json/x", 1, "cannot be created");
  refused(run + " --keep 1.5", 2, "--keep");
  refused(run + " --by size", 2, "gradient");
  refused(run + " --batches 0", 2, "--batches: found 0, expected a number above 0");
  refused(trained("two", "preset=gru-small width=16"), 3, "has no softmax attention");
}

}  // namespace
}  // namespace heed::test
