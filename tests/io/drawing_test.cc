// Drawings as SVG and as pixels, and markup escaping.
#include "heed/io/drawing.h"

#include <gtest/gtest.h>

#include "heed/io/markup.h"
#include "tests/expect_error.h"
#include "tests/io/files.h"

namespace heed::test {
namespace {

Colour pixel(const Image& image, int64_t x, int64_t y) {
  const auto at = static_cast<size_t>(3 * (y * image.width + x));
  return {image.pixels[at], image.pixels[at + 1], image.pixels[at + 2]};
}

// Approximate relative luminance, for comparisons.
double light(Colour colour) {
  return 0.2126 * colour.red * colour.red + 0.7152 * colour.green * colour.green + 0.0722 * colour.blue * colour.blue;
}

constexpr Colour kWhite{255, 255, 255}, kRed{255, 0, 0};

TEST(Heat, lightness_increases_monotonically) {
  EXPECT_EQ(heat(0), kHeat.front());
  EXPECT_EQ(heat(1), kHeat.back());
  EXPECT_EQ(heat(0.5), kHeat[3]);
  for (int i = 1; i <= 100; ++i) EXPECT_GE(light(heat(i / 100.0)), light(heat((i - 1) / 100.0))) << i;
  EXPECT_EQ(heat(-1), heat(0));
  EXPECT_EQ(heat(2), heat(1));
  EXPECT_EQ(heat(std::numeric_limits<double>::quiet_NaN()), heat(0));
}

TEST(Markup, escapes_special_characters) {
  EXPECT_EQ(escape_markup("<s> & \"it's\""), "&lt;s&gt; &amp; &quot;it&#39;s&quot;");
  EXPECT_EQ(escape_markup("a\nb\x01\x7f"), "a\ufffdb\ufffd\ufffd");
  EXPECT_EQ(escape_markup("\u4f60\u00fc\U0001f600"), "\u4f60\u00fc\U0001f600");
  EXPECT_EQ(escape_markup("\xff\xe4\xbd_\xed\xa0\x80\xc0\x80"), "\ufffd\ufffd\ufffd_\ufffd\ufffd\ufffd\ufffd\ufffd");
  EXPECT_EQ(escape_markup("\uffff"), "\ufffd");
}

TEST(Markup, encodes_base64_of_every_length) {
  const auto coded = [](std::string_view text) { return base64(std::as_bytes(std::span(text))); };
  EXPECT_EQ(coded(""), "");
  EXPECT_EQ(coded("M"), "TQ==");
  EXPECT_EQ(coded("Ma"), "TWE=");
  EXPECT_EQ(coded("Man"), "TWFu");
  EXPECT_EQ(coded("\xff\xff\xfe"), "///+");
}

TEST(Drawing, rectangles_are_antialiased) {
  Drawing drawing(6, 4);
  drawing.add(Drawing::Rectangle{1, 1, 2.5, 2, kRed});
  const Image image = drawing.pixels();
  EXPECT_EQ(pixel(image, 0, 1), kWhite);
  EXPECT_EQ(pixel(image, 1, 1), kRed);
  EXPECT_EQ(pixel(image, 2, 2), kRed);
  EXPECT_EQ(pixel(image, 3, 1), (Colour{255, 128, 128}));
  EXPECT_EQ(pixel(image, 1, 3), kWhite);
}

TEST(Drawing, clips_items_outside_the_canvas) {
  Drawing drawing(5, 5);
  drawing.add(Drawing::Rectangle{-100, -100, 1000, 102, kRed});
  drawing.add(Drawing::Curve{-10, -10, 20, 20, kRed, 1, 3});
  drawing.add(Drawing::Text{-3, 100, "far", 10});
  drawing.add(Drawing::Image{-4, -4, 40, 40, {.width = 1, .height = 1, .pixels = {1, 2, 3}}});
  EXPECT_EQ(pixel(drawing.pixels(), 4, 4), (Colour{1, 2, 3}));
}

TEST(Drawing, curves_start_and_end_at_their_points) {
  Drawing drawing(100, 60);
  drawing.add(Drawing::Curve{0, 10.5, 100, 50.5, kRed, 1, 1});
  const Image image = drawing.pixels();
  EXPECT_LT(pixel(image, 0, 10).green, 30);
  EXPECT_LT(pixel(image, 99, 50).green, 30);
  EXPECT_LT(pixel(image, 50, 30).green, 100);
  EXPECT_EQ(pixel(image, 50, 10), kWhite);
}

TEST(Drawing, draws_letters_with_the_font) {
  Drawing drawing(40, 12);
  drawing.add(Drawing::Text{0, 4, "T\u00dc\u00b7\u4f60", 10, Drawing::Anchor::start, false, {0, 0, 0}});
  const Image image = drawing.pixels();
  std::string rows;
  for (int64_t y = 1; y < 9; ++y) {
    for (int64_t x = 0; x < 24; ++x) rows += pixel(image, x, y) == kWhite ? '.' : '#';
    rows += '\n';
  }
  EXPECT_EQ(rows,
            "#####.#...#.......#####.\n"
            "..#...#...#.......#...#.\n"
            "..#...#...#.......#...#.\n"
            "..#...#...#..##...#...#.\n"
            "..#...#...#..##...#...#.\n"
            "..#...#...#.......#...#.\n"
            "..#....###........#####.\n"
            "........................\n");
}

TEST(Drawing, draws_letters_with_diacritics) {
  Drawing drawing(24, 12);
  drawing.add(Drawing::Text{0, 4, "\u00df\u00e4\u23ce", 10, Drawing::Anchor::start, false, {0, 0, 0}});
  const Image image = drawing.pixels();
  std::string rows;
  for (int64_t y = 1; y < 9; ++y) {
    for (int64_t x = 0; x < 18; ++x) rows += pixel(image, x, y) == kWhite ? '.' : '#';
    rows += '\n';
  }
  EXPECT_EQ(rows,
            ".##....#.#........\n"
            "#..#............#.\n"
            "#..#...###......#.\n"
            "#.#.......#...#.#.\n"
            "#..#...####..##.#.\n"
            "#...#.#...#.#####.\n"
            "#.##...####..##...\n"
            "..............#...\n");
}

TEST(Drawing, text_can_be_anchored_and_vertical) {
  Drawing drawing(40, 40);
  drawing.add(Drawing::Text{30, 20, "||", 10, Drawing::Anchor::end, false, kRed});
  drawing.add(Drawing::Text{36, 38, "|", 10, Drawing::Anchor::start, true, kRed});
  const Image image = drawing.pixels();
  EXPECT_EQ(pixel(image, 30 - 12 + 2, 20), kRed);
  EXPECT_EQ(pixel(image, 30 - 6 + 2, 20), kRed);
  for (int64_t x = 33; x < 40; ++x) EXPECT_EQ(pixel(image, x, 36), kRed) << x;
}

TEST(Drawing, svg_has_all_items) {
  Drawing drawing(20, 10);
  drawing.add(Drawing::Rectangle{1, 2, 3.5, 4, kRed});
  drawing.add(Drawing::Curve{0, 1, 9, 5, {0, 128, 255}, 0.25, 2});
  drawing.add(Drawing::Text{5, 6, "<s> & \"", 10, Drawing::Anchor::end, true});
  drawing.add(Drawing::Image{0, 0, 8, 8, {.width = 2, .height = 1, .pixels = {1, 2, 3, 4, 5, 6}}});
  const std::string svg = drawing.svg();
  for (const char* fragment :
       {"<rect x=\"1\" y=\"2\" width=\"3.5\" height=\"4\" fill=\"#ff0000\"/>", "<path d=\"M0 1C3 1 6 5 9 5\"",
        "stroke=\"#0080ff\" stroke-width=\"2\" stroke-opacity=\"0.25\"", "text-anchor=\"end\" transform=\"rotate(-90 5 6)\"",
        ">&lt;s&gt; &amp; &quot;</text>", "href=\"data:image/png;base64,iVBOR", "viewBox=\"0 0 20 10\""})
    EXPECT_NE(svg.find(fragment), std::string::npos) << fragment << "\n" << svg;
  EXPECT_TRUE(svg.ends_with("</svg>\n"));
}

TEST(Drawing, refuses_invalid_sizes) {
  expect_error([] { Drawing(0, 5); }, "drawing: 0 x 5 pixels, expected 1 or more");
  expect_error([] { Drawing(1 << 20, 1 << 20).pixels(); }, "drawing: 1048576 x 1048576 pixels, expected at most");
}

}  // namespace
}  // namespace heed::test
