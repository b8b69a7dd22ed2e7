// The commands heed parity and heed convert.
#include <gtest/gtest.h>

#include "heed/io/safetensors.h"
#include "tests/cli/program.h"

namespace heed::test {
namespace {

ProgramResult heed(const std::string& arguments) { return run_heed(arguments); }

TEST(Program, parity_prints_a_table_and_says_whether_all_is_the_same) {
  const ProgramResult same = heed("parity " + fixture("gpt2-lm").string());
  EXPECT_EQ(same.exit_code, 0) << same.err;
  for (const char* part : {"GPT2LMHeadModel, ", "name             shape         absolute   relative   verdict\n",
                           "greedy           (1, 29)       0.0e+00", "all 8 are within 0.0001 of their largest value\n"})
    EXPECT_NE(same.out.find(part), std::string::npos) << same.out;
  const ProgramResult strict = heed("parity " + fixture("gpt2-lm").string() + " --tolerance 0");
  EXPECT_EQ(strict.exit_code, 1);
  EXPECT_NE(strict.out.find("DIFFERS"), std::string::npos) << strict.out;
  EXPECT_NE(strict.err.find(" of 8 outputs differ by more than 0 of their largest value"), std::string::npos) << strict.err;
}

TEST(Program, parity_refuses_bad_folders_with_exit_code_3) {
  EXPECT_EQ(heed("parity").exit_code, 2);
  const ProgramResult nowhere = heed("parity /nowhere");
  EXPECT_EQ(nowhere.exit_code, 3);
  EXPECT_EQ(nowhere.err, "heed: /nowhere: there is no such folder\n");
  const Folder folder;
  put(folder / "config.json", get(fixture("vit-classify/config.json")));
  const std::string whole = get(fixture("vit-classify/model.safetensors"));
  put(folder / "model.safetensors", whole.substr(0, whole.size() / 2));
  const ProgramResult truncated = heed("parity " + folder.path().string());
  EXPECT_EQ(truncated.exit_code, 3);
  EXPECT_NE(truncated.err.find("model.safetensors: "), std::string::npos) << truncated.err;
  put(folder / "model.safetensors", whole);
  const ProgramResult alone = heed("parity " + folder.path().string());
  EXPECT_EQ(alone.exit_code, 3);
  EXPECT_NE(alone.err.find("io.safetensors: there is no such file"), std::string::npos) << alone.err;
}

TEST(Program, convert_writes_folders_that_it_reads) {
  const Folder folder;
  const std::string to = folder.path().string() + "/half", shards = folder.path().string() + "/shards";
  const ProgramResult half = heed("convert " + fixture("bert-sentiment").string() + " " + to + " --dtype bf16");
  EXPECT_EQ(half.exit_code, 0) << half.err;
  EXPECT_EQ(Safetensors::open(to + "/model.safetensors").entry("classifier.weight").dtype, DType::bf16);
  EXPECT_EQ(heed("parity " + to + " --tolerance 0.05").exit_code, 0);
  const ProgramResult split = heed("convert " + to + " " + shards + " --shard 50kb");
  EXPECT_EQ(split.exit_code, 0) << split.err;
  EXPECT_EQ(Safetensors::open(shards).entry("classifier.weight").dtype, DType::bf16);
  EXPECT_TRUE(std::filesystem::exists(shards + "/model.safetensors.index.json"));
  EXPECT_EQ(heed("parity " + shards + " --tolerance 0.05").exit_code, 0);
  EXPECT_EQ(heed("convert " + to + " " + shards + " --dtype f64").exit_code, 2);
}

}  // namespace
}  // namespace heed::test
