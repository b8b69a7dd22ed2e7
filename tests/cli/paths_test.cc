// Paths that file systems refuse or that are not valid text: every failure has our own message and exit code.
#include <sys/mman.h>

#include "heed/io/image.h"
#include "heed/io/mapped_ranges.h"
#include "heed/io/paths.h"
#include "tests/cli/child.h"
#include "tests/cli/program.h"
#include "tests/models/text_folder.h"

namespace heed::test {
namespace {

void expect_exit(const std::string& arguments, int exit_code, const std::string& fragment) {
  const ProgramResult ran = run_heed(arguments);
  EXPECT_EQ(ran.exit_code, exit_code) << arguments << "\n" << ran.out << ran.err;
  EXPECT_EQ(ran.err.find("unexpected"), std::string::npos) << ran.err;
  EXPECT_NE((ran.err + ran.out).find(fragment), std::string::npos)
      << arguments << "\nfound: " << ran.err << ran.out << "expected: " << fragment;
}

TEST(Paths, links_to_themselves_are_reported) {
  const TextFolder folder("bert-sentiment");
  const std::string loop = (folder / "loop").string(), model = folder.path().string();
  std::filesystem::create_symlink("loop", loop);
  const std::string fault = loop + ": cannot be examined (Too many levels of symbolic links)";
  for (const char* command : {"inspect ", "cost ", "parity ", "report "}) expect_exit(command + loop, 3, "loop");
  for (const char* command : {"predict ", "embed ", "generate ", "translate ", "tokenize "}) expect_exit(command + loop + " a", 3, "loop");
  expect_exit("eval " + loop + " " + loop, 3, fault);
  expect_exit("eval " + model + " " + loop, 3, "loop");
  expect_exit("predict " + model + " --file " + loop, 3, fault);
  expect_exit("convert " + loop + " " + (folder / "to").string(), 3, fault);
  expect_exit("convert " + model + " " + loop, 1, loop + ": cannot be created");
  expect_exit("data look " + loop, 3, "loop");
  expect_exit("train classify data=" + loop + " --runs " + (folder / "runs").string(), 3, "loop");
  std::filesystem::remove(folder / "config.json");
  std::filesystem::create_symlink("config.json", folder / "config.json");
  expect_exit("inspect " + model, 3, "config.json: cannot be");
}

TEST(Paths, names_that_are_too_long_or_below_a_file_are_reported) {
  const TextFolder folder("bert-sentiment");
  const std::string name = (folder / std::string(300, 'x')).string(), below = (folder / "config.json/model").string();
  for (const std::string& path : {name, below}) {
    for (const char* command : {"inspect ", "cost ", "parity "}) expect_exit(command + path, 3, "there is no such");
    for (const char* command : {"predict ", "embed ", "generate "}) expect_exit(command + path + " a", 3, "there is no such");
    expect_exit("convert " + folder.path().string() + " " + path, 1, path + ": cannot be created");
  }
  expect_exit("inspect " + folder.path().string() + " '" + std::string(300, 'x') + ".png'", 3, ".png: there is no such file");
}

TEST(Paths, names_can_be_invalid_utf8) {
  const Folder folder;
  const std::string odd = "caf\xE9\x1B[31m";
  std::filesystem::copy(fixture("vit-classify"), folder / odd);
  write_png(folder / (odd + ".png"), Image{32, 32, std::vector<uint8_t>(3 * 32 * 32, 90)});
  const std::string model = "'" + (folder / odd).string() + "'", image = "'" + (folder / (odd + ".png")).string() + "'";
  for (const std::string& arguments :
       {"inspect --json " + model, "cost --json " + model, "inspect " + model, "cost " + model, "inspect --json " + model + " " + image,
        "convert " + model + " '" + (folder / ("to" + odd)).string() + "'"}) {
    const ProgramResult ran = run_heed(arguments);
    EXPECT_EQ(ran.exit_code, 0) << arguments << ran.err;
    if (arguments.find("--json") == std::string::npos) continue;
    EXPECT_TRUE(Json::accept(ran.out)) << ran.out;
  }
  expect_exit("inspect '" + (folder / ("no" + odd)).string() + "'", 3, "nocaf\\xe9\\x1b[31m: there is no such folder");
}

TEST(Paths, failed_writes_are_exit_code_1) {
  const Folder folder;
  const std::string model = fixture("vit-classify").string();
  Child full({"convert", model, (folder / "to").string()}, folder / "output", 4096);
  EXPECT_EQ(full.wait(), 1) << get(folder / "output");
  EXPECT_NE(get(folder / "output").find("model.safetensors: writing failed after 4096 bytes"), std::string::npos) << get(folder / "output");
  expect_exit("convert " + model + " /proc/none", 1, "/proc/none: cannot be created");
}

TEST(Paths, invalid_sizes_and_numbers_are_exit_code_2) {
  const std::string convert = "convert " + fixture("vit-classify").string() + " /tmp/never --shard ";
  for (const char* size : {"-5GB", "5XB", "nan", "''", "-1"}) expect_exit(convert + size, 2, "expected a size of 0 or more");
  expect_exit(convert + "-5GB", 2, "--shard: found \"-5GB\", expected");
  const std::string gpt2 = fixture("gpt2-lm").string();
  for (const char* flag : {"--temperature", "--top-p", "--length-penalty", "--repetition-penalty"})
    for (const char* value : {"nan", "inf", "-inf"}) expect_exit("generate " + gpt2 + " --ids 1 " + flag + " " + value, 2, flag);
  expect_exit("parity " + gpt2 + " --tolerance nan", 2, "--tolerance: found nan, expected a finite number");
}

TEST(Paths, file_system_queries_throw_only_our_errors) {
  const Folder folder;
  std::filesystem::create_symlink("loop", folder / "loop");
  for (const auto& query : std::vector<std::function<void()>>{
           [&] { path_exists(folder / "loop"); }, [&] { is_folder(folder / "loop"); }, [&] { is_plain_file(folder / "loop/a"); },
           [&] { folder_entries(folder / "loop"); }, [&] { file_bytes(folder / "loop"); }, [&] { make_folders(folder / "loop/a"); }})
    expect_refused(query, "Too many levels of symbolic links");
  EXPECT_FALSE(path_exists(folder / std::string(300, 'x')));
  EXPECT_FALSE(same_path(folder / "none", folder.path()));
  EXPECT_TRUE(same_path(folder / ".", folder.path()));
  EXPECT_EQ(folder_entries(folder.path()), std::vector<Path>{folder / "loop"});
}

TEST(Paths, a_truncated_mapped_file_is_reported_by_name) {
  const Folder folder;
  const Path path = folder / "mapped";
  put(path, std::string(3 << 12, 'x'));
  EXPECT_EXIT(
      {
        exit_on_truncated_mapping();
        const auto file = MappedFile::open(path);
        FileWriter copy(folder / "copy");
        std::filesystem::resize_file(path, 100);
        volatile char last = file->text(0, file->size())[3 << 11];
        (void)last;
      },
      testing::ExitedWithCode(3), "heed: .*/mapped: was truncated");
  EXPECT_EQ(folder.names(), std::vector<std::string>{"mapped"});  // and no temporary file
}

// Bus errors outside mapped files keep their default behaviour.
TEST(Paths, other_bus_errors_still_kill_the_process) {
  EXPECT_EXIT(
      {
        exit_on_truncated_mapping();
        ::raise(SIGBUS);
        ::raise(SIGBUS);
      },
      testing::KilledBySignal(SIGBUS), "");
}

}  // namespace
}  // namespace heed::test
