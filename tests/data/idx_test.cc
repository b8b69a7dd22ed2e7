#include "heed/data/idx.h"

#include <gtest/gtest.h>

#include "tests/data/idx_files.h"

namespace heed::test {
namespace {

Tensor parse(const std::string& bytes) { return parse_idx(std::as_bytes(std::span(bytes)), "file"); }

std::string error_of(const std::string& bytes) {
  try {
    parse(bytes);
  } catch (const FileError& error) {
    return error.what();
  }
  return "no error";
}

TEST(Idx, reads_plain_and_gzip_files) {
  const std::string file = idx_bytes({2, 1, 3}, "abcdef");
  for (const std::string& bytes : {file, packed(file)}) {
    const Tensor x = parse(bytes);
    EXPECT_EQ(x.shape(), (Shape{2, 1, 3}));
    EXPECT_EQ(x.dtype(), DType::u8);
    EXPECT_EQ(x.to_vector<uint8_t>(), (std::vector<uint8_t>{'a', 'b', 'c', 'd', 'e', 'f'}));
  }
}

TEST(Idx, reads_from_disk) {
  const std::filesystem::path folder = temporary_folder();
  write_file(folder / "labels", idx_bytes({3}, std::string("\x00\x09\xff", 3)));
  write_file(folder / "labels.gz", packed(idx_bytes({3}, std::string("\x00\x09\xff", 3))));
  for (const char* name : {"labels", "labels.gz"})
    EXPECT_EQ(read_idx(folder / name).to_vector<uint8_t>(), (std::vector<uint8_t>{0, 9, 255})) << name;
  EXPECT_THROW(read_idx(folder / "missing"), FileError);
  EXPECT_THROW(read_idx(folder), FileError);
  std::filesystem::remove_all(folder);
}

TEST(Idx, accepts_empty_axes) {
  EXPECT_EQ(parse(idx_bytes({0, 28, 28}, "")).shape(), (Shape{0, 28, 28}));
  EXPECT_EQ(parse(packed(idx_bytes({0}, ""))).count(), 0);
}

TEST(Idx, refuses_other_formats) {
  EXPECT_EQ(error_of(""), "file: too short for an IDX file");
  EXPECT_EQ(error_of("abc"), "file: too short for an IDX file");
  EXPECT_EQ(error_of("PNG, say"), "file: not an IDX file");
  EXPECT_EQ(error_of(idx_bytes({2}, "ab", '\x0d')), "file: IDX element type 13, expected 8 (bytes)");
  EXPECT_EQ(error_of(idx_bytes({}, "")), "file: 0 axes, expected 1 to 8");
  EXPECT_EQ(error_of(idx_bytes({1, 1, 1, 1, 1, 1, 1, 1, 1}, "a")), "file: 9 axes, expected 1 to 8");
}

TEST(Idx, refuses_every_truncated_file) {
  const std::string file = idx_bytes({2, 3}, "abcdef"), small = packed(file);
  for (size_t size = 0; size < file.size(); ++size) EXPECT_NE(error_of(file.substr(0, size)), "no error") << size;
  for (size_t size = 0; size < small.size(); ++size) EXPECT_NE(error_of(small.substr(0, size)), "no error") << size;
  EXPECT_EQ(error_of(file.substr(0, 14)), "file: 14 bytes cannot hold the 6 elements of (2, 3)");
  EXPECT_EQ(error_of(packed(file.substr(0, 14))), "file: 2 elements, expected 6");
}

TEST(Idx, refuses_trailing_bytes) {
  const std::string file = idx_bytes({2}, "ab");
  EXPECT_EQ(error_of(file + "c"), "file: found bytes after the last element");
  EXPECT_EQ(error_of(packed(file + "c")), "file: found bytes after the last element");
  EXPECT_EQ(error_of(packed(file) + "cde"), "file: found 3 bytes after the gzip data; copy or download it again");
  EXPECT_NE(error_of(packed(file) + packed(file)), "no error");
}

TEST(Idx, detects_damaged_gzip_data) {
  const std::string file = packed(idx_bytes({64}, std::string(64, 'x')));
  for (size_t i = 10; i < file.size(); ++i) {  // after gzip's header, whose time and system fields are arbitrary
    std::string damaged = file;
    damaged[i] = static_cast<char>(damaged[i] ^ 0x55);
    EXPECT_NE(error_of(damaged), "no error") << i;
  }
}

TEST(Idx, refuses_huge_sizes_before_allocating) {
  constexpr uint32_t max_size = 0xffffffff;
  EXPECT_NE(error_of(idx_bytes({max_size, max_size, max_size}, "ab")).find("are too large"), std::string::npos);
  EXPECT_NE(error_of(idx_bytes({max_size, max_size, max_size, 0}, "")).find("are too large"), std::string::npos);
  EXPECT_NE(error_of(idx_bytes({max_size, max_size / 4}, "ab")).find("cannot hold"), std::string::npos);
  EXPECT_NE(error_of(packed(idx_bytes({max_size, max_size / 4}, "ab"))).find("cannot hold"), std::string::npos);
}

TEST(Idx, refuses_decompression_bombs) {
  const std::string bomb = packed(idx_bytes({2}, std::string(50 << 20, 'x')));
  ASSERT_LT(bomb.size(), 1u << 17);
  EXPECT_EQ(error_of(bomb), "file: found bytes after the last element");
}

}  // namespace
}  // namespace heed::test
