// Images with captions: synthetic scenes, and tables.
#include "heed/data/captions.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "tests/expect_error.h"
#include "tests/io/files.h"

namespace heed::test {
namespace {

TEST(Scenes, captions_describe_the_image) {
  const CaptionedImages scenes = read_captions("scenes:400", DataPart::train), test = read_captions("scenes:400", DataPart::test);
  EXPECT_EQ(scenes.count(), 400);
  EXPECT_EQ(test.count(), 80);
  EXPECT_NE(scenes.captions[0], test.captions[0]);
  EXPECT_GT(std::set<std::string>(scenes.captions.begin(), scenes.captions.end()).size(), 250u);
  int checked = 0;
  for (int64_t i = 0; i < 400; ++i) {  // solid shapes: the colour at the place
    const std::string caption = scenes.captions[static_cast<size_t>(i)];
    for (const char* shape : {" circle at the top left", " square at the top left"}) {
      const size_t found = caption.find(shape);
      if (found == std::string::npos) continue;
      const Image image = scenes.images.image(i);
      ASSERT_EQ(image.width, 48);
      const uint8_t* pixel = &image.pixels[static_cast<size_t>((12 * 48 + 12) * 3)];
      const std::string colour = caption.substr(0, found).substr(caption.substr(0, found).rfind(' ') + 1);
      const auto above = [&](int a, int b, int by) { return pixel[a] > pixel[b] + by; };
      const bool right = colour == "red"     ? above(0, 1, 100) && above(0, 2, 100)
                         : colour == "green" ? above(1, 0, 50) && above(1, 2, 40)
                         : colour == "blue"  ? above(2, 0, 80) && above(2, 1, 60)
                         : colour == "white" ? std::min({pixel[0], pixel[1], pixel[2]}) > 180
                                             : std::max({pixel[0], pixel[1], pixel[2]}) > 120;
      EXPECT_TRUE(right) << caption;
      ++checked;
    }
  }
  EXPECT_GT(checked, 10);
  EXPECT_EQ(read_captions("scenes:40", DataPart::train).images.image(7).pixels, scenes.images.image(7).pixels);
  expect_error<FileError>([] { read_captions("scenes:none", DataPart::train); }, "after the colon, expected the number of images");
}

TEST(Captions, are_read_from_tables) {
  const Folder folder;
  for (const char* name : {"a.png", "b.png"}) write_png(folder / name, read_captions("scenes:1", DataPart::train).images.image(0));
  put(folder / "captions.csv", "image,caption\na.png,one shape\na.png,\"a shape, again\"\nb.png,another\n");
  const CaptionedImages found = read_captions(folder.path().string(), DataPart::train);
  EXPECT_EQ(found.images.count(), 2);
  EXPECT_EQ(found.image_of, (std::vector<int64_t>{0, 0, 1}));
  EXPECT_EQ(found.captions[1], "a shape, again");
  EXPECT_EQ(found.images.image(1).width, 48);
  EXPECT_NE(found.columns.find("image_column=image, caption_column=caption"), std::string::npos);
  EXPECT_TRUE(is_captioned((folder / "captions.csv").string()));
  EXPECT_EQ(read_captions(folder.path().string(), DataPart::test).count(), 0);
  const CaptionedImages second = chosen_images(found, {1});
  EXPECT_EQ(second.captions, (std::vector<std::string>{"another"}));
  EXPECT_EQ(second.image_of, (std::vector<int64_t>{0}));

  put(folder / "twice.csv", "image,caption\na.png,one shape\n" + (folder / "a.png").string() + ",the same\n./a.png,again\n");
  EXPECT_EQ(read_captions((folder / "twice.csv").string(), DataPart::train).image_of, (std::vector<int64_t>{0, 0, 0}));

  std::filesystem::create_directory(folder / "lists");
  put(folder / "lists/train.jsonl", "{\"file_name\": \"b.png\", \"text\": \"first\", \"more\": 1}\n");
  put(folder / "lists/dev.jsonl", "{\"file_name\": \"a.png\", \"text\": \"second\"}\n");
  const std::string lists = (folder / "lists").string();
  EXPECT_EQ(read_captions(lists, DataPart::validation, {}, folder.path()).captions[0], "second");
  EXPECT_EQ(read_captions(lists, DataPart::train, {.image = "file_name", .caption = "more"}, folder.path()).captions[0], "1");
  expect_error<FileError>([&] { read_captions(lists, DataPart::train); }, "lists/train.jsonl: 1 of 1 images have no file:");
  put(folder / "x.tsv", "name\tcaption\na.png\tone\n");
  expect_error<FileError>([&] { read_captions((folder / "x.tsv").string(), DataPart::train); }, "found no column of images");
  put(folder / "y.tsv", "a.png\tone shape\nb.png\t\n");
  expect_error<FileError>([&] { read_captions((folder / "y.tsv").string(), DataPart::train); }, "y.tsv:2: found no caption");
  EXPECT_FALSE(is_captioned((folder / "y.tsv").string()));
  put(folder / "z.csv", "path,text,label\na.png,some text,good\n");
  EXPECT_FALSE(is_captioned((folder / "z.csv").string()));  // labelled texts
}

}  // namespace
}  // namespace heed::test
