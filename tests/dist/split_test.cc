// Commands that split their inputs across processes print what one process prints.
#include "heed/io/image.h"
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
  // Both streams are the same. Which of them mpirun prints first may vary.
  void expect_same(const Arguments& arguments, const std::string& input = "/dev/null") const {
    const Path errors_of_one = folder / "errors of one", errors_of_three = folder / "errors of three";
    Job one(0, arguments, folder / "one", {.input = input, .errors = errors_of_one});
    Job three(3, arguments, folder / "three", {.input = input, .errors = errors_of_three});
    EXPECT_EQ(one.wait(), 0) << one.output() << get(errors_of_one);
    EXPECT_EQ(three.wait(), 0) << three.output() << get(errors_of_three);
    EXPECT_GT(one.output().size(), 40u);
    EXPECT_EQ(one.output(), three.output());
    EXPECT_EQ(get(errors_of_one), get(errors_of_three));
  }
  const Folder folder;
};

TEST_F(SplitInputs, sentences_give_the_output_of_one_process) {
  std::string table = "text\tlabel\n";
  std::istringstream lines(many_lines(150));
  for (std::string line; std::getline(lines, line);) table += line + (line.find("good") != line.npos ? "\tyes\n" : "\tno\n");
  put(folder / "texts.tsv", table);
  const std::string model = trained({"sentiment", "data=" + (folder / "texts.tsv").string(), "max_length=24"}), file = folder / "lines.txt";
  expect_same({"predict", model, "--file", file, "--json"});
  expect_same({"predict", model, "--json"}, file);  // standard input, which mpirun gives to the first process only
  expect_same({"embed", model, "--file", file, "--json"});
  expect_same({"eval", model, folder / "texts.tsv", "--json"});
  expect_same({"tokenize", model, file, "--ids"});
  expect_same({"tokenize", model, "--lines", "--json"}, file);
}

// Some of them cannot be read. Every message is a complete line, even while mpirun prints standard output.
TEST_F(SplitInputs, images_give_the_output_of_one_process) {
  const std::string model = trained({"classify", "data=shapes:64", "patch=8"}), images = folder / "images";
  std::filesystem::create_directory(images);
  for (int i = 0; i < 70; ++i)
    write_png(folder / ("images/" + std::to_string(i) + ".png"), {32, 32, std::vector<uint8_t>(3 * 32 * 32, static_cast<uint8_t>(3 * i))});
  expect_same({"predict", model, images, "--json"});
  for (int i = 2; i < 70; i += 6) put(folder / ("images/" + std::to_string(i) + ".png"), "no image");
  for (const int processes : {0, 3}) {
    Job job(processes, {"predict", model, images, "--skip-bad", "--json"}, folder / "out");
    EXPECT_EQ(job.wait(), 1);
    const std::string output = job.output();
    EXPECT_NE(output.find("heed: predict: 12 of 70 images could not be read and were skipped\n"), std::string::npos) << output;
    for (int i = 2; i < 70; i += 6)
      EXPECT_NE(output.find("heed: skipped: " + images + "/" + std::to_string(i) + ".png: found \"no image\""), std::string::npos)
          << output;
  }
}

// Three processes, one of which is killed, write parts; one process computes the rest.
TEST_F(SplitInputs, finished_parts_are_reused_after_a_kill) {
  const std::string model = trained({"language", "data=" + (folder / "lines.txt").string(), "length=16"});
  std::string text;
  for (int i = 0; i < 200; ++i) text += many_lines(150);
  put(folder / "long.txt", text);
  const Path parts = folder / "parts";
  const Arguments arguments{"eval", model, folder / "long.txt", "--json"}, kept{"--parts", parts};
  Job whole(0, arguments, folder / "whole");
  EXPECT_EQ(whole.wait(), 0) << whole.output();
  Job killed(3, arguments + kept, folder / "killed");
  ASSERT_TRUE(killed.wait_until([&] { return std::filesystem::exists(parts) && std::filesystem::file_size(parts) > 1000; }))
      << killed.output();
  const pid_t lost = killed.process_of(1);
  ASSERT_GT(lost, 0);
  ::kill(lost, SIGKILL);
  EXPECT_NE(killed.wait(), 0);
  ASSERT_GT(std::filesystem::file_size(parts), 1000u);
  Job rest(0, arguments + kept, folder / "rest");
  EXPECT_EQ(rest.wait(), 0) << rest.output();
  EXPECT_EQ(rest.output(), whole.output());
  EXPECT_FALSE(std::filesystem::exists(parts));
}

TEST_F(SplitInputs, translations_give_the_output_of_one_process) {
  std::string table = "en\tde\n";
  std::istringstream lines(many_lines(60));
  for (std::string line; std::getline(lines, line);) table += line + "\t" + line + "\n";
  put(folder / "pairs.tsv", table);
  const std::string model = trained({"translate", "data=" + (folder / "pairs.tsv").string(), "beams=2"});
  expect_same({"translate", model, "--file", folder / "lines.txt"});
}

TEST_F(SplitInputs, text_gives_the_output_of_one_process) {
  const std::string model = trained({"language", "data=" + (folder / "lines.txt").string(), "length=16"});
  expect_same({"eval", model, folder / "lines.txt", "--json"});
}

}  // namespace
}  // namespace heed::test
