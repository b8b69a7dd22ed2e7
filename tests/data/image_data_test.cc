// Images of all supported formats, from small files written here, and errors in bad ones.
#include "heed/data/image_data.h"

#include <atomic>
#include <set>

#include "heed/core/parallel.h"
#include "heed/data/shapes.h"
#include "tests/data/idx_files.h"
#include "tests/io/files.h"

namespace heed::test {
namespace {

using Labels = std::vector<int64_t>;
using Names = std::vector<std::string>;

// Byte b of the image in record `number`; identifies its position.
char byte_at(int64_t number, int64_t b) { return static_cast<char>((number * 101 + b * 7 + b / 256) & 255); }

std::string record(const std::string& labels, int64_t number) {
  std::string out = labels;
  for (int64_t b = 0; b < 3072; ++b) out += byte_at(number, b);
  return out;
}

void expect_planes(const Image& image, int64_t number) {
  ASSERT_EQ(image.width, 32);
  ASSERT_EQ(image.height, 32);
  ASSERT_EQ(image.pixels.size(), 3072u);
  for (int64_t y = 0; y < 32; ++y)
    for (int64_t x = 0; x < 32; ++x)
      for (int64_t colour = 0; colour < 3; ++colour)
        ASSERT_EQ(static_cast<char>(image.pixels[static_cast<size_t>((y * 32 + x) * 3 + colour)]),
                  byte_at(number, colour * 1024 + y * 32 + x));
}

Image plain(int64_t width, int64_t height, uint8_t grey) {
  return {width, height, std::vector<uint8_t>(static_cast<size_t>(3 * width * height), grey)};
}

class ImageSources : public testing::Test {
 protected:
  void put(const std::string& name, const std::string& bytes) const {
    std::filesystem::create_directories((folder / name).parent_path());
    test::put(folder / name, bytes);
  }
  void image(const std::string& name, int64_t width = 3, uint8_t grey = 7) const { put(name, png_bytes(plain(width, 2, grey))); }
  ImageData read(DataPart part = DataPart::train) const { return read_images(folder.path(), part); }
  void refused(const std::string& fragment, DataPart part = DataPart::train) const {
    expect_refused([&] { read(part); }, fragment);
  }
  const Folder folder;
};

TEST_F(ImageSources, cifar_10_is_read_from_all_its_files) {
  put("data_batch_2.bin", record("\x09", 2));
  put("data_batch_1.bin", record(std::string(1, '\0'), 0) + record("\x03", 1));
  put("test_batch.bin", record("\x05", 9));
  const ImageData train = read(), test = read(DataPart::test);
  EXPECT_EQ(train.labels, (Labels{0, 3, 9}));
  EXPECT_EQ(test.labels, Labels{5});
  EXPECT_EQ(read(DataPart::validation).count(), 0);
  for (int64_t i = 0; i < 3; ++i) expect_planes(train.image(i), i);
  expect_planes(test.image(0), 9);
  EXPECT_EQ(train.classes[3], "cat");
  EXPECT_TRUE(train.name(2).ends_with("data_batch_2.bin: image 0")) << train.name(2);
  EXPECT_THROW(train.image(3), Error);

  put("batches.meta.txt", "a\nb\r\nc\nd\ne\nf\ng\nh\ni\nj\n\n");
  EXPECT_EQ(read().classes, (Names{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j"}));
  put("batches.meta.txt", "a\nb\n");
  refused("batches.meta.txt: found 2 names, expected 10");
}

TEST_F(ImageSources, cifar_100_counts_fine_labels) {
  put("train.bin", record("\x01\x63", 4));
  const ImageData train = read();
  EXPECT_EQ(train.labels, Labels{99});
  EXPECT_EQ(train.classes.size(), 100u);
  EXPECT_EQ(train.classes[99], "99");
  expect_planes(train.image(0), 4);
  EXPECT_EQ(read(DataPart::test).count(), 0);
}

TEST_F(ImageSources, damaged_cifar_is_refused) {
  put("test_batch.bin", record("\x05", 9));
  put("data_batch_1.bin", record("\x03", 1) + "x");
  refused("data_batch_1.bin: found 3074 bytes, expected a multiple of 3073, which is one image of CIFAR-10");
  put("data_batch_1.bin", "");
  EXPECT_THROW(read(), FileError);
  put("data_batch_1.bin", record("\x03", 1) + record("\x0a", 1));
  refused("data_batch_1.bin: image 1 has label 10, expected one below 10");
  EXPECT_EQ(read(DataPart::test).count(), 1);
}

TEST_F(ImageSources, idx_is_read_plain_and_compressed) {
  put("train-images-idx3-ubyte.gz", packed(idx_bytes({2, 2, 3}, "abcdefABCDEF")));
  put("train-labels-idx1-ubyte", idx_bytes({2}, std::string("\x04\x00", 2)));
  put("t10k-images.idx3-ubyte", idx_bytes({1, 1, 1}, "z"));
  put("t10k-labels-idx1-ubyte.gz", packed(idx_bytes({1}, "\x09")));
  const ImageData train = read(), test = read(DataPart::test);
  EXPECT_EQ(train.labels, (Labels{4, 0}));
  EXPECT_EQ(test.labels, Labels{9});
  EXPECT_EQ(read(DataPart::validation).count(), 0);
  const Image second = train.image(1);
  EXPECT_EQ(second.width, 3);
  EXPECT_EQ(second.height, 2);
  EXPECT_EQ(std::string(second.pixels.begin(), second.pixels.end()), "AAABBBCCCDDDEEEFFF");
  EXPECT_EQ(train.classes, (Names{"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"}));
  put("labels.txt", "no\nyes\n");
  refused("train-labels-idx1-ubyte: image 0 has label 4, expected one below 2");
}

TEST_F(ImageSources, fashion_mnist_has_class_names) {
  put("my-Fashion-set/train-images-idx3-ubyte", idx_bytes({1, 1, 1}, "z"));
  put("my-Fashion-set/train-labels-idx1-ubyte", idx_bytes({1}, "\x09"));
  for (const char* end : {"", "/"})
    EXPECT_EQ(read_images((folder / "my-Fashion-set").string() + end, DataPart::train).classes[9], "Ankle boot");
}

TEST_F(ImageSources, idx_files_with_different_sizes_are_refused) {
  put("train-images-idx3-ubyte", idx_bytes({2, 1, 1}, "ab"));
  refused("found no labels next to it, expected train-labels-idx1-ubyte");
  put("train-labels-idx1-ubyte", idx_bytes({3}, "\x01\x01\x01"));
  refused("train-labels-idx1-ubyte: found the sizes (3), expected (2)");
  put("train-labels-idx1-ubyte", idx_bytes({2}, "\x01\x01"));
  put("train-images-idx3-ubyte", idx_bytes({2, 1}, "ab"));
  refused("train-images-idx3-ubyte: found the sizes (2, 1), expected (images, rows, columns)");
}

TEST_F(ImageSources, each_folder_is_a_class) {
  image("dog/2.png", 4);
  image("dog/1.PNG", 5);
  image("ant/deep/x.png", 6);
  put("dog/notes.txt", "no image");
  put("ant/.hidden/no", "");
  const ImageData all = read();
  EXPECT_EQ(all.classes, (Names{"ant", "dog"}));
  EXPECT_EQ(all.labels, (Labels{0, 1, 1}));
  EXPECT_EQ(all.image(0).width, 6);
  EXPECT_EQ(all.image(1).width, 5);
  EXPECT_EQ(all.image(2).width, 4);
  EXPECT_EQ(all.name(2), folder / "dog/2.png");
  EXPECT_EQ(read(DataPart::validation).count(), 0);
  EXPECT_EQ(read(DataPart::test).count(), 0);
}

TEST_F(ImageSources, skipped_files_are_listed) {
  image("dog/1.png");
  EXPECT_TRUE(read().notes.empty());
  put("dog/2.heic", "x");
  put("ant/deep/3.gif", "x");
  image("ant/4.png");
  put("ant/.DS_Store", "x");
  image("outside.png");
  const std::vector<std::string> notes = read().notes;
  ASSERT_EQ(notes.size(), 2u);
  EXPECT_EQ(notes[0], "2 files were skipped: " + (folder / "ant/deep/3.gif").string() + ", " + (folder / "dog/2.heic").string() +
                          " (heed reads PNG, JPEG, WebP or BMP)");
  EXPECT_EQ(notes[1], "1 image in " + folder.path().string() + " was skipped, because it is in no class folder: outside.png");
  EXPECT_EQ(chosen(read(), {0}).notes, notes);
}

TEST_F(ImageSources, names_can_be_invalid_utf8) {
  image("caf\xe9/\xff.png", 5);
  image("cafe/1.png", 4);
  const ImageData all = read();
  EXPECT_EQ(all.classes, (Names{"cafe", "caf\\xe9"}));
  EXPECT_EQ(all.image(1).width, 5);
  EXPECT_TRUE(all.name(1).ends_with("/caf\\xe9/\\xff.png")) << all.name(1);
  EXPECT_EQ(all.size(1), (ImageSize{5, 2}));
}

TEST_F(ImageSources, parts_are_folders_above_classes) {
  image("train/b/1.png");
  image("train/a/1.png");
  image("val/b/1.png");
  EXPECT_EQ(read().labels, (Labels{0, 1}));
  EXPECT_EQ(read(DataPart::validation).labels, Labels{1});
  EXPECT_EQ(read(DataPart::validation).classes, (Names{"a", "b"}));
  EXPECT_EQ(read(DataPart::test).count(), 0);
  image("test/c/1.png");
  refused("test/c: found a class that", DataPart::test);
}

TEST_F(ImageSources, parts_have_several_names) {
  image("Train/a/1.png");
  image("Valid/a/1.png");
  image("holdout/a/1.png");
  EXPECT_EQ(read().classes, Names{"a"});
  EXPECT_EQ(read(DataPart::validation).count(), 1);
  const std::string note =
      "these folders in " + folder.path().string() + " are neither train, validation nor test, and were skipped: holdout";
  EXPECT_EQ(read().notes, Names{note});
  EXPECT_TRUE(read(DataPart::validation).notes.empty());
}

TEST_F(ImageSources, a_class_can_be_named_train) {
  image("bus/1.png");
  image("train/1.png");
  EXPECT_EQ(read().classes, (Names{"bus", "train"}));
}

TEST_F(ImageSources, invalid_folders_are_refused) {
  refused("found no folders in it, expected one folder of image files per class");
  image("b/1.png");
  std::filesystem::create_directories(folder / "a");
  refused("/a: found no images in the folder, expected files with .png, .jpg, .jpeg, .webp or .bmp");
  put("a/1.heic", "x");
  refused("or .bmp; 1 file was skipped: ");
  put("a/1.png", "no image at all");
  const ImageData all = read();
  expect_refused([&] { all.image(0); }, "a/1.png: found \"no image");
  EXPECT_EQ(all.image(1).width, 3);
  expect_refused([&] { read_images(folder / "b/1.png", DataPart::train); }, "1.png: found a file, expected a folder");
  expect_refused([] { read_images("shape", DataPart::train); }, "did you mean 'shapes'?");
}

TEST_F(ImageSources, subsets_keep_the_order_of_their_indices) {
  put("train-images-idx3-ubyte", idx_bytes({3, 1, 1}, "abc"));
  put("train-labels-idx1-ubyte", idx_bytes({3}, "\x01\x02\x03"));
  const ImageData some = chosen(chosen(read(), {2, 0, 2}), {1, 2});
  EXPECT_EQ(some.labels, (Labels{1, 3}));
  EXPECT_EQ(some.image(0).pixels[0], 'a');
  EXPECT_EQ(some.image(1).pixels[0], 'c');
  EXPECT_TRUE(some.name(1).ends_with("image 2"));
  EXPECT_THROW(chosen(read(), {3}), Error);
  EXPECT_THROW(chosen(read(), {-1}), Error);
}

TEST(Shapes, are_balanced_and_distinct) {
  const ImageData train = read_images("shapes:203", DataPart::train), test = read_images("shapes:203", DataPart::test);
  EXPECT_EQ(train.count(), 203);
  EXPECT_EQ(test.count(), 40);
  EXPECT_GE(train.classes.size(), 8u);
  EXPECT_EQ(train.classes, test.classes);
  std::vector<int64_t> counts(train.classes.size());
  for (const int64_t label : train.labels) ++counts.at(static_cast<size_t>(label));
  EXPECT_LE(*std::max_element(counts.begin(), counts.end()) - *std::min_element(counts.begin(), counts.end()), 1);
  std::set<std::vector<uint8_t>> seen;
  for (int64_t i = 0; i < 40; ++i) {
    EXPECT_TRUE(seen.insert(train.image(i).pixels).second) << i;
    EXPECT_TRUE(seen.insert(test.image(i).pixels).second) << i;
  }
}

TEST(Shapes, depend_only_on_seed_and_index) {
  const ImageData few = synthetic_shapes({.count = 30, .side = 33, .seed = 5}),
                  more = synthetic_shapes({.count = 60, .side = 33, .seed = 5});
  std::atomic<int> same = 0;
  parallel_tasks(30, [&](int64_t i) { same += few.image(29 - i).pixels == more.image(29 - i).pixels; });
  EXPECT_EQ(same, 30);
  EXPECT_EQ(few.image(0).width, 33);
  EXPECT_EQ(few.image(0).pixels.size(), 33u * 33 * 3);
  EXPECT_THROW(few.image(30), Error);
}

// Some part of each image differs clearly from the colour of its corner.
TEST(Shapes, contrast_with_the_background) {
  const ImageData data = synthetic_shapes({.count = 200});
  int64_t distinct = 0;
  for (int64_t i = 0; i < 200; ++i) {
    const Image image = data.image(i);
    std::vector<std::array<int, 3>> means;  // of squares of 4 x 4 pixels
    for (int64_t y = 0; y < 32; y += 4)
      for (int64_t x = 0; x < 32; x += 4) {
        std::array<int, 3> sum{};
        for (int64_t b = 0; b < 16; ++b)
          for (size_t colour = 0; colour < 3; ++colour)
            sum[colour] += image.pixels[static_cast<size_t>(((y + b / 4) * 32 + x + b % 4) * 3) + colour];
        means.push_back(sum);
      }
    int max_difference = 0;
    for (const auto& a : means)
      max_difference = std::max(max_difference, std::abs(a[0] - means[0][0]) + std::abs(a[1] - means[0][1]) + std::abs(a[2] - means[0][2]));
    distinct += max_difference > 16 * 80;
  }
  EXPECT_GE(distinct, 190);
}

TEST(Shapes, invalid_counts_are_refused) {
  for (const char* where : {"shapes:", "shapes:x", "shapes:0", "shapes:-3", "shapes:5x", "shapes:99999999999999999999"})
    expect_refused([&] { read_images(where, DataPart::train); }, "after the colon, expected the number of images");
}

}  // namespace
}  // namespace heed::test
