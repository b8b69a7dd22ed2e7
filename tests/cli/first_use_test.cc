// The first steps of a new user with typical data: photos of a phone, reviews in a spreadsheet, pairs of sentences. From `heed data look`
// to a report and a prediction.
#include <stdio.h>  // jpeglib.h needs it before

#include <jpeglib.h>

#include <random>

#include "heed/io/json.h"
#include "tests/cli/program.h"
#include "tests/io/image_bytes.h"

namespace heed::test {
namespace {

namespace fs = std::filesystem;

std::string jpeg_of(const Image& image) {
  jpeg_compress_struct state{};
  jpeg_error_mgr errors{};
  state.err = jpeg_std_error(&errors);
  jpeg_create_compress(&state);
  unsigned char* bytes = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&state, &bytes, &size);
  state.image_width = static_cast<JDIMENSION>(image.width);
  state.image_height = static_cast<JDIMENSION>(image.height);
  state.input_components = 3;
  state.in_color_space = JCS_RGB;
  jpeg_set_defaults(&state);
  jpeg_start_compress(&state, TRUE);
  while (state.next_scanline < state.image_height) {
    auto* row = const_cast<uint8_t*>(image.pixels.data()) + 3 * image.width * state.next_scanline;
    jpeg_write_scanlines(&state, &row, 1);
  }
  jpeg_finish_compress(&state);
  const std::string out(reinterpret_cast<const char*>(bytes), size);
  jpeg_destroy_compress(&state);
  std::free(bytes);
  return out;
}

// Stripes of random colour, width and offset.
Image stripes(bool horizontal, int64_t width, int64_t height, std::mt19937& rng) {
  const auto random = [&](int64_t below) { return static_cast<int64_t>(rng() % static_cast<uint64_t>(below)); };
  const int64_t period = 16 + random(10), offset = random(period);
  const std::array<int64_t, 3> dark{random(90), random(90), random(90)}, bright{160 + random(90), 160 + random(90), 160 + random(90)};
  Image out{width, height};
  for (int64_t y = 0; y < height; ++y)
    for (int64_t x = 0; x < width; ++x)
      for (size_t c = 0; c < 3; ++c) {
        const bool is_dark = ((horizontal ? y : x) + offset) % period < period / 2;
        out.pixels.push_back(static_cast<uint8_t>((is_dark ? dark : bright)[c] + random(6)));
      }
  return out;
}

// A photo as phones store it: the pixels of the sensor, and the orientation as a tag. As displayed it has the stripes of its class; as
// stored, half of the photos have those of the other class.
std::string photo(bool horizontal, bool held_upright, std::mt19937& rng) {
  if (!held_upright) return jpeg_of(stripes(horizontal, 120, 90, rng));
  return jpeg_with_exif(jpeg_of(stripes(!horizontal, 120, 90, rng)), exif(6, true));
}

class FirstUse : public testing::Test {
 protected:
  // Fails the test if the command fails. -> its standard output
  std::string works(const std::string& arguments) const {
    const ProgramResult ran = run_heed(arguments);
    EXPECT_EQ(ran.exit_code, 0) << "heed " << arguments << "\n" << ran.out << ran.err;
    return ran.out;
  }
  std::string path(const std::string& name) const { return folder / name; }
  std::string runs() const { return " --runs '" + path("runs") + "'"; }
  const Folder folder;
};

void expect_has(const std::string& text, const std::string& fragment) { EXPECT_NE(text.find(fragment), std::string::npos) << text; }

TEST_F(FirstUse, photos_of_a_phone) {
  const std::string photos = path("photos");
  std::mt19937 rng(5);
  for (const bool horizontal : {true, false}) {
    const fs::path of_class = fs::path(photos) / (horizontal ? "blinds" : "fence");
    fs::create_directories(of_class);
    for (int i = 0; i < 40; ++i) put(of_class / ("IMG_" + std::to_string(i) + ".JPG"), photo(horizontal, i % 2 == 0, rng));
  }
  put(fs::path(photos) / "blinds/broken.jpg", photo(true, true, rng).substr(0, 300));
  put(fs::path(photos) / "fence/empty.jpg", "");
  put(fs::path(photos) / "fence/IMG_99.HEIC", "x");

  const ProgramResult looked = run_heed("data look " + photos);
  EXPECT_EQ(looked.exit_code, 3);
  expect_has(looked.err, "2 of 82 images cannot be read");
  const std::string settings = " patch=16 layers=1 width=32 heads=2 batch=8 epochs=6 pooling=gap rate=2e-3";
  const ProgramResult strict = run_heed("train classify data=" + photos + settings + runs());
  EXPECT_EQ(strict.exit_code, 3);
  expect_has(strict.err, "skip_bad=true");
  const std::string trained = works("train classify skip_bad=true data=" + photos + settings + runs());
  expect_has(trained, "2 of 82 images cannot be read and are left out");
  expect_has(trained, "IMG_99.HEIC");

  const std::string run = path("runs/classify/001");
  expect_has(works("runs" + runs()), "classify/001");
  EXPECT_GT(Json::parse(works("eval " + run + " --part validation --json"))["figures"]["accuracy"].get<double>(), 0.7);
  works("report " + run);
  expect_has(get(fs::path(run) / "report.html"), "</html>");
  for (const bool horizontal : {true, false}) {  // a new photo without rotation
    const std::string file = path("new.jpg"), expected = horizontal ? "blinds" : "fence";
    put(file, photo(horizontal, true, rng));
    expect_has(works("predict " + run + " " + file), expected);
  }
  works("inspect " + run + " " + path("new.jpg") + " --html " + path("attention.html"));
}

TEST_F(FirstUse, reviews_with_unusual_columns) {
  const std::string reviews = path("reviews.csv"), more = path("more.csv"), more_judged = path("judged.csv");
  const char* things[] = {"film", "book", "meal", "game", "song", "trip"};
  // As spreadsheets save tables: a byte order mark, semicolons, quoted line ends, columns that are neither text nor label.
  std::string table =
      "\xef\xbb\xbf"
      "No;Date;Verdict;Comment;Stars\r\n";
  for (int i = 0; i < 120; ++i) {
    const bool good = i % 3 != 0;
    table += std::to_string(i) + ";2026-01-" + std::to_string(10 + i % 20) + ";" + (good ? "liked" : "disliked") + ";\"The " +
             things[i % 6] + ", \"\"again\"\"; was\n" + (good ? "wonderful" : "dreadful") + " to me\";" + std::to_string(good ? 5 : 1) +
             "\r\n";
  }
  put(reviews, table);
  expect_has(works("data look " + reviews + " text_column=Comment label_column=Verdict"), "text_column=Comment, label_column=Verdict");
  const std::string trained =
      works("train sentiment data=" + reviews +
            " text_column=Comment label_column=Verdict layers=1 width=32 heads=2 epochs=12 batch=8 rate=5e-3" + runs());
  expect_has(trained, "text_column=Comment, label_column=Verdict");
  const std::string run = path("runs/sentiment/001");
  EXPECT_GT(Json::parse(works("eval " + run + " --part validation --json"))["figures"]["accuracy"].get<double>(), 0.9);
  works("report " + run);
  put(more, "Comment;Where\nThe soup was dreadful to me;home\nThe view was wonderful to me;hill\n");
  works("predict " + run + " " + more + " -o " + more_judged);
  const std::string judged = get(more_judged);
  expect_has(judged, "home");
  EXPECT_LT(judged.find("disliked"), judged.find("\n", judged.find("home"))) << judged;
}

TEST_F(FirstUse, pairs_of_sentences) {
  const std::string pairs = path("pairs.tsv");
  const std::pair<const char*, const char*> words[] = {{"one", "eins"},  {"two", "zwei"},  {"three", "drei"},  {"four", "vier"},
                                                       {"five", "funf"}, {"six", "sechs"}, {"seven", "sieben"}};
  std::string table;
  for (const auto& [a, b] : words)
    for (const auto& [c, d] : words)
      for (const auto& [e, f] : words) table += std::string(a) + " " + c + " " + e + "\t" + b + " " + d + " " + f + "\n";
  put(pairs, table);
  expect_has(works("data look " + pairs), ": 343 pairs");
  works("train translate data=" + pairs + " layers=1 heads=4 width=64 feed_forward=128 epochs=25 batch=16 rate=3e-3 vocabulary=120" +
        runs());
  const std::string run = path("runs/translate/001");
  EXPECT_GT(Json::parse(works("eval " + run + " --part validation --json"))["figures"]["accuracy"].get<double>(), 0.9);
  works("report " + run);
  EXPECT_EQ(works("translate " + run + " 'two five one'"), "zwei funf eins\n");
}

}  // namespace
}  // namespace heed::test
