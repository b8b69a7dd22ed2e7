// Images of all formats against Pillow (tests/fixtures/make_images.py), and files that are not images.
#include "heed/io/image.h"

#include "heed/io/safetensors.h"
#include "tests/io/image_bytes.h"

namespace heed::test {
namespace {

const Path kImages = fixture("images");

// A PNG file of rows, each preceded by its filter type.
std::string png(uint32_t width, uint32_t height, char depth, char kind, const std::string& raw) {
  uLongf size = compressBound(static_cast<uLong>(raw.size()));
  std::string packed(size, '\0');
  compress(reinterpret_cast<Bytef*>(packed.data()), &size, reinterpret_cast<const Bytef*>(raw.data()), static_cast<uLong>(raw.size()));
  packed.resize(size);
  const std::string header = big(width) + big(height) + depth + kind + std::string(3, '\0');
  return "\x89PNG\r\n\x1a\n" + chunk("IHDR", header) + chunk("IDAT", packed) + chunk("IEND", "");
}

Image some(int64_t width, int64_t height) {
  Image out{width, height};
  for (int64_t i = 0; i < width * height * 3; ++i) out.pixels.push_back(static_cast<uint8_t>(i * i * 7 + i / 5));
  return out;
}

TEST(Images, match_pillow) {
  const Safetensors expected = Safetensors::open(kImages / "expected.safetensors");
  int count = 0;
  for (const std::string& name : expected.names()) {
    if (!name.starts_with("read/")) continue;
    SCOPED_TRACE(name);
    const Tensor pixels = expected.tensor(name);
    const Image image = read_image(kImages / name.substr(5));
    EXPECT_EQ((Shape{image.height, image.width, 3}), pixels.shape());
    EXPECT_TRUE(image.pixels == pixels.to_vector<uint8_t>());
    ++count;
  }
  EXPECT_GE(count, 20);
}

TEST(Images, keep_the_upper_byte_of_16_bit_gray) {  // Pillow would clip all but the darkest values to white
  const std::string bytes = png(2, 1, 16, 0, std::string("\0\x12\x34\xab\xcd", 5));
  EXPECT_EQ(parsed(bytes).pixels, (std::vector<uint8_t>{0x12, 0x12, 0x12, 0xab, 0xab, 0xab}));
}

TEST(Images, round_trip) {
  const Folder folder;
  for (const Image& image : {some(1, 1), some(17, 5), some(3, 64), some(257, 31)}) {
    write_png(folder / "a.png", image);
    const Image again = read_image(folder / "a.png");
    EXPECT_EQ(again.width, image.width);
    EXPECT_EQ(again.height, image.height);
    EXPECT_TRUE(again.pixels == image.pixels);
    EXPECT_EQ(get(folder / "a.png"), png_bytes(image));
  }
  EXPECT_EQ(folder.names(), std::vector<std::string>{"a.png"});
}

TEST(Images, are_not_written_if_invalid) {
  const Folder folder;
  for (const Image& image : {Image{}, Image{2, 2, {1, 2, 3}}, Image{-1, -1, {1, 2, 3}}, Image{int64_t{1} << 40, 1, {}}})
    EXPECT_THROW(write_png(folder / "a.png", image), Error);
  EXPECT_TRUE(folder.names().empty());
}

TEST(Images, are_refused_before_decoding_if_too_large) {
  EXPECT_EQ(parsed(png(40, 25, 8, 2, zeros(25 * 121)), 1000).width, 40);
  expect_refused([] { parsed(png(40, 25, 8, 2, zeros(25 * 121)), 999); },
                 "held: found an image of 40 x 25 pixels, expected at most 999 of them");
  const int64_t before = process_bytes("VmRSS");
  expect_refused([] { parsed(png(60000, 60000, 8, 2, zeros(100))); },
                 "held: found an image of 60000 x 60000 pixels, expected at most 178956970");
  expect_refused([] { parsed(png(0x7fffffff, 0x7fffffff, 1, 0, zeros(100))); }, "found an image of 2147483647 x 2147483647 pixels");
  expect_refused([] { parsed(png(13000, 13000, 1, 0, zeros(100))); },
                 "held: found an image of 13000 x 13000 pixels, more than a file of its size");
  std::string jpeg = get(kImages / "color.jpg");
  const size_t frame = jpeg.find("\xff\xc0");
  jpeg.replace(frame + 5, 4, "\xea\x60\xea\x60");
  expect_refused([&] { parsed(jpeg); }, "held: found an image of 60000 x 60000 pixels, expected at most 178956970");
  jpeg.replace(frame + 5, 4, "\x30\x00\x30\x00", 4);
  expect_refused([&] { parsed(jpeg); }, "held: found an image of 12288 x 12288 pixels, more than a file of its size can hold");
  EXPECT_TRUE(kSanitized || process_bytes("VmRSS") - before < 64 << 20);
}

TEST(Images, are_refused_if_damaged) {
  const std::string good = get(kImages / "color.png"), jpeg = get(kImages / "color.jpg");
  std::string wrong_sum = good, no_header = good, no_rows = png(3, 2, 8, 2, zeros(10));
  wrong_sum[wrong_sum.find("IDAT") + 6] ^= 1;
  no_header.replace(12, 4, "IHDX");
  const struct {
    const char* name;
    std::string bytes, fragment;
  } bad[] = {
      {"empty", "", "held: found an empty file, expected a PNG, JPEG, WebP or BMP image"},
      {"text", "hello, world and more\n", "held: found \"hello, world\" at the start, expected a PNG, JPEG, WebP or BMP image"},
      {"gif", "GIF89a\1\1\1\1", "held: found a GIF file"},
      {"signature alone", good.substr(0, 8), "held: found 8 bytes, expected a PNG header of 33"},
      {"no header", no_header, "held: found a PNG file without a header"},
      {"zero width", png(0, 2, 8, 2, zeros(10)), "held: found an image of 0 x 2 pixels"},
      {"zero height", png(3, 0, 8, 2, zeros(10)), "held: found an image of 3 x 0 pixels"},
      {"wrong sum", wrong_sum, "held: the PNG image cannot be decoded"},
      {"too few rows", no_rows, "held: the PNG image cannot be decoded"},
      {"depth of 3 bits", png(3, 2, 3, 2, zeros(20)), "held: the PNG image cannot be decoded: Invalid IHDR data"},
      {"palette without colours", png(3, 2, 8, 3, zeros(8)), "held: the PNG image cannot be decoded"},
      {"start of a JPEG alone", jpeg.substr(0, 4), "held: the JPEG header cannot be read"},
      {"JPEG without data", jpeg.substr(0, jpeg.find("\xff\xda")), "held: the JPEG header cannot be read"},
  };
  for (const auto& c : bad) {
    SCOPED_TRACE(c.name);
    expect_refused([&] { parsed(c.bytes); }, c.fragment);
  }
}

TEST(Images, are_refused_if_truncated_anywhere) {
  for (const char* name : {"color.png", "color.jpg", "progressive.jpg", "interlaced.png", "palette-16.png"}) {
    SCOPED_TRACE(name);
    const std::string good = get(kImages / name);
    for (size_t size = 0; size + 12 < good.size(); ++size) expect_refused([&] { parsed(good.substr(0, size)); }, "held: ");
  }
}

TEST(Images, errors_name_the_file) {
  const Folder folder;
  expect_refused([&] { read_image(folder / "a.png"); }, "a.png: there is no such file");
  expect_refused([&] { read_image(folder.path()); }, ": found a folder, expected a file");
  put(folder / "a.png", "");
  expect_refused([&] { read_image(folder / "a.png"); }, (folder / "a.png").string() + ": found an empty file");
}

}  // namespace
}  // namespace heed::test
