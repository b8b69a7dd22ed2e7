// Image files decoded once: what is kept, and what cannot be read.
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
  PictureData read() const { return read_pictures(folder.path(), DataPart::train); }
  const Folder folder;
  const std::function<Picture(const Picture&)> small = [](const Picture& picture) { return resize(picture, 2, 1); };
};

TEST_F(DecodedFiles, bad_ones_are_all_listed_and_left_out) {
  int64_t done = 0;
  const Decoded out = decode_all(read(), {.prepare = small, .most_bytes = 1 << 20, .done = [&](int64_t more) { done += more; }});
  EXPECT_EQ(done, 100);
  EXPECT_EQ(out.data.count(), 96);
  ASSERT_EQ(out.bad.size(), 4u);
  EXPECT_TRUE(out.bad[0].starts_with((folder / "a/107.png").string() + ": found an empty file")) << out.bad[0];
  EXPECT_TRUE(out.bad[3].starts_with((folder / "a/197.png").string() + ": found \"no image\"")) << out.bad[3];
  EXPECT_EQ(out.sizes.size(), 96u);
  EXPECT_EQ(out.sizes[7], (PictureSize{4, 3}));  // number 8 of the files
  EXPECT_EQ(out.data.picture(7).pixels, std::vector<uint8_t>(6, 8));
  EXPECT_TRUE(out.data.name(7).ends_with("108.png"));
}

TEST_F(DecodedFiles, are_read_once_where_they_fit) {
  const Decoded kept = decode_all(read(), {.prepare = small, .most_bytes = 6 * 96}),
                again = decode_all(read(), {.prepare = small, .most_bytes = 6 * 96 - 1});
  EXPECT_EQ(kept.bytes, 6 * 96);
  EXPECT_EQ(again.bytes, 0);
  EXPECT_EQ(again.bad, kept.bad);
  for (int64_t i = 0; i < 96; ++i) EXPECT_EQ(kept.data.picture(i).pixels, again.data.picture(i).pixels);
  std::filesystem::remove_all(folder / "a");
  EXPECT_EQ(kept.data.picture(95).pixels, std::vector<uint8_t>(6, 99));
  EXPECT_THROW(again.data.picture(95), FileError);
}

TEST(Decoded, data_without_files_are_prepared_when_asked_for) {
  const Decoded out =
      decode_all(read_pictures("shapes:10", DataPart::train), {.prepare = [](const Picture& picture) { return resize(picture, 2, 1); }});
  EXPECT_EQ(out.data.count(), 10);
  EXPECT_EQ(out.data.picture(3).width, 2);
  EXPECT_TRUE(out.bad.empty());
}

}  // namespace
}  // namespace heed::test
