#include "heed/io/gzip_reader.h"

#include "heed/io/file_kind.h"
#include "heed/io/read_progress.h"
#include "tests/data/idx_files.h"
#include "tests/io/files.h"

namespace heed::test {
namespace {

std::string unpacked(const std::string& file, size_t chunk) {
  GzipReader unpacker(std::as_bytes(std::span(file)), "f.gz");
  std::string out;
  for (size_t count = chunk; count == chunk;) {
    std::string some(chunk, '\0');
    count = unpacker.read(std::as_writable_bytes(std::span(some)));
    out += some.substr(0, count);
  }
  return out;
}

TEST(GzipReader, gives_the_same_bytes_for_any_read_size) {
  std::string text;
  for (int i = 0; i < 20'000; ++i) text += std::to_string(i * 7919);
  const std::string half = text.substr(0, 5000), rest = text.substr(5000);
  const std::string padding(1000, '\0');  // of tapes; gzip(1) ignores it
  for (const std::string& file : {text, packed(text), packed(half) + packed("") + packed(rest), packed(text) + padding})
    for (const size_t chunk : {size_t{1000}, text.size(), text.size() + 1, size_t{3'000'000}})
      EXPECT_EQ(unpacked(file, chunk), text) << chunk;
  EXPECT_EQ(unpacked("", 10), "");
}

TEST(GzipReader, refuses_other_bytes_after_the_data) {
  for (const std::string& tail : {std::string("a"), std::string("\0\0a", 3), std::string("\0", 1) + packed("b")})
    expect_refused([&] { unpacked(packed("text") + tail, 1000); },
                   "f.gz: found " + std::to_string(tail.size()) + " bytes after the gzip data");
}

TEST(GzipReader, refuses_decompression_bombs_early) {
  const std::string zeros = packed(std::string(40 << 20, '\0'));
  std::string bomb;  // 1.2 GiB in about 1.2 MiB
  for (int i = 0; i < 30; ++i) bomb += zeros;
  GzipReader unpacker(std::as_bytes(std::span(bomb)), "f.gz");
  std::vector<std::byte> chunk(1 << 20);
  int64_t chunks = 0;
  expect_refused(
      [&] {
        for (;; ++chunks) unpacker.read(chunk);
      },
      "f.gz: the first ");
  EXPECT_LT(chunks, 25);  // MiB decompressed
  EXPECT_LT(unpacker.read_so_far(), int64_t{1} << 16);
  EXPECT_LT(GzipReader(std::as_bytes(std::span(bomb)), "f.gz").bound(), int64_t{400} << 20);  // the bound prevents allocating for all of it
}

TEST(GzipReader, recognizes_file_types_by_their_first_bytes) {
  using namespace std::string_view_literals;
  EXPECT_EQ(kind_of_bytes("\x89PNG\r\n\x1a\n\0\0"sv), "a PNG image");
  EXPECT_EQ(kind_of_bytes("\xFF\xFEh\0i\0"sv), "UTF-16 text (little-endian)");
  EXPECT_EQ(kind_of_bytes("\xFE\xFF\0h"sv), "UTF-16 text (big-endian)");
  EXPECT_EQ(kind_of_bytes("h\0i\0!\0"sv), "UTF-16 text (little-endian)");
  EXPECT_EQ(kind_of_bytes(packed("x")), "gzip data");
  EXPECT_EQ(kind_of_bytes("PK\x03\x04"sv), "a zip archive or an Office document");
  for (const char* text : {"", "a", "PAR1 is a word", "GIF89a and more", "BZh is none", "\xC3\xA4hnlich"})
    EXPECT_EQ(kind_of_bytes(text), "") << text;
  EXPECT_EQ(advice_for("UTF-16 text (big-endian)", "f"), "; convert it first: iconv -f UTF-16BE -t UTF-8 f > NEW");
}

TEST(GzipReader, reports_the_progress_of_long_reads) {
  std::vector<double> shares;
  set_read_progress_callback([&](const std::string& what, double share) {
    EXPECT_EQ(what, "reading f");
    shares.push_back(share);
  });
  {
    ReadProgress progress("reading f", 100, std::chrono::seconds(0));
    progress.at(25);
    ReadProgress quick("reading f", 100);
    quick.at(50);
  }
  set_read_progress_callback({});
  EXPECT_EQ(shares, (std::vector<double>{0.25, 1}));
}

}  // namespace
}  // namespace heed::test
