// Image preprocessing against the processors of `transformers` (tests/fixtures/make_images.py).
#include "heed/models/image_processor.h"

#include "heed/core/parallel.h"
#include "heed/models/config.h"
#include "heed/models/model.h"
#include "tests/expect_error.h"
#include "tests/io/files.h"
#include "tests/structure/source.h"

namespace heed::test {
namespace {

const Path kImages = kFixtures / "images";

ImageProcessor reader(const std::string& json, const std::string& processor = "ViT") {
  return ImageProcessor(Config(parse_json("held", json), "held"), {.processor = processor});
}

Shape shape_of(const ImageProcessor& read, int64_t width, int64_t height) {
  return read(Image{width, height, std::vector<uint8_t>(static_cast<size_t>(width * height * 3))}).shape();
}

// example begins
Tensor scores(const Path& folder, const Path& image) {
  const Model model = load(folder);
  const ImageProcessor read(folder);                                  // preprocessor_config.json
  const Tensor pixels = read(std::vector<Image>{read_image(image)});  // (1, 3, height, width)
  return model({{"pixel_values", pixels}}).at("logits");
}
// example ends

TEST(ImageProcessor, works_as_its_page_shows) {
  EXPECT_EQ(scores(kFixtures / "vit-classify", kImages / "color.jpg").size(0), 1);
  EXPECT_NE(read_source("docs/images.md").find(shown_example("tests/models/image_processor_test.cc")), std::string::npos);
}

TEST(ImageProcessor, matches_the_processors_of_transformers) {
  const Safetensors expected = Safetensors::open(kImages / "expected.safetensors");
  const Json cases = read_json(kImages / "processors.json");
  EXPECT_EQ(cases.size(), 7u);
  for (const auto& [name, entry] : cases.items()) {
    SCOPED_TRACE(name);
    const ImageProcessor read(Config(entry["config"], "held"));
    expect_same(read(read_image(kImages / entry["image"].get<std::string>())), expected.tensor("process/" + name));
  }
}

TEST(ImageProcessor, has_the_defaults_of_each_class) {
  for (const char* name : {"ViTImageProcessor", "ViTImageProcessorFast", "ViTImageProcessorPil"})
    EXPECT_EQ(shape_of(reader(std::string(R"({"image_processor_type": ")") + name + "\"}"), 30, 20), (Shape{3, 224, 224}));
  EXPECT_EQ(shape_of(reader(R"({"feature_extractor_type": "ViTFeatureExtractor", "size": 9})"), 30, 20), (Shape{3, 9, 9}));
  EXPECT_EQ(shape_of(reader(R"({"feature_extractor_type": "DeiTFeatureExtractor"})"), 30, 20), (Shape{3, 224, 224}));
  EXPECT_EQ(shape_of(reader(R"({"image_processor_type": "DeiTImageProcessor", "do_center_crop": false})"), 30, 20), (Shape{3, 256, 256}));
  EXPECT_EQ(shape_of(reader(R"({"do_center_crop": null})", "DeiT"), 30, 20), (Shape{3, 224, 224}));
  EXPECT_EQ(shape_of(reader(R"({"size": 7, "default_to_square": false})"), 30, 20), (Shape{3, 7, 10}));
  EXPECT_EQ(shape_of(reader(R"({"size": [7, 5]})"), 30, 20), (Shape{3, 7, 5}));
  EXPECT_EQ(shape_of(reader(R"({"size": {"shortest_edge": 5, "longest_edge": null}})"), 30, 20), (Shape{3, 5, 7}));
  const Image white{2, 2, std::vector<uint8_t>(12, 255)};
  EXPECT_EQ(reader(R"({"size": 1})")(white).to_vector<float>(), (std::vector<float>{1, 1, 1}));
  EXPECT_EQ(reader(R"({"size": 1, "do_rescale": false, "do_normalize": false})")(white).to_vector<float>(),
            (std::vector<float>{255, 255, 255}));
}

// ResNet's: small sizes are the centre of a larger image, large ones the whole image.
TEST(ImageProcessor, crops_a_share_as_that_of_convnext) {
  const Image color = read_image(kImages / "color.png");
  const auto convnext = [](const std::string& keys) {
    return reader(R"({"feature_extractor_type": "ConvNextFeatureExtractor")" + keys + "}");
  };
  const Tensor expected = reader(R"({"size": {"shortest_edge": 8}, "crop_size": 7, "do_center_crop": true, "resample": 3})")(color);
  for (const char* size : {"7", R"({"shortest_edge": 7})"}) expect_same(convnext(R"(, "size": )" + std::string(size))(color), expected);
  expect_same(convnext(R"(, "size": 8, "crop_pct": 0.5, "resample": 2)")(color),
              reader(R"({"size": {"shortest_edge": 16}, "crop_size": 8, "do_center_crop": true})")(color));
  EXPECT_EQ(shape_of(convnext(""), 30, 20), (Shape{3, 384, 384}));
  EXPECT_EQ(convnext("").description(), "resized to 384 x 384");
  EXPECT_EQ(shape_of(convnext(R"(, "do_resize": false)"), 30, 20), (Shape{3, 20, 30}));
  EXPECT_EQ(shape_of(reader(R"({"size": 7})", "ConvNext"), 30, 20), (Shape{3, 7, 7}));
  expect_refused([&] { convnext(R"(, "size": {"height": 5, "width": 6})"); }, "held: size is ");
  expect_refused([&] { convnext(R"(, "crop_pct": 0)"); }, "held: crop_pct is ");
  expect_refused([&] { convnext(R"(, "do_center_crop": true)"); }, "held: do_center_crop is ");
}

TEST(ImageProcessor, may_be_a_part_of_processor_config) {
  const Folder folder;
  put(folder / "config.json", R"({"model_type": "clip", "vision_config": {"image_size": 8}})");
  put(folder / "preprocessor_config.json", R"({"size": 4, "crop_size": 4})");
  put(folder / "processor_config.json", R"({"processor_class": "CLIPProcessor"})");
  EXPECT_EQ(shape_of(ImageProcessor(folder.path()), 30, 20), (Shape{3, 4, 4}));
  put(folder / "processor_config.json", R"({"image_processor": {"size": {"shortest_edge": 8}, "crop_size": 8, "resample": 2}})");
  const Image color = read_image(kImages / "color.png");
  expect_same(ImageProcessor(folder.path())(color), reader(R"({"size": 8, "crop_size": 8, "resample": 2})", "CLIP")(color));
  put(folder / "processor_config.json", R"({"image_processor": {"size": "large"}})");
  expect_refused([&] { ImageProcessor{folder.path()}; }, "processor_config.json: image_processor.size is ");
}

TEST(ImageProcessor, reads_the_folder_of_a_model) {
  const Folder folder;
  expect_refused([&] { ImageProcessor{folder.path()}; }, "config.json: there is no such file");
  put(folder / "config.json", R"({"model_type": "deit", "image_size": [6, 8]})");
  EXPECT_EQ(shape_of(ImageProcessor(folder.path()), 30, 20), (Shape{3, 6, 8}));
  put(folder / "preprocessor_config.json", R"({"crop_size": 5})");
  EXPECT_EQ(shape_of(ImageProcessor(folder.path()), 30, 20), (Shape{3, 5, 5}));
  put(folder / "preprocessor_config.json", R"({"size": "large"})");
  expect_refused([&] { ImageProcessor{folder.path()}; }, "preprocessor_config.json: size is ");
  std::filesystem::remove(folder / "preprocessor_config.json");
  put(folder / "config.json", R"({"num_channels": 2})");
  expect_refused([&] { ImageProcessor{folder.path()}; }, "config.json: num_channels is \"2\", expected 3");
}

TEST(ImageProcessor, makes_batches_with_the_same_bits) {
  std::vector<Image> images;
  for (const char* name : {"color.png", "color.jpg", "noise.png", "gray.png"}) images.push_back(read_image(kImages / name));
  images.push_back(resize(images[0], 31, 90));
  const ImageProcessor read = reader(R"({"size": 20, "resample": 3})");
  const int before = thread_count();
  for (const int threads : {1, 2, 7}) {
    set_thread_count(threads);
    const Tensor all = read(images);
    EXPECT_EQ(all.shape(), (Shape{5, 3, 20, 20}));
    for (int64_t b = 0; b < 5; ++b) expect_same(all.view({3, 20, 20}, {400, 20, 1}, b * 1200), read(images[static_cast<size_t>(b)]));
  }
  set_thread_count(before);
  const ImageProcessor shorter = reader(R"({"size": {"shortest_edge": 20}})");
  EXPECT_EQ(shorter(std::span(images).first(4)).shape(), (Shape{4, 3, 20, 26}));
  expect_error([&] { shorter(images); }, "images: number 4 is resized to 20 x 58 pixels, number 0 to 26 x 20");
  expect_error([&] { read(std::span<const Image>()); }, "images: found none");
  expect_error([&] { read(Image{}); }, "images: found 0 x 0 pixels");
  expect_refused([&] { shape_of(reader(R"({"size": {"shortest_edge": 400}})"), 1, 5000000); }, "images: 1 x 5000000 pixels would become");
}

TEST(ImageProcessor, shows_what_the_model_sees) {
  const Image color = read_image(kImages / "color.png");
  const Image seen = reader(R"({"size": {"shortest_edge": 7}, "crop_size": 5, "do_center_crop": true})").prepared(color);
  EXPECT_EQ(seen.pixels, center_crop(resize(color, 9, 7), 5, 5).pixels);
}

TEST(ImageProcessor, fits_images_into_a_frame) {
  const ImageProcessor fitting = reader(R"({"size": {"max_height": 8, "max_width": 12}})");
  EXPECT_EQ(shape_of(fitting, 40, 20), (Shape{3, 6, 12}));
  EXPECT_EQ(shape_of(fitting, 20, 40), (Shape{3, 8, 4}));
  EXPECT_EQ(shape_of(fitting, 3, 2), (Shape{3, 8, 12}));
  EXPECT_EQ(shape_of(fitting, 4096, 1), (Shape{3, 1, 12}));
  const ImageProcessor padding = reader(
      R"({"size": {"max_height": 8, "max_width": 12}, "do_center_crop": true, "crop_size": {"height": 8, "width": 12}, "resample": 0})");
  const Image seen = padding.prepared({2, 4, std::vector<uint8_t>(24, 200)});  // becomes 4 x 8, with 4 columns of black on each side
  EXPECT_EQ(seen.width, 12);
  EXPECT_EQ(seen.height, 8);
  for (int64_t i = 0; i < 12 * 8; ++i) EXPECT_EQ(seen.pixels[static_cast<size_t>(3 * i)], i % 12 >= 4 && i % 12 < 8 ? 200 : 0) << i;
}

TEST(ImageProcessor, normalizes_prepared_images_alone) {
  // The crop of an image must not be resized and cropped again.
  const ImageProcessor read = reader(R"({"size": {"shortest_edge": 9}, "crop_size": 5, "do_center_crop": true})");
  const Image seen = read.prepared(read_image(kImages / "color.png"));
  expect_same(read.normalized(std::span(&seen, 1)), read(std::vector{read_image(kImages / "color.png")}));
  EXPECT_THROW(read.normalized(std::vector{seen, resize(seen, 4, 5)}), Error);
}

TEST(ImageProcessor, describes_itself) {
  EXPECT_EQ(reader(R"({"size": {"height": 6, "width": 9}})").description(), "resized to 9 x 6");
  EXPECT_EQ(reader(R"({"size": {"shortest_edge": 9}, "crop_size": 5, "do_center_crop": true})").description(),
            "shorter side resized to 9, then the centre of 5 x 5");
  EXPECT_EQ(reader(R"({"size": {"max_height": 6, "max_width": 9}, "crop_size": {"height": 6, "width": 9}, "do_center_crop": true})")
                .description(),
            "resized to fit into 9 x 6, then padded with black to 9 x 6");
  EXPECT_EQ(reader(R"({"do_resize": false})").description(), "in their original size");
}

TEST(ImageProcessor, refuses_unsupported_settings) {
  const struct {
    const char *json, *fragment;
  } bad[] = {
      {"[]", "held: found \"[]\", expected a JSON object"},
      {R"({"image_processor_type": "BeitImageProcessor"})",
       "held: image_processor_type is \"BeitImageProcessor\", expected a ViT, DeiT, CLIP, Bit or ConvNext image processor"},
      {R"({"feature_extractor_type": 3})", "held: feature_extractor_type is \"3\", expected a string"},
      {R"({"size": 0})", "held: size is \"0\", expected a whole number of 1 or more"},
      {R"({"size": -5})", "held: size is \"-5\""},
      {R"({"size": 1.5})", "held: size is \"1.5\""},
      {R"({"size": 1000000000000000000000})", "held: size is "},
      {R"({"size": 20000})", "held: size is \"20000\", expected at most 178956970 pixels"},
      {R"({"size": {"shortest_edge": 20000}})", "held: size is "},
      {R"({"size": []})", "held: size is "},
      {R"({"size": [1, 2, 3]})", "held: size is \"[1,2,3]\", expected a height and a width"},
      {R"({"size": {"height": 5}})", "expected height and width, max_height and max_width, or shortest_edge alone"},
      {R"({"size": {"height": 5, "width": "a"}})", "held: size.width is \"a\""},
      {R"({"size": {"height": 0, "width": 4}})", "held: size.height is \"0\""},
      {R"({"size": {"shortest_edge": 5, "longest_edge": 9}})",
       "expected height and width, max_height and max_width, or shortest_edge alone"},
      {R"({"size": {"max_height": 20000, "max_width": 20000}})", "held: size is "},
      {R"({"do_center_crop": true, "crop_size": {"max_height": 5, "max_width": 9}})", "held: crop_size is "},
      {R"({"do_center_crop": true})", "held: crop_size is absent, expected a height and a width"},
      {R"({"do_center_crop": true, "crop_size": {"shortest_edge": 3}})", "held: crop_size is "},
      {R"({"do_center_crop": 1})", "held: do_center_crop is \"1\", expected true or false"},
      {R"({"resample": 6})", "held: resample is \"6\", expected the number of a filter, from 0 to 5"},
      {R"({"resample": -1})", "held: resample is \"-1\""},
      {R"({"rescale_factor": "x"})", "held: rescale_factor is "},
      {R"({"image_mean": [0.5, 0.5]})", "held: image_mean is \"[0.5,0.5]\", expected 3 numbers"},
      {R"({"image_mean": "half"})", "held: image_mean is "},
      {R"({"image_std": [0.5, 0, 0.5]})", "held: image_std is \"[0.5,0,0.5]\", expected numbers other than 0"},
      {R"({"image_std": [0.5, 1e300, 0.5]})", "held: image_std[1] is "},
      {R"({"do_pad": true})", "held: do_pad is \"true\", expected false"},
      {R"({"data_format": "channels_last"})", "held: data_format is "},
      {R"({"do_flip_channel_order": true})", "held: do_flip_channel_order is \"true\", expected a step that heed supports"},
  };
  for (const auto& c : bad) {
    SCOPED_TRACE(c.json);
    expect_refused([&] { reader(c.json); }, c.fragment);
  }
  reader(
      R"({"do_pad": false, "do_flip_channel_order": false, "do_convert_rgb": true, "processor_class": "X", "data_format": "channels_first"})");
}

}  // namespace
}  // namespace heed::test
