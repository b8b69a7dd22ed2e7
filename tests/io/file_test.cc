#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "heed/core/copy.h"
#include "tests/io/files.h"

namespace heed::test {
namespace {

namespace fs = std::filesystem;

TEST(MappedFile, writes_do_not_change_the_file) {
  const Folder folder;
  put(folder / "a", "0123456789abcdef");
  {
    const auto file = MappedFile::open(folder / "a");
    EXPECT_EQ(file->text(4, 3), "456");
    EXPECT_EQ(file->size(), 16);
    const Tensor borrowed = Tensor::borrow(file, file->data(), {16}, DType::u8);
    copy_into(Tensor::full({16}, 'x', DType::u8, kCpu), borrowed);
    EXPECT_EQ(file->text(0, 2), "xx");
  }
  EXPECT_EQ(get(folder / "a"), "0123456789abcdef");
}

TEST(MappedFile, accepts_an_empty_file) {
  const Folder folder;
  put(folder / "a", "");
  EXPECT_EQ(MappedFile::open(folder / "a")->size(), 0);
  EXPECT_EQ(MappedFile::open(folder / "a")->text(0, 0), "");
  EXPECT_EQ(mapped_bytes("")->size(), 0);
}

TEST(MappedFile, refuses_everything_but_regular_files) {
  const Folder folder;
  expect_refused([&] { MappedFile::open(folder / "none"); }, "none: there is no such file; check the path");
  expect_refused([&] { MappedFile::open(folder.path()); }, ": found a folder, expected a file");
  expect_refused([&] { MappedFile::open("/dev/null"); }, "/dev/null: found a device or a pipe");
  ASSERT_EQ(mkfifo((folder / "pipe").c_str(), 0600), 0);
  expect_refused([&] { MappedFile::open(folder / "pipe"); }, "found a device or a pipe");
  expect_refused([&] { mapped_bytes("abc")->text(1, 3); }, "3 bytes wanted at byte 1, the file has 3");
}

TEST(ReadText, refuses_files_above_the_limit) {
  const Folder folder;
  put(folder / "a", "hello");
  EXPECT_EQ(read_text(folder / "a", 5), "hello");
  expect_refused([&] { read_text(folder / "a", 4); }, "a: found 5 bytes, expected at most 4");
  expect_refused([&] { read_text(folder / "b", 4); }, "there is no such file");
  EXPECT_FALSE(read_text("/proc/self/status", 1 << 16).empty());  // reports size 0
  expect_refused([&] { read_text("/proc/self/status", 10); }, "found more than 10 bytes");
}

TEST(FileWriter, replaces_a_file_in_one_step) {
  const Folder folder;
  put(folder / "a", "old");
  fs::permissions(folder / "a", fs::perms::owner_read | fs::perms::owner_write);
  {
    FileWriter out(folder / "a");
    out.write("new ");
    out.write("text");
    EXPECT_EQ(get(folder / "a"), "old");
    out.commit();
  }
  EXPECT_EQ(get(folder / "a"), "new text");
  EXPECT_EQ(fs::status(folder / "a").permissions(), fs::perms::owner_read | fs::perms::owner_write);
  EXPECT_EQ(folder.names(), std::vector<std::string>{"a"});
}

TEST(FileWriter, removes_the_temporary_file_if_not_committed) {
  const Folder folder;
  put(folder / "a", "old");
  {
    FileWriter out(folder / "a");
    out.write("new");
    out.finish();
    EXPECT_EQ(folder.names().size(), 2u);
  }
  EXPECT_EQ(get(folder / "a"), "old");
  EXPECT_EQ(folder.names(), std::vector<std::string>{"a"});
}

TEST(FileWriter, keeps_the_old_file_when_the_disk_is_full) {
  const Folder folder;
  put(folder / "a", "old");
  // A limit on the file size simulates a full disk.
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  const rlimit small{1 << 20, before.rlim_max};
  const auto handler = signal(SIGXFSZ, SIG_IGN);
  setrlimit(RLIMIT_FSIZE, &small);
  expect_refused([&] { write_text(folder / "a", std::string(3 << 20, 'x')); }, "writing failed after 1048576 bytes");
  setrlimit(RLIMIT_FSIZE, &before);
  signal(SIGXFSZ, handler);
  EXPECT_EQ(get(folder / "a"), "old");
  EXPECT_EQ(folder.names(), std::vector<std::string>{"a"});
}

TEST(FileWriter, refuses_unwritable_locations) {
  const Folder folder;
  expect_refused([&] { write_text(folder / "none/a", "x"); }, "the folder must exist and be writable");
  expect_refused([&] { write_text(folder.path(), "x"); }, "found a folder, a device or a pipe, expected a file or nothing");
  expect_refused([&] { write_text("/dev/null", "x"); }, "found a folder, a device or a pipe");
  expect_refused([&] { write_text("/proc/none", "x"); }, "cannot be written in /proc");
  put(folder / "file", "x");
  expect_refused([&] { write_text(folder / "file/a", "x"); }, "cannot be written in");
}

TEST(FileWriter, writes_through_a_link) {
  const Folder folder;
  put(folder / "a", "old");
  fs::create_symlink("a", folder / "link");
  write_text(folder / "link", "new");
  EXPECT_TRUE(fs::is_symlink(folder / "link"));
  EXPECT_EQ(get(folder / "a"), "new");
  fs::create_directory(folder / "below");
  fs::create_symlink("below/b", folder / "dangling");
  fs::create_symlink(folder / "dangling", folder / "below/back");
  write_text(folder / "below/back", "first");
  EXPECT_TRUE(fs::is_symlink(folder / "dangling"));
  EXPECT_EQ(get(folder / "below/b"), "first");
}

TEST(FileWriter, refuses_a_link_to_itself) {
  const Folder folder;
  fs::create_symlink("loop", folder / "loop");
  expect_refused([&] { write_text(folder / "loop", "x"); }, "loop: cannot be written (Too many levels of symbolic links)");
  EXPECT_EQ(folder.names(), std::vector<std::string>{"loop"});
}

TEST(InQuotes, is_safe_to_print) {
  EXPECT_EQ(in_quotes("a\x1b[31m\n"), "\"a\\x1b[31m\\x0a\"");
  EXPECT_EQ(in_quotes("L\u00e4nge \u0416"), "\"L\u00e4nge \u0416\"");
  EXPECT_EQ(in_quotes("\xc3"), "\"\\xc3\"");
  EXPECT_EQ(in_quotes("a\u0416b", 2), "\"a...\"");  // no half characters
  EXPECT_EQ(in_quotes("abcdef", 3), "\"abc...\"");
}

}  // namespace
}  // namespace heed::test
