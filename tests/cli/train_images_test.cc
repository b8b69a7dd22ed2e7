// heed train classify on folders of image files: sizes, bad files, skipped files, older runs.
#include "heed/data/image_data.h"
#include "heed/io/json.h"
#include "heed/models/image_processor.h"
#include "tests/cli/program.h"
#include "tests/io/image_bytes.h"

namespace heed::test {
namespace {

class TrainImages : public testing::Test {
 protected:
  // Six images of two classes, of several sizes.
  TrainImages() {
    for (const char* name : {"set/cat", "set/dog"}) std::filesystem::create_directories(folder / name);
    for (int i = 0; i < 6; ++i) {
      const int64_t width = 40 + 7 * i, height = 70 - 5 * i;
      Image image{width, height};
      for (int64_t p = 0; p < 3 * width * height; ++p) image.pixels.push_back(static_cast<uint8_t>(p * (i + 3) + p / width));
      write_png(folder / (std::string(i % 2 ? "set/dog/" : "set/cat/") + std::to_string(i) + ".png"), image);
    }
  }
  ProgramResult train(const std::string& settings) const {
    return run_heed("train classify data='" + set() + "' layers=1 width=16 heads=2 patch=8 batch=2 epochs=1 --runs '" +
                    folder.path().string() + "/runs' " + settings);
  }
  std::string set() const { return folder / "set"; }
  Path run(const std::string& name = "001") const { return folder / ("runs/classify/" + name); }
  const Folder folder;
};

TEST_F(TrainImages, the_size_is_chosen_printed_and_stored) {
  const ProgramResult ran = train("");
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  const std::string note =
      "images: shorter side resized to 48, then the centre of 48 x 48 pixels (width x height), chosen from the data with median ";
  EXPECT_NE(ran.out.find(note), std::string::npos) << ran.out;
  EXPECT_NE(get(run() / "log.txt").find(note), std::string::npos);
  const std::string toml = get(run() / "config.toml");
  EXPECT_NE(toml.find("image = \"48\""), std::string::npos) << toml;
  EXPECT_NE(toml.find("resize = \"crop\""), std::string::npos);
  EXPECT_EQ(read_json(run() / "best/config.json")["image_size"], 48);
  const Json keys = read_json(run() / "best/preprocessor_config.json");
  EXPECT_EQ(keys["size"], (Json{{"shortest_edge", 48}}));
  EXPECT_EQ(keys["crop_size"], (Json{{"height", 48}, {"width", 48}}));

  // Prediction preprocesses images as training does.
  const ImageProcessor processor(run() / "best");
  const Image image = read_image(folder / "set/dog/5.png");  // 75 x 45
  EXPECT_EQ(processor.prepared(image).pixels, center_crop(resize(image, 80, 48), 48, 48).pixels);
  EXPECT_EQ(run_heed("eval " + (run() / "best").string() + " " + set()).exit_code, 0);
  const ProgramResult by_its_data = run_heed("eval " + run().string());
  EXPECT_EQ(by_its_data.exit_code, 0) << by_its_data.err;
  const std::string weights = get(run() / "last/model.safetensors");
  EXPECT_EQ(run_heed("train --resume " + run().string()).exit_code, 0);
  EXPECT_EQ(get(run() / "last/model.safetensors"), weights);
}

TEST_F(TrainImages, the_size_can_be_set) {
  ASSERT_EQ(train("image=24x16 resize=pad").exit_code, 0);
  EXPECT_EQ(read_json(run() / "best/config.json")["image_size"], (Json{16, 24}));
  const Json keys = read_json(run() / "best/preprocessor_config.json");
  EXPECT_EQ(keys["size"], (Json{{"max_height", 16}, {"max_width", 24}}));
  EXPECT_EQ(keys["crop_size"], (Json{{"height", 16}, {"width", 24}}));
  EXPECT_NE(get(run() / "config.toml").find("image = \"24x16\""), std::string::npos);
  EXPECT_EQ(run_heed("predict " + (run() / "best").string() + " " + set()).exit_code, 0);
  const auto refused = [&](const std::string& settings, const std::string& fragment) {
    const ProgramResult ran = train(settings);
    EXPECT_EQ(ran.exit_code, 2) << settings;
    EXPECT_NE(ran.err.find(fragment), std::string::npos) << ran.err;
  };
  refused("image=20", "train: image=20 is not a multiple of the patch size 8, expected for example image=16");
  refused("image=big", "train: image=big, expected auto, model, a side such as 64, or WIDTHxHEIGHT");
  refused("resize=stretch", "resize");
  refused("resize=model", "train: resize=model without from=");
  refused("image=16 model.image_size=24", "train: image=16 with model.image_size");
  const ProgramResult from = run_heed("train classify data='" + set() + "' image=16 from='" + (run() / "best").string() + "' --runs '" +
                                      folder.path().string() + "/runs'");
  EXPECT_EQ(from.exit_code, 2);
  EXPECT_NE(from.err.find("train: image=16 with from="), std::string::npos) << from.err;
}

TEST_F(TrainImages, all_bad_files_are_listed_or_skipped) {
  put(folder / "set/cat/7.jpg", "");
  put(folder / "set/dog/8.png", get(folder / "set/dog/5.png").substr(0, 60));
  put(folder / "set/dog/9.heic", "x");
  const ProgramResult strict = train("");
  EXPECT_EQ(strict.exit_code, 3);
  EXPECT_TRUE(strict.err.starts_with("heed: " + set() + ": 2 of 8 images cannot be read:\n  " + set() + "/cat/7.jpg: found an empty file"))
      << strict.err;
  EXPECT_NE(strict.err.find("\n  " + set() + "/dog/8.png: the PNG image cannot be decoded"), std::string::npos) << strict.err;
  EXPECT_NE(strict.err.find("train without them: skip_bad=true"), std::string::npos) << strict.err;
  EXPECT_FALSE(std::filesystem::exists(run()));
  const ProgramResult lenient = train("skip_bad=true");
  EXPECT_EQ(lenient.exit_code, 0) << lenient.err;
  for (const std::string& text : {lenient.out, get(run() / "log.txt")}) {
    EXPECT_NE(text.find("2 of 8 images cannot be read and are left out (skip_bad=true):\n  " + set() + "/cat/7.jpg"), std::string::npos)
        << text;
    EXPECT_NE(text.find("1 file was skipped: " + set() + "/dog/9.heic (heed reads PNG, JPEG, WebP or BMP)"), std::string::npos) << text;
  }
  EXPECT_NE(lenient.out.find("classify: 5 to train on, 1 to validate on"), std::string::npos) << lenient.out;

  const ProgramResult eval = run_heed("eval " + (run() / "best").string() + " " + set());
  EXPECT_EQ(eval.exit_code, 3);
  EXPECT_NE(eval.err.find("2 of 8 images cannot be read:\n"), std::string::npos) << eval.err;
  EXPECT_NE(eval.err.find("heed: 1 file was skipped"), std::string::npos) << eval.err;
}

TEST_F(TrainImages, names_can_contain_any_bytes) {
  std::filesystem::rename(folder / "set/dog/5.png", folder / "set/dog/caf\xe9.png");
  std::filesystem::rename(folder / "set/cat", folder / "set/\xff");
  const ProgramResult ran = train("");
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_EQ(read_json(run() / "best/config.json")["id2label"], (Json{{"0", "dog"}, {"1", "\\xff"}}));
  EXPECT_EQ(run_heed("train --resume " + run().string()).exit_code, 0);
  EXPECT_EQ(run_heed("eval " + (run() / "best").string() + " " + set()).exit_code, 0);
  EXPECT_EQ(run_heed("data look " + set()).exit_code, 0);
  EXPECT_NE(run_heed("predict " + (run() / "best").string() + " " + set()).out.find("/dog/caf\\xe9.png\n"), std::string::npos);
}

TEST_F(TrainImages, runs_of_older_versions_can_be_resumed) {
  ASSERT_EQ(train("image=model resize=squash").exit_code, 0);  // the old behaviour: 32 x 32 for any shape
  EXPECT_EQ(read_json(run() / "best/preprocessor_config.json")["size"], (Json{{"height", 32}, {"width", 32}}));
  std::string older;
  std::istringstream lines(get(run() / "config.toml"));
  for (std::string line; std::getline(lines, line);)
    if (!line.starts_with("image = ") && !line.starts_with("resize = ") && !line.starts_with("skip_bad = ")) older += line + "\n";
  put(run() / "config.toml", older);
  for (const char* newer : {"given.toml", "run.json"}) std::filesystem::remove(run() / newer);
  const std::string weights = get(run() / "last/model.safetensors");
  const ProgramResult ran = run_heed("train --resume " + run().string());
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_NE(ran.out.find("images: resized to 32 x 32 pixels"), std::string::npos) << ran.out;
  EXPECT_EQ(get(run() / "last/model.safetensors"), weights);
}

TEST(TrainIdxImages, keep_their_size) {
  const Folder folder;
  const ProgramResult ran =
      run_heed("train classify data=shapes:60 layers=1 width=16 heads=2 patch=8 batch=20 epochs=1 --runs '" + folder.path().string() + "'");
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_EQ(read_json(folder / "classify/001/best/config.json")["image_size"], 32);
  EXPECT_NE(get(folder / "classify/001/config.toml").find("image = \"32\""), std::string::npos);
}

}  // namespace
}  // namespace heed::test
