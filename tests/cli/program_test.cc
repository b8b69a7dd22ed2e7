// The program from the command line: output and exit codes.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "tests/data/idx_files.h"

namespace heed::test {
namespace {

struct Outcome {
  int exit_code;
  std::string out, err;
};

Outcome heed(const std::string& arguments, const std::string& before = "") {
  const std::filesystem::path folder = temporary_folder();
  const std::string out = folder / "out", err = folder / "err";
  const int status = std::system((before + " '" HEED_PROGRAM "' " + arguments + " >'" + out + "' 2>'" + err + "'").c_str());
  const Outcome outcome{WIFEXITED(status) ? WEXITSTATUS(status) : -1, read_text(out), read_text(err)};
  std::filesystem::remove_all(folder);
  return outcome;
}

// Eight images per class, each class with its own bright row: easy to learn.
std::filesystem::path easy_images(int classes) {
  const std::filesystem::path folder = temporary_folder();
  for (const char* set : {"train", "t10k"}) {
    std::string pixels, labels;
    for (int i = 0; i < 8 * classes; ++i) {
      std::string image(28 * 28, '\0');
      for (int x = 0; x < 28; ++x) image[static_cast<size_t>(i % classes * 28 + x)] = '\x7f';
      pixels += image;
      labels += static_cast<char>(i % classes);
    }
    write_file(folder / (std::string(set) + "-images-idx3-ubyte"), idx_bytes({8u * static_cast<uint32_t>(classes), 28, 28}, pixels));
    write_file(folder / (std::string(set) + "-labels-idx1-ubyte"), idx_bytes({8u * static_cast<uint32_t>(classes)}, labels));
  }
  return folder;
}

TEST(Program, prints_its_version) {
  const Outcome outcome = heed("--version");
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_TRUE(outcome.out.starts_with("heed 0.")) << outcome.out;
  EXPECT_EQ(outcome.err, "");
}

TEST(Program, help_has_examples) {
  for (const char* arguments : {"--help", "demo --help"}) {
    const Outcome outcome = heed(arguments);
    EXPECT_EQ(outcome.exit_code, 0);
    EXPECT_NE(outcome.out.find("Examples:"), std::string::npos) << outcome.out;
    EXPECT_NE(outcome.out.find("demo"), std::string::npos) << outcome.out;
    EXPECT_EQ(outcome.err, "");
  }
}

TEST(Program, uses_the_requested_instruction_set) {
  const std::string best = heed("--version").out;
  EXPECT_NE(heed("--version", "HEED_ISA=baseline").out.find(" (baseline, "), std::string::npos);
  const Outcome avx2 = heed("--version", "HEED_ISA=avx2"), avx512 = heed("--version", "HEED_ISA=avx512");
  if (best.find("avx512") != std::string::npos) {
    EXPECT_EQ(avx512.out, best);
    EXPECT_NE(avx2.out.find(" (avx2, "), std::string::npos);
  } else {
    EXPECT_EQ(avx512.exit_code, 2);
    EXPECT_EQ(avx512.err, "heed: HEED_ISA=avx512: this machine has no AVX-512\n");
    EXPECT_EQ(avx2.out, best);
  }
}

TEST(Program, invalid_usage_is_exit_code_2) {
  const auto expect = [](const std::string& arguments, const std::string& message, const std::string& before = "") {
    const Outcome outcome = heed(arguments, before);
    EXPECT_EQ(outcome.exit_code, 2) << arguments;
    EXPECT_EQ(outcome.err, "heed: " + message + "\n");
    EXPECT_EQ(outcome.out, "");
  };
  expect("", "no command given; heed --help lists them");
  expect("dmo", "unknown command 'dmo'; did you mean 'demo'?");
  expect("something", "unknown command 'something'");
  expect("--versoin", "unknown flag '--versoin'; did you mean '--version'?");
  expect("demo --epoch 3", "unknown flag '--epoch'; did you mean '--epochs'?");
  expect("demo --epoch=3", "unknown flag '--epoch'; did you mean '--epochs'?");
  expect("demo images", "train: found 'images', expected key=value or a .toml file");
  expect("demo --epochs 0", "--epochs: found 0, expected a whole number from 1 to 1000");
  expect("demo --epochs", "demo: --epochs without a value, expected --epochs N");
  expect("--version", "HEED_ISA is 'fast', expected avx512, avx2, baseline or best", "HEED_ISA=fast");
  expect("--version", "HEED_THREADS is 'many', expected a number from 1 to 1024", "HEED_THREADS=many");
}

TEST(Program, invalid_files_are_exit_code_3) {
  const Outcome missing = heed("demo --data /nowhere");
  EXPECT_EQ(missing.exit_code, 3);
  EXPECT_TRUE(missing.err.starts_with("heed: /nowhere: no such folder")) << missing.err;

  const std::filesystem::path folder = easy_images(3);
  write_file(folder / "t10k-labels-idx1-ubyte", idx_bytes({24}, std::string(24, '\x0a')));
  const Outcome outside = heed("demo --data " + folder.string());
  EXPECT_EQ(outside.exit_code, 3);
  EXPECT_NE(outside.err.find("label 10, expected one below 10"), std::string::npos) << outside.err;

  write_file(folder / "train-images-idx3-ubyte", "not images");
  const Outcome damaged = heed("demo --data " + folder.string());
  EXPECT_EQ(damaged.exit_code, 3);
  EXPECT_NE(damaged.err.find("train-images-idx3-ubyte: not an IDX file"), std::string::npos) << damaged.err;
  std::filesystem::remove_all(folder);
}

TEST(Program, failed_writes_are_exit_code_1) {
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP();
  const int status = std::system("'" HEED_PROGRAM "' --version >/dev/full 2>/dev/null");
  EXPECT_EQ(WEXITSTATUS(status), 1);
}

TEST(Program, divergence_is_exit_code_4) {
  const std::filesystem::path folder = easy_images(10);
  const Outcome outcome = heed("demo layers=1 width=32 heads=2 rate=1e30 clip=0 schedule=constant warmup=0 --runs " +
                               (folder / "runs").string() + " --data " + folder.string());
  EXPECT_EQ(outcome.exit_code, 4);
  EXPECT_TRUE(outcome.err.starts_with("heed: classify: the ")) << outcome.err;
  std::filesystem::remove_all(folder);
}

TEST(Program, the_demo_trains_evaluates_and_predicts) {
  const std::filesystem::path folder = temporary_folder();
  const Outcome outcome = heed("demo --data shapes:200 --epochs 1 layers=1 width=32 heads=2 --runs " + folder.string());
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(outcome.err, "");
  for (const char* text : {"\nepoch 1/1  loss ", "\nbest epoch: 1; on the test part: loss ", ". Prediction:\n", "heed predict "})
    EXPECT_NE(outcome.out.find(text), std::string::npos) << text << " in:\n" << outcome.out;
  const std::filesystem::path run = folder / "classify/001";
  EXPECT_TRUE(std::filesystem::exists(run / "report.html"));
  EXPECT_EQ(heed("predict '" + (run / "best").string() + "' '" + (run / "image.png").string() + "'").exit_code, 0);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace heed::test
