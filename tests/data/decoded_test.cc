// decode_images: caching, and unreadable files.
#include "heed/data/decoded.h"

#include "heed/io/resize.h"
#include "tests/io/files.h"

namespace heed::test {
namespace {

class DecodedFiles : public testing::Test {
 protected:
  DecodedFiles() {
    std::filesystem::create_directories(folder / "a");
    for (int i = 0; i < 100; ++i) {
      const std::string name = "a/" + std::to_string(100 + i) + ".png";
      if (i % 30 == 7)
        put(folder / name, i % 60 == 7 ? "" : "no image");
      else
        write_png(folder / name, {4 + i % 2, 3, std::vector<uint8_t>(static_cast<size_t>(9 * (4 + i % 2)), static_cast<uint8_t>(i))});
    }
  }
  ImageData read() const { return read_images(folder.path(), DataPart::train); }
  const Folder folder;
  const std::function<Image(const Image&)> small = [](const Image& image) { return resize(image, 2, 1); };
};

TEST_F(DecodedFiles, unreadable_files_are_listed_and_left_out) {
  int64_t done = 0;
  const DecodedImages out = decode_images(read(), {.prepare = small, .max_bytes = 1 << 20, .done = [&](int64_t more) { done += more; }});
  EXPECT_EQ(done, 100);
  EXPECT_EQ(out.data.count(), 96);
  ASSERT_EQ(out.bad.size(), 4u);
  EXPECT_TRUE(out.bad[0].starts_with((folder / "a/107.png").string() + ": found an empty file")) << out.bad[0];
  EXPECT_TRUE(out.bad[3].starts_with((folder / "a/197.png").string() + ": found \"no image\"")) << out.bad[3];
  EXPECT_EQ(out.sizes.size(), 96u);
  EXPECT_EQ(out.sizes[7], (ImageSize{4, 3}));  // number 8 of the files
  EXPECT_EQ(out.data.image(7).pixels, std::vector<uint8_t>(6, 8));
  EXPECT_TRUE(out.data.name(7).ends_with("108.png"));
}

TEST_F(DecodedFiles, are_cached_if_they_fit) {
  const DecodedImages cached = decode_images(read(), {.prepare = small, .max_bytes = 6 * 96}),
                      again = decode_images(read(), {.prepare = small, .max_bytes = 6 * 96 - 1});
  EXPECT_EQ(cached.bytes, 6 * 96);
  EXPECT_EQ(again.bytes, 0);
  EXPECT_EQ(again.bad, cached.bad);
  for (int64_t i = 0; i < 96; ++i) EXPECT_EQ(cached.data.image(i).pixels, again.data.image(i).pixels);
  std::filesystem::remove_all(folder / "a");
  EXPECT_EQ(cached.data.image(95).pixels, std::vector<uint8_t>(6, 99));
  EXPECT_THROW(again.data.image(95), FileError);
}

TEST(DecodedImages, data_without_files_is_prepared_on_access) {
  const DecodedImages out =
      decode_images(read_images("shapes:10", DataPart::train), {.prepare = [](const Image& image) { return resize(image, 2, 1); }});
  EXPECT_EQ(out.data.count(), 10);
  EXPECT_EQ(out.data.image(3).width, 2);
  EXPECT_TRUE(out.bad.empty());
}

}  // namespace
}  // namespace heed::test
