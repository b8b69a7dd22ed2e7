// WebP, BMP and the Exif orientation of all formats, on small images built here.
#include <gtest/gtest.h>

#include "heed/io/image_files.h"
#include "heed/io/image_formats.h"
#include "heed/io/printable.h"
#include "tests/io/image_bytes.h"

namespace heed::test {
namespace {

using Pixels = std::vector<uint8_t>;

// The stored index of each displayed pixel. Stored: row 0 1 2, row 3 4 5.
struct Shown {
  int64_t width, height;
  std::vector<int> order;
};
const std::vector<Shown> kShown = {
    {3, 2, {0, 1, 2, 3, 4, 5}}, {3, 2, {2, 1, 0, 5, 4, 3}}, {3, 2, {5, 4, 3, 2, 1, 0}}, {3, 2, {3, 4, 5, 0, 1, 2}},
    {2, 3, {0, 3, 1, 4, 2, 5}}, {2, 3, {3, 0, 4, 1, 5, 2}}, {2, 3, {5, 2, 4, 1, 3, 0}}, {2, 3, {2, 5, 1, 4, 0, 3}},
};

void expect_shown(const Image& image, const Image& stored, const Shown& shown) {
  EXPECT_EQ(image.width, shown.width);
  EXPECT_EQ(image.height, shown.height);
  Pixels expected;
  for (const int from : shown.order)
    for (int c = 0; c < 3; ++c) expected.push_back(stored.pixels[static_cast<size_t>(3 * from + c)]);
  EXPECT_EQ(image.pixels, expected);
}

TEST(Orientation, is_applied_to_png_and_webp) {
  const Image stored = six_pixels();
  for (size_t i = 0; i < kShown.size(); ++i)
    for (const bool big_endian : {false, true}) {
      SCOPED_TRACE(i + 1);
      const std::string block = exif(static_cast<int>(i) + 1, big_endian);
      const std::string png = png_with(png_bytes(stored), chunk("eXIf", block)), webp = webp_with_exif(block),
                        old = webp_with_exif("Exif" + zeros(2) + block);
      for (const std::string& file : {png, webp, old}) {
        expect_shown(parsed(file), stored, kShown[i]);
        EXPECT_EQ(parse_image_size(std::as_bytes(std::span(file)), "held"), (ImageSize{kShown[i].width, kShown[i].height}));
      }
    }
}

TEST(Orientation, is_applied_to_jpeg) {
  const std::string file = get(fixture("images") / "color.jpg");  // 17 x 13 pixels
  const Image stored = parsed(file);
  const int64_t W = stored.width, H = stored.height;
  const auto at = [](const Image& image, int64_t x, int64_t y) {
    const auto begin = image.pixels.begin() + 3 * (y * image.width + x);
    return Pixels(begin, begin + 3);
  };
  // Where the stored pixel (x, y) is displayed. The standard names the sides on which the stored first row and first column are.
  const std::vector<std::function<std::array<int64_t, 2>(int64_t x, int64_t y)>> places = {
      [](int64_t x, int64_t y) {
        return std::array{x, y};
      },  // top, left
      [&](int64_t x, int64_t y) {
        return std::array{W - 1 - x, y};
      },  // top, right
      [&](int64_t x, int64_t y) {
        return std::array{W - 1 - x, H - 1 - y};
      },  // bottom, right
      [&](int64_t x, int64_t y) {
        return std::array{x, H - 1 - y};
      },  // bottom, left
      [](int64_t x, int64_t y) {
        return std::array{y, x};
      },  // left, top
      [&](int64_t x, int64_t y) {
        return std::array{H - 1 - y, x};
      },  // right, top
      [&](int64_t x, int64_t y) {
        return std::array{H - 1 - y, W - 1 - x};
      },  // right, bottom
      [&](int64_t x, int64_t y) {
        return std::array{y, W - 1 - x};
      },  // left, bottom
  };
  for (int orientation = 1; orientation <= 8; ++orientation) {
    SCOPED_TRACE(orientation);
    const Image shown = parsed(jpeg_with_exif(file, exif(orientation, true)));
    ASSERT_EQ(shown.width, orientation >= 5 ? H : W);
    ASSERT_EQ(shown.height, orientation >= 5 ? W : H);
    for (int64_t y = 0; y < H; ++y)
      for (int64_t x = 0; x < W; ++x) {
        const auto [to_x, to_y] = places[static_cast<size_t>(orientation) - 1](x, y);
        ASSERT_EQ(at(shown, to_x, to_y), at(stored, x, y));
      }
  }
}

TEST(Orientation, is_ignored_if_damaged) {
  const Image stored = six_pixels();
  const std::string good = exif(6, false);
  std::vector<std::string> blocks = {"", "II", "Exif", zeros(100), exif(0, false), exif(9, true), exif(255, false)};
  for (size_t size = 0; size < 20; ++size) blocks.push_back(good.substr(0, size));  // 20 bytes include the value
  for (const char* offset : {"\xff\xff\xff\xff", "\xfe\xff\xff\x7f", "\x1a\0\0\0"}) {
    blocks.push_back(good);
    blocks.back().replace(4, 4, offset, 4);
  }
  blocks.push_back(good);
  blocks.back().replace(14, 4, "\xff\xff\xff\xff", 4);  // huge number of values
  blocks.push_back(good);
  blocks.back()[12] = 7;  // not an integer type
  for (const std::string& block : blocks) {
    SCOPED_TRACE(in_quotes(block));
    EXPECT_EQ(parsed(png_with(png_bytes(stored), chunk("eXIf", block))).pixels, stored.pixels);
    EXPECT_EQ(parsed(webp_with_exif(block)).pixels, stored.pixels);
    EXPECT_EQ(parsed(jpeg_with_exif(get(fixture("images") / "color.jpg"), block)).width, 17);
  }
  std::string many = good;  // more tags than bytes: the existing ones count
  many.replace(8, 2, "\xff\xff");
  EXPECT_EQ(parsed(webp_with_exif(many)).width, 2);
}

TEST(Orientation, is_read_from_xmp_if_there_is_no_exif) {
  const Image stored = six_pixels();
  const std::string canvas("\x0c\0\0\0\x02\0\0\x01\0\0", 10), xmp = "<x tiff:Orientation=\"6\"/>";
  const auto file = [&](const std::string& block) {
    return webp({{"VP8X", canvas}, {"VP8L", kWebP.substr(20, 35)}, {"EXIF", block}, {"XMP ", xmp}});
  };
  expect_shown(parsed(file("")), stored, kShown[5]);
  expect_shown(parsed(file(exif(1, true))), stored, kShown[0]);
  expect_shown(parsed(file(exif(3, true))), stored, kShown[2]);
  const std::string text = "XML:com.adobe.xmp" + zeros(5) + "<tiff:Orientation>8</tiff:Orientation>";
  expect_shown(parsed(png_with(png_bytes(stored), chunk("iTXt", text))), stored, kShown[7]);
  std::string jpeg = get(fixture("images") / "color.jpg");
  const std::string body = "http://ns.adobe.com/xap/1.0/" + zeros(1) + xmp;
  jpeg.insert(2, "\xff\xe1" + big(static_cast<uint32_t>(body.size()) + 2, 2) + body);
  EXPECT_EQ(parsed(jpeg).width, 13);
}

TEST(WebP, is_read) {
  EXPECT_EQ(parsed(kWebP).pixels, six_pixels().pixels);
  for (size_t size = 0; size < kWebP.size(); ++size) EXPECT_THROW(parsed(kWebP.substr(0, size)), FileError) << size;
  expect_refused([] { parsed(kWebP, 5); }, "held: found an image of 3 x 2 pixels, expected at most 5");
}

TEST(WebP, is_refused_if_too_large_or_animated) {
  const int64_t before = process_bytes("VmRSS");
  std::string large = kWebP;  // 16384 x 16384, the maximum
  large.replace(21, 4, "\xff\xff\xff\x0f");
  expect_refused([&] { parsed(large); }, "held: found an image of 16384 x 16384 pixels, expected at most 178956970");
  const std::string canvas("\x08\0\0\0\x5f\xea\0\x5f\xea\0", 10);  // 60000 x 60000
  expect_refused([&] { parsed(webp({{"VP8X", canvas}, {"VP8L", kWebP.substr(20)}})); }, "held: the WebP header cannot be read");
  const std::string moving("\x02\0\0\0\x02\0\0\x01\0\0", 10);
  expect_refused([&] { parsed(webp({{"VP8X", moving}, {"ANIM", zeros(6)}, {"ANMF", zeros(30)}})); }, "held: found an animated WebP");
  EXPECT_TRUE(kSanitized || process_bytes("VmRSS") - before < 64 << 20);
}

TEST(Bmp, is_read_with_every_number_of_bits) {
  const Pixels expected = six_pixels().pixels;
  std::string bottom, top;  // blue, green, red, and rows padded to 4 bytes
  for (int i = 0; i < 3; ++i) {
    for (int c = 2; c >= 0; --c) bottom += static_cast<char>(expected[static_cast<size_t>(9 + 3 * i + c)]);
    for (int c = 2; c >= 0; --c) top += static_cast<char>(expected[static_cast<size_t>(3 * i + c)]);
  }
  EXPECT_EQ(parsed(bmp({.bits = 24}, "", bottom + zeros(3) + top + zeros(3))).pixels, expected);
  EXPECT_EQ(parsed(bmp({.height = -2, .bits = 24}, "", top + zeros(3) + bottom + zeros(3))).pixels, expected);
  std::string wide;
  for (const std::string& row : {bottom, top})
    for (size_t i = 0; i < 9; i += 3) wide += row.substr(i, 3) + '\x7f';
  EXPECT_EQ(parsed(bmp({.bits = 32}, "", wide)).pixels, expected);

  std::string palette;
  for (size_t i = 0; i < 6; ++i)
    palette += {static_cast<char>(expected[3 * i + 2]), static_cast<char>(expected[3 * i + 1]), static_cast<char>(expected[3 * i]), '\0'};
  EXPECT_EQ(parsed(bmp({.bits = 8, .colours = 6}, palette, std::string("\3\4\5\0\0\1\2\0", 8))).pixels, expected);
  EXPECT_EQ(parsed(bmp({.bits = 4, .colours = 6}, palette, std::string("\x34\x50\0\0\x01\x20\0\0", 8))).pixels, expected);
  const std::string two = palette.substr(0, 8);  // the first colours, 10 20 30 and 40 50 60
  const Image mono = parsed(bmp({.bits = 1, .colours = 2}, two, std::string("\xa0\0\0\0\x40\0\0\0", 8)));
  EXPECT_EQ(Pixels(mono.pixels.begin(), mono.pixels.begin() + 9), (Pixels{10, 20, 30, 40, 50, 60, 10, 20, 30}));
  EXPECT_EQ(mono.pixels[9], 40);
  // An index beyond the palette is black.
  EXPECT_EQ(parsed(bmp({.bits = 8, .colours = 6}, palette, std::string("\7\4\5\0\0\1\2\0", 8))).pixels[9], 0);
}

TEST(Bmp, is_read_with_16_bits_and_masks) {
  const std::string pixels("\xff\x7f\x1f\0\0\x7c\0\0\xe0\x03\0\x80\x10\0\0\0",
                           16);  // 5 bits each: white, blue, red; green, black, half blue
  const Pixels expected{0, 255, 0, 0, 0, 0, 0, 0, 131, 255, 255, 255, 0, 0, 255, 255, 0, 0};
  EXPECT_EQ(parsed(bmp({.bits = 16}, "", pixels)).pixels, expected);
  const std::string five_six_five = little(0xf800) + little(0x7e0) + little(0x1f);
  const Image more =
      parsed(bmp({.bits = 16, .compression = 3}, five_six_five, std::string("\xe0\x07\0\xf8\x1f\0\0\0\x20\0\0\0\0\0\0\0", 16)));
  EXPECT_EQ(Pixels(more.pixels.begin(), more.pixels.begin() + 12), (Pixels{0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 255, 0}));
  const std::string reversed = little(0xff) + little(0xff00) + little(0xff0000);  // red first
  std::string words;
  for (const size_t row : {9u, 0u})
    for (size_t i = row; i < row + 9; ++i) words += std::string(1, static_cast<char>(six_pixels().pixels[i])) + (i % 3 == 2 ? "\xff" : "");
  EXPECT_EQ(parsed(bmp({.bits = 32, .compression = 3}, reversed, words)).pixels, six_pixels().pixels);
}

TEST(Bmp, is_refused_if_damaged_or_unsupported) {
  const std::string rows = zeros(24), good = bmp({.bits = 24}, "", rows);
  for (size_t size = 0; size < good.size(); ++size) EXPECT_THROW(parsed(good.substr(0, size)), FileError) << size;
  expect_refused([&] { parsed(bmp({.bits = 8, .compression = 1}, zeros(1024), rows)); },
                 "held: found a BMP image with compression 1 and 8 bits");
  expect_refused([&] { parsed(bmp({.bits = 24, .compression = 4}, "", rows)); }, "save it as PNG");
  expect_refused([&] { parsed(bmp({.bits = 2}, zeros(16), rows)); }, "held: found a BMP image with 2 bits per pixel");
  expect_refused([&] { parsed(bmp({.width = 0, .bits = 24}, "", rows)); }, "held: found a BMP image of 0 x 2 pixels");
  expect_refused([&] { parsed(bmp({.width = -3, .bits = 24}, "", rows)); }, "held: found a BMP image of -3 x 2 pixels");
  expect_refused([&] { parsed(bmp({.width = 60000, .height = 60000, .bits = 24}, "", rows)); },
                 "held: found an image of 60000 x 60000 pixels");
  expect_refused([&] { parsed(bmp({.width = 2147483647, .height = -2147483647 - 1, .bits = 32}, "", rows)); },
                 "expected at most 178956970");
  expect_refused([&] { parsed(bmp({.width = 5000, .height = 5000, .bits = 1}, zeros(8), rows)); }, "more than a file of its size can hold");
  expect_refused([&] { parsed(bmp({.bits = 8, .colours = 256}, "", rows)); }, "held: the palette of the BMP image is cut short");
  expect_refused([&] { parsed(bmp({.bits = 32, .compression = 3}, little(0xf0f) + little(0) + little(0), rows)); },
                 "expected bits without gaps");
  std::string header = good;
  header[14] = 41;
  expect_refused([&] { parsed(header); }, "held: found a BMP header of 41 bytes");
  std::string inside = good;
  inside[10] = 20;
  expect_refused([&] { parsed(inside); }, "held: the BMP image cannot be decoded");
}

TEST(ImageFiles, unsupported_formats_are_named_in_errors) {
  const std::vector<std::pair<std::string, std::string>> others = {{"GIF89a\1\1\1\1", "GIF"},
                                                                   {std::string("II*\0\x08\0\0\0", 8), "TIFF"},
                                                                   {zeros(3) + "\x18"
                                                                               "ftypheic",
                                                                    "HEIC"},
                                                                   {zeros(3) + "\x18"
                                                                               "ftypavif",
                                                                    "AVIF"}};
  for (const auto& [bytes, name] : others)
    expect_refused([&, &file = bytes] { parsed(file); },
                   "held: found a " + name + " file, expected a PNG, JPEG, WebP or BMP image; convert it first");
}

TEST(ImageFiles, are_recognized_by_extension) {
  const Folder folder;
  std::filesystem::create_directories(folder / "below/.hidden");
  for (const char* name :
       {"b.png", "a.JPG", "below/c.WebP", "below/d.bmp", "e.heic", "f.gif", "below/notes.txt", ".DS_Store", "below/.hidden/x.png"})
    put(folder / name, "x");
  const FolderImages found = find_images(folder.path());
  EXPECT_EQ(found.images, (std::vector<Path>{folder / "a.JPG", folder / "b.png", folder / "below/c.WebP", folder / "below/d.bmp"}));
  EXPECT_EQ(found.skipped_files, (std::vector<Path>{folder / "below/notes.txt", folder / "e.heic", folder / "f.gif"}));
  EXPECT_EQ(skipped_files_note({"a.heic", "b.gif"}), "2 files were skipped: a.heic, b.gif (heed reads PNG, JPEG, WebP or BMP)");
  EXPECT_EQ(skipped_files_note({"1", "2", "3", "4", "5", "6", "7"}),
            "7 files were skipped: 1, 2, 3, 4, 5 and 2 more (heed reads PNG, JPEG, WebP or BMP)");
  EXPECT_EQ(skipped_files_note({}), "");
  EXPECT_EQ(listed_lines(std::vector<std::string>(22, "x")).substr(4 * 19), "\n  x\n  and 2 more");
}

TEST(ImageFiles, links_to_folders_are_followed_without_endless_loops) {
  const Folder folder, elsewhere;
  std::filesystem::create_directories(folder / "a/b");
  for (const Path& file : {folder / "a/1.png", folder / "a/b/2.png", elsewhere / "3.png"}) put(file, "x");
  std::filesystem::create_directory_symlink(elsewhere.path(), folder / "a/linked");
  std::filesystem::create_directory_symlink(folder.path(), elsewhere / "back");
  std::filesystem::create_directory_symlink("..", folder / "a/b/up");
  std::filesystem::create_symlink("nowhere.png", folder / "a/dangling.png");
  const FolderImages found = find_images(folder.path());
  EXPECT_EQ(found.images, (std::vector<Path>{folder / "a/1.png", folder / "a/b/2.png", folder / "a/linked/3.png"}));
  EXPECT_EQ(found.skipped_files, std::vector<Path>{folder / "a/dangling.png"});
  expect_refused([&] { find_images(folder / "none"); }, "none: cannot be examined (No such file or directory)");
}

TEST(ImageFiles, names_are_printable) {
  EXPECT_EQ(printable("caf\xc3\xa9 \xf0\x9f\x90\x88.png"), "caf\xc3\xa9 \xf0\x9f\x90\x88.png");
  EXPECT_EQ(printable("caf\xe9\x1b[2J\n"), "caf\\xe9\\x1b[2J\\x0a");
  for (const char* bad : {"\xc0\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xe2\x82", "\xc2\x9b"})
    EXPECT_EQ(printable(bad).substr(0, 2), "\\x") << in_quotes(bad);
}

}  // namespace
}  // namespace heed::test
