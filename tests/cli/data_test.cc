// heed data look from the command line: tables, JSON, sheets and errors.
#include <gtest/gtest.h>

#include "heed/io/image.h"
#include "heed/io/json.h"
#include "tests/cli/program.h"

namespace heed::test {
namespace {

class DataProgram : public testing::Test {
 protected:
  static ProgramResult look(const std::string& arguments) { return run_heed("data look " + arguments); }
  void refused(const std::string& arguments, int exit_code, const std::string& message) {
    const ProgramResult outcome = look(arguments);
    EXPECT_EQ(outcome.exit_code, exit_code) << arguments << "\n" << outcome.err;
    EXPECT_NE(outcome.err.find(message), std::string::npos) << outcome.err;
  }
  // Three images of ant and one of dog, of three sizes.
  std::string classes() {
    for (const char* name : {"ant", "dog"}) std::filesystem::create_directories(folder / "set" / name);
    const auto add = [&](const char* name, int64_t width, int64_t height) {
      write_png(folder / "set" / name, {width, height, std::vector<uint8_t>(static_cast<size_t>(3 * width * height), 200)});
    };
    add("ant/1.png", 10, 20);
    add("ant/2.png", 300, 40);
    add("ant/3.png", 10, 20);
    add("dog/1.png", 12, 20);
    return folder / "set";
  }
  std::string file(const char* name) const { return folder / name; }
  const Folder folder;
};

TEST_F(DataProgram, counts_parts_and_classes) {
  const ProgramResult ran = look("shapes:50");
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_NE(ran.out.find("train             50  32 x 32\nvalidation        10  32 x 32\ntest              10  32 x 32\n"),
            std::string::npos)
      << ran.out;
  EXPECT_NE(ran.out.find("circle             5           1           1  ██████████████████████████████\n"), std::string::npos) << ran.out;
  EXPECT_NE(ran.out.find("heed data look shapes:50 -o sheet.png"), std::string::npos) << ran.out;
}

TEST_F(DataProgram, different_sizes_are_printed) {
  const std::string where = classes();
  const ProgramResult ran = look(where);
  EXPECT_NE(ran.out.find("train              4  12 x 20 (median; 10 to 300 wide, 20 to 40 high)\n"), std::string::npos) << ran.out;
  EXPECT_NE(ran.out.find("ant             3           0           0  ██████████████████████████████\n"), std::string::npos) << ran.out;
  EXPECT_NE(ran.out.find("dog             1           0           0  ██████████\n"), std::string::npos) << ran.out;

  const Json json = parse_json("out", look(where + " --json --part train").out);
  EXPECT_EQ(json["classes"], (Json{"ant", "dog"}));
  EXPECT_EQ(json["parts"].size(), 1u);
  EXPECT_EQ(json["parts"]["train"]["images"], 4);
  EXPECT_EQ(json["parts"]["train"]["per_class"], (Json{3, 1}));
  EXPECT_EQ(json["parts"]["train"]["width"], (Json{{"least", 10}, {"median", 12}, {"most", 300}}));
}

TEST_F(DataProgram, a_sheet_has_a_row_for_every_class) {
  const ProgramResult ran = look(classes() + " -o " + file("sheet.png") + " --each 3");
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  const Image sheet = read_image(file("sheet.png"));
  int64_t of_image = 0, missing = 0;
  for (size_t i = 0; i < sheet.pixels.size(); i += 3) {
    of_image += sheet.pixels[i] == 200 && sheet.pixels[i + 1] == 200;
    missing += sheet.pixels[i] == 236;
  }
  // 10 x 20 and 12 x 20 pixels are enlarged three times, 300 x 40 is reduced to 64 x 8; dog has two images too few.
  EXPECT_EQ(of_image, 2 * 30 * 60 + 64 * 8 + 36 * 60);
  EXPECT_EQ(missing, 2 * 64 * 64);
}

TEST_F(DataProgram, an_augmented_sheet_depends_only_on_the_seed) {
  const auto sheet = [&](const std::string& flags) {
    const ProgramResult ran = look("shapes:20 --part test -o " + file("sheet.png") + " " + flags);
    EXPECT_EQ(ran.exit_code, 0) << ran.err;
    return get(file("sheet.png"));
  };
  const std::string once = sheet("--pad 4 --flip --random-ops 2 --erase 0.5 --colour 0.3 --resized-crop 0.6");
  EXPECT_EQ(once, sheet("--pad 4 --flip --random-ops 2 --erase 0.5 --colour 0.3 --resized-crop 0.6"));
  EXPECT_NE(once, sheet("--pad 4 --flip --random-ops 2 --erase 0.5 --colour 0.3 --resized-crop 0.6 --seed 2"));
  EXPECT_NE(once, sheet(""));
}

TEST_F(DataProgram, all_bad_images_are_listed_after_the_table) {
  const std::string where = classes();
  put(folder / "set/dog/2.png", "no image");
  put(folder / "set/ant/4.jpg", "");
  put(folder / "set/dog/3.heic", "x");
  const ProgramResult ran = look(where + " -o " + file("sheet.png"));
  EXPECT_EQ(ran.exit_code, 3);
  EXPECT_EQ(ran.err, "heed: " + where + ": 2 of 6 images cannot be read:\n  " + where +
                         "/ant/4.jpg: found an empty file, expected a PNG, JPEG, WebP or BMP image\n  " + where +
                         "/dog/2.png: found \"no image\" at the start, expected a PNG, JPEG, WebP or BMP image; convert it first\n");
  EXPECT_NE(ran.out.find("train              4  12 x 20 (median; 10 to 300 wide, 20 to 40 high)\n"), std::string::npos) << ran.out;
  EXPECT_NE(ran.out.find("\n1 file was skipped: " + where + "/dog/3.heic (heed reads"), std::string::npos) << ran.out;
  EXPECT_GT(read_image(file("sheet.png")).width, 0);
  const ProgramResult json = look(where + " --json");
  EXPECT_EQ(json.exit_code, 3);
  EXPECT_EQ(parse_json("out", json.out)["parts"]["train"]["bad"].size(), 2u);
}

TEST_F(DataProgram, the_size_for_training_is_shown) {
  const ProgramResult ran = look(classes());
  EXPECT_NE(ran.out.find("\nTraining input: shorter side resized to 12, then the centre of 12 x 12 pixels; heed train classify image="),
            std::string::npos)
      << ran.out;
  EXPECT_NE(ran.out.find("\nValidation: heed train classify holds out a tenth of train;"), std::string::npos) << ran.out;
  EXPECT_EQ(look("shapes:20").out.find("\nValidation: "), std::string::npos);
  EXPECT_EQ(parse_json("out", look(classes() + " --json").out)["training"], (Json{{"width", 12}, {"height", 12}, {"resize", "crop"}}));
  EXPECT_NE(look("shapes:20").out.find("Training input: shorter side resized to 32, then the centre of 32 x 32 pixels"), std::string::npos);
}

TEST_F(DataProgram, texts_are_recognized_without_an_ending) {
  for (const char* name : {"notes.md", "notes"}) {
    put(folder / name, "One. Two.\n\nThree.\n");
    EXPECT_NE(look(file(name)).out.find(": 2 documents, 3 sentences\n"), std::string::npos) << name;
  }
  std::filesystem::create_directories(folder / "articles");
  put(folder / "articles/a.md", "One. Two.\n");
  refused(file("articles"), 3, "articles: found no images, no .txt files and no train.tsv, train.csv or train.jsonl; heed data look reads");
  put(folder / "table.parquet", std::string("PAR1\0\0", 6));
  refused(file("table.parquet"), 3, "table.parquet: found a Parquet file, expected a folder of images; heed data look reads");
}

TEST_F(DataProgram, models_and_runs_are_no_data) {
  std::filesystem::create_directories(folder / "model");
  put(folder / "model/config.json", "{}");
  put(folder / "model/vocab.txt", "a\n");
  refused(file("model"), 3, "model: found a model, expected data; heed inspect ");
  std::filesystem::create_directories(folder / "run/best");
  put(folder / "run/config.toml", "");
  refused(file("run"), 3, "run: found a run, expected data; heed runs ");
}

TEST_F(DataProgram, bad_inputs_give_an_error_message) {
  const std::string where = classes();
  refused(file("missing"), 3, "missing: there is no such file or folder; heed data look reads images (one folder per class, ");
  refused("opinion", 3, "opinion: there is no such file or folder; did you mean 'opinions'?");
  refused(where + "/dog/1.png", 3, "1.png: found a PNG image, expected a folder of images; heed data look reads");
  refused("shapes:0", 3, "expected the number of images, from 1");
  refused("shapes --part tests", 2, "--part");
  refused("shapes -o sheet.jpg", 2, "expected a name that ends in .png");
  refused("shapes --flip", 2, "found augmentation flags without -o SHEET.png");
  refused(file("set") + " --part validation -o " + file("sheet.png"), 3, "found no images in part validation");
  refused("opinions -o " + file("sheet.png"), 2, "opinions is a text, found flags for images");
  EXPECT_EQ(run_heed("data").exit_code, 2);
  EXPECT_FALSE(std::filesystem::exists(file("sheet.png")));
}

}  // namespace
}  // namespace heed::test
