// --parts: a command that was stopped continues after its last finished part.
#include "heed/cli/parts_file.h"

#include "tests/cli/program.h"
#include "tests/expect_error.h"
#include "tests/text/vocabularies.h"

namespace heed::cli {
namespace {

using test::Folder, test::get, test::put;

std::string many(const std::string& line, int count) {
  std::string out;
  for (int i = 0; i < count; ++i) out += line;
  return out;
}

struct Parts : testing::Test {
  Parts() { put(folder / "model", "weights"); }
  Path file() const { return folder / "parts"; }
  // Ten parts, of which one fails -> the results and which parts were computed
  std::string run(int64_t failing = -1, const std::string& input = "texts") {
    computed.clear();
    std::string out;
    PartsFile parts(file(), folder / "model");
    parts.check_same("input", input);
    const auto compute = [&](int64_t part) {
      check(part != failing, "stopped");
      computed.push_back(part);
      return "result " + std::to_string(part);
    };
    split_work(world(), 10, compute, [&](int64_t part, const std::string& result) { out += std::to_string(part) + ": " + result + '\n'; });
    parts.remove();
    return out;
  }
  const Folder folder;
  std::vector<int64_t> computed;
};

TEST_F(Parts, are_not_recomputed_if_finished) {
  const std::string whole = run();
  EXPECT_EQ(computed.size(), 10u);
  EXPECT_EQ(whole.substr(0, 12), "0: result 0\n");
  EXPECT_FALSE(std::filesystem::exists(file()));
  EXPECT_THROW(run(4), Error);
  EXPECT_THROW(run(7), Error);
  EXPECT_EQ(computed, (std::vector<int64_t>{4, 5, 6}));
  EXPECT_EQ(run(), whole);
  EXPECT_EQ(computed, (std::vector<int64_t>{7, 8, 9}));
}

TEST_F(Parts, are_recomputed_if_truncated_or_damaged) {
  const std::string whole = run();
  EXPECT_THROW(run(5), Error);
  const std::string kept = get(file());
  put(file(), kept.substr(0, kept.size() - 1));
  EXPECT_EQ(run(), whole);
  EXPECT_EQ(computed.front(), 4);
  std::string damaged = kept;
  damaged[damaged.rfind("result 2")] = 'R';
  put(file(), damaged);
  EXPECT_EQ(run(), whole);
  EXPECT_EQ(computed.front(), 2);
}

TEST_F(Parts, are_refused_if_another_job_wrote_them) {
  EXPECT_THROW(run(5), Error);
  const std::string kept = get(file());
  expect_error<UsageError>([&] { run(-1, "others"); }, "has parts of another job: its input was texts, now it is others");
  put(folder / "model", "other weights");
  expect_error<UsageError>([&] { run(); }, "has parts of another job: its model ");
  EXPECT_EQ(get(file()), kept);
  put(file(), "my only copy");
  expect_error<FileError>([&] { run(); }, "found a file that --parts has not written");
  EXPECT_EQ(get(file()), "my only copy");
}

TEST_F(Parts, are_removed_when_the_command_ends) {
  put(folder / "tokenizer.json", test::bert_json().dump());
  const std::string model = folder.path().string(), parts = " --parts " + (folder / "parts").string();
  // The second line cannot be decoded, in the second of two parts.
  const std::string lines = many("15\n", 1500);
  EXPECT_EQ(test::run_heed("tokenize " + model + " --decode --lines" + parts, lines + "x\n").exit_code, 2);
  EXPECT_TRUE(std::filesystem::exists(file()));
  const test::ProgramResult other = test::run_heed("tokenize " + model + " --decode --lines" + parts, lines + "15\n");
  EXPECT_EQ(other.exit_code, 2);
  EXPECT_NE(other.err.find("has parts of another job: its input was {"), std::string::npos) << other.err;
  const test::ProgramResult flag = test::run_heed("tokenize " + model + " --decode --lines --json" + parts, lines + "x\n");
  EXPECT_NE(flag.err.find("its command was heed tokenize "), std::string::npos) << flag.err;
  std::filesystem::remove(file());
  EXPECT_EQ(test::output_of_heed("tokenize " + model + " --decode --lines" + parts, lines), many("a\n", 1500));
  EXPECT_FALSE(std::filesystem::exists(file()));
}

}  // namespace
}  // namespace heed::cli
