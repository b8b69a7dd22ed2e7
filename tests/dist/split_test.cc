// Commands that split their inputs across processes print what one process prints.
#include "tests/dist/job.h"

namespace heed::test {
namespace {

std::string many_lines(int count) {
  std::string out;
  for (int i = 0; i < count; ++i)
    out += std::string(i % 3 ? "a long and rainy afternoon in the old house" : "the film was good") + " " +
           std::to_string(i * 7919 % 1000) + "\n";
  return out;
}

struct SplitInputs : testing::Test {
  void SetUp() override {
    if (!has_processes()) GTEST_SKIP() << "no mpirun, or heed was built without MPI";
    put(folder / "lines.txt", many_lines(150));
  }
  // A small model -> its run
  std::string trained(const Arguments& arguments) const {
    const Arguments common{"layers=1", "width=16", "heads=2", "batch=32", "steps=2", "--runs", folder.path().string(), "--name", "run"};
    Job job(0, Arguments{"train"} + arguments + common, folder / "training");
    EXPECT_EQ(job.wait(), 0) << job.output();
    return folder / (arguments[0] + "/run");
  }
  void expect_same(const Arguments& arguments, const std::string& input = "/dev/null") const {
    Job one(0, arguments, folder / "one", {.input = input}), three(3, arguments, folder / "three", {.input = input});
    EXPECT_EQ(one.wait(), 0) << one.output();
    EXPECT_EQ(three.wait(), 0) << three.output();
    EXPECT_GT(one.output().size(), 40u);
    EXPECT_EQ(one.output(), three.output());
  }
  const Folder folder;
};

TEST_F(SplitInputs, of_sentences) {
  std::string table = "text\tlabel\n";
  std::istringstream lines(many_lines(150));
  for (std::string line; std::getline(lines, line);) table += line + (line.find("good") != line.npos ? "\tyes\n" : "\tno\n");
  put(folder / "texts.tsv", table);
  const std::string model = trained({"sentiment", "data=" + (folder / "texts.tsv").string(), "max_length=24"}), file = folder / "lines.txt";
  expect_same({"predict", model, "--file", file, "--json"});
  expect_same({"predict", model, "--json"}, file);  // standard input, which only the first process gets
  expect_same({"embed", model, "--file", file, "--json"});
  expect_same({"eval", model, folder / "texts.tsv", "--json"});
}

TEST_F(SplitInputs, of_translations) {
  std::string table = "en\tde\n";
  std::istringstream lines(many_lines(60));
  for (std::string line; std::getline(lines, line);) table += line + "\t" + line + "\n";
  put(folder / "pairs.tsv", table);
  const std::string model = trained({"translate", "data=" + (folder / "pairs.tsv").string(), "beams=2"});
  expect_same({"translate", model, "--file", folder / "lines.txt"});
}

TEST_F(SplitInputs, of_text) {
  const std::string model = trained({"language", "data=" + (folder / "lines.txt").string(), "length=16"});
  expect_same({"eval", model, folder / "lines.txt", "--json"});
}

}  // namespace
}  // namespace heed::test
