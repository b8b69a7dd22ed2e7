// heed predict and heed embed from the command line.
#include <cmath>
#include <cstring>

#include "heed/io/image.h"
#include "tests/cli/program.h"
#include "tests/io/image_bytes.h"
#include "tests/models/text_folder.h"

namespace heed::test {
namespace {

std::vector<Json> json_lines(const ProgramResult& ran) {
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  std::vector<Json> out;
  std::istringstream lines(ran.out);
  for (std::string line; std::getline(lines, line);) out.push_back(Json::parse(line));
  return out;
}

int64_t lines_in(const std::string& text) { return std::count(text.begin(), text.end(), '\n'); }

TEST(Program, predict_labels_sentences_in_order) {
  const TextFolder folder("bert-sentiment");
  folder.change("id2label", {{"0", "bad"}, {"1", "good"}});
  const std::string model = folder.path().string();
  const ProgramResult table = run_heed("predict " + model + " 'hello, a!' a --top 2");
  EXPECT_EQ(table.exit_code, 0) << table.err;
  EXPECT_TRUE(table.out.starts_with("label  probability  sentence\n")) << table.out;
  EXPECT_NE(table.out.find("%  hello, a!\n"), std::string::npos) << table.out;
  EXPECT_EQ(lines_in(table.out), 5);
  EXPECT_EQ(lines_in(run_heed("predict " + model + " hello").out), 2);

  std::string many;
  for (int i = 0; i < 300; ++i) many += std::string(static_cast<size_t>(i * 7 % 13), 'a') + " hello\r\n";
  const std::vector<Json> predictions = json_lines(run_heed("predict " + model + " --json", many));
  ASSERT_EQ(predictions.size(), 300u);
  EXPECT_EQ(predictions[5]["text"], std::string(9, 'a') + " hello");
  EXPECT_EQ(predictions[5]["labels"].size(), 1u);
  EXPECT_EQ(predictions[5], json_lines(run_heed("predict " + model + " --json - ", "aaaaaaaaa hello"))[0]);
  put(folder / "lines", many);
  EXPECT_EQ(json_lines(run_heed("predict " + model + " --json --file " + (folder / "lines").string())), predictions);
  const ProgramResult longer = run_heed("predict " + model + " --max-length 4 'a a a a a' a");
  EXPECT_EQ(longer.err, "heed: 1 sentence was longer than 4 tokens and truncated\n");
}

TEST(Program, predict_supports_every_head) {
  const TextFolder next("bert-next"), words("bert-tokens"), masked("bert-masked"), value("bert-regression"), several("bert-multi-label");
  const auto path = [](const TextFolder& folder) { return folder.path().string(); };
  EXPECT_EQ(run_heed("predict " + path(next) + " a").exit_code, 2);
  const std::vector<Json> pairs = json_lines(run_heed("predict " + path(next) + " --pairs --json", "a\thello\nhello\ta a\n"));
  EXPECT_EQ(pairs[1]["pair"], "a a");
  EXPECT_TRUE(pairs[1]["labels"][0]["label"] == "is_next" || pairs[1]["labels"][0]["label"] == "not_next");
  EXPECT_NE(run_heed("predict " + path(next) + " --pairs", "a\thello\n").out.find("a | hello\n"), std::string::npos);

  const std::vector<Json> labelled = json_lines(run_heed("predict " + path(words) + " --json 'unaffable a'"));
  EXPECT_EQ(labelled[0]["words"].size(), 2u);
  EXPECT_EQ(labelled[0]["words"][0]["word"], "unaffable");
  EXPECT_EQ(labelled[0]["words"][1]["start"], 10);
  EXPECT_TRUE(run_heed("predict " + path(words) + " 'unaffable a'").out.starts_with("unaffable a\n  unaffable  LABEL_"));
  EXPECT_EQ(run_heed("predict " + path(words) + " --pairs", "a\tb").exit_code, 2);

  const std::vector<Json> filled = json_lines(run_heed("predict " + path(masked) + " --json --top 3 'a [MASK], [MASK]!'"));
  EXPECT_EQ(filled[0]["masks"].size(), 2u);
  EXPECT_EQ(filled[0]["masks"][1]["words"].size(), 3u);
  EXPECT_EQ(lines_in(run_heed("predict " + path(masked) + " 'a [MASK]'").out), 6);
  const ProgramResult unmasked = run_heed("predict " + path(masked) + " 'a [MASK]' a");
  EXPECT_EQ(unmasked.exit_code, 3);
  EXPECT_EQ(unmasked.err, "heed: predict: sentence 2 has no [MASK] among its 3 tokens, expected one for BertForMaskedLM to fill\n");

  EXPECT_TRUE(run_heed("predict " + path(value) + " a").out.starts_with("label       value  sentence\nLABEL_0"));
  EXPECT_EQ(lines_in(run_heed("predict " + path(several) + " a").out), 5);
  EXPECT_EQ(run_heed("predict " + path(several) + " a --skip-bad").exit_code, 2);
  const TextFolder plain("bert-model");
  EXPECT_NE(run_heed("predict " + path(plain) + " a").err.find("config.json: BertModel has no labels to predict"), std::string::npos);
}

Image grey(int64_t width, int64_t height, uint8_t shade) {
  return {width, height, std::vector<uint8_t>(static_cast<size_t>(3 * width * height), shade)};
}

TEST(Program, predict_labels_images) {
  const Folder folder;
  const std::string model = fixture("vit-classify").string(), images = folder / "images";
  std::filesystem::create_directories(folder / "images" / "more");
  write_png(folder / "images" / "b.png", grey(50, 40, 20));
  write_png(folder / "images" / "a.PNG", grey(10, 40, 200));
  write_png(folder / "images" / "more" / "c.png", grey(32, 32, 90));
  put(folder / "images" / "notes.txt", "no image");
  const std::vector<Json> found = json_lines(run_heed("predict " + model + " --json --top 2 " + images + " " + images + "/b.png"));
  ASSERT_EQ(found.size(), 4u);
  EXPECT_EQ(found[0]["file"], images + "/a.PNG");
  EXPECT_EQ(found[2]["file"], images + "/more/c.png");
  EXPECT_EQ(found[1], found[3]);
  EXPECT_EQ(found[0]["labels"].size(), 2u);
  const ProgramResult table = run_heed("predict " + model, images + "/b.png\n");
  EXPECT_TRUE(table.out.starts_with("label")) << table.err;
  EXPECT_NE(table.out.find("%  " + images + "/b.png\n"), std::string::npos) << table.out;

  put(folder / "images" / "bad.png", "no image at all");
  const ProgramResult strict = run_heed("predict " + model + " " + images);
  EXPECT_EQ(strict.exit_code, 3);
  EXPECT_NE(strict.err.find("\nheed: " + images + "/bad.png: "), std::string::npos) << strict.err;
  EXPECT_TRUE(strict.err.starts_with("heed: 1 file was skipped: " + images + "/notes.txt")) << strict.err;
  const ProgramResult lenient = run_heed("predict " + model + " --json --top 2 --skip-bad " + images);
  const std::vector<Json> some = json_lines({0, lenient.out, lenient.err});
  EXPECT_EQ(lenient.exit_code, 1);
  ASSERT_EQ(some.size(), 4u);
  EXPECT_TRUE(some[2].contains("error"));
  EXPECT_EQ(some[3]["labels"][0]["id"], found[2]["labels"][0]["id"]);
  EXPECT_TRUE(lenient.err.ends_with("heed: predict: 1 of 4 images could not be read and were skipped\n")) << lenient.err;
  EXPECT_EQ(run_heed("predict " + model + " --skip-bad " + images + "/bad.png").exit_code, 1);
  EXPECT_EQ(run_heed("predict " + model + " --pairs " + images).exit_code, 2);
}

TEST(Program, predict_reads_every_format_and_rotates_images) {
  const Folder folder;
  const std::string predict = "predict " + fixture("vit-classify").string() + " --json ", jpeg = get(fixture("images") / "color.jpg");
  std::filesystem::create_directories(folder / "in");
  // Rotated here, and by an EXIF tag: the same image for the model.
  const Image stored = parsed(jpeg);
  Image rotated{stored.height, stored.width};
  for (int64_t y = 0; y < rotated.height; ++y)
    for (int64_t x = 0; x < rotated.width; ++x)
      for (int64_t c = 0; c < 3; ++c)
        rotated.pixels.push_back(stored.pixels[static_cast<size_t>(((stored.height - 1 - x) * stored.width + y) * 3 + c)]);
  write_png(folder / "in/1.png", rotated);
  put(folder / "in/2.jpg", jpeg_with_exif(jpeg, exif(6, true)));
  put(folder / "in/3.webp", kWebP);
  put(folder / "in/4.bmp", bmp({}, "", zeros(24)));
  put(folder / "in/\xff.jpg", jpeg);
  put(folder / "in/5.heic", "x");
  const ProgramResult ran = run_heed(predict + (folder / "in").string());
  EXPECT_EQ(ran.err, "heed: 1 file was skipped: " + (folder / "in/5.heic").string() + " (heed reads PNG, JPEG, WebP or BMP)\n");
  const std::vector<Json> found = json_lines(ran);
  ASSERT_EQ(found.size(), 5u);
  EXPECT_EQ(found[0]["labels"], found[1]["labels"]);
  EXPECT_NE(found[1]["labels"], found[4]["labels"]);
  EXPECT_TRUE(found[4]["file"].get<std::string>().ends_with("in/\\xff.jpg")) << found[4];
  const ProgramResult named = run_heed(predict + "\"$(printf '" + (folder / "in").string() + "/\\377.jpg')\"");
  EXPECT_EQ(json_lines(named)[0], found[4]);
}

TEST(Program, embed_prints_vectors_and_cosines) {
  const TextFolder folder("bert-model");
  const std::string model = folder.path().string(), npy = folder / "x.npy";
  const std::vector<Json> found = json_lines(run_heed("embed " + model + " --json a 'hello a!' a"));
  ASSERT_EQ(found.size(), 3u);
  EXPECT_EQ(found[0], found[2]);
  const auto vectors = [](const Json& json) { return json["embedding"].get<std::vector<double>>(); };
  double square = 0, cosine = 0;
  for (size_t d = 0; d < vectors(found[0]).size(); ++d) {
    square += vectors(found[0])[d] * vectors(found[0])[d];
    cosine += vectors(found[0])[d] * vectors(found[1])[d];
  }
  EXPECT_NEAR(square, 1, 1e-5);
  const ProgramResult ran = run_heed("embed " + model + " --npy " + npy, "a\nhello a!\na\n");
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  const std::string stored = get(npy);
  EXPECT_NE(stored.find("'shape': (3, " + std::to_string(vectors(found[0]).size()) + ")"), std::string::npos);
  float first_stored = 0;
  std::memcpy(&first_stored, stored.data() + 128, sizeof first_stored);
  EXPECT_NEAR(static_cast<double>(first_stored), vectors(found[0])[0], 1e-6);

  const std::vector<Json> pair = json_lines(run_heed("embed " + model + " --pairs --json", "a\thello a!\n"));
  EXPECT_NEAR(pair[0]["cosine"].get<double>(), cosine, 1e-5);
  const std::vector<Json> matrix = json_lines(run_heed("embed " + model + " --similar --json a 'hello a!'"));
  EXPECT_NEAR(matrix[0]["cosines"][0][1].get<double>(), cosine, 1e-5);
  EXPECT_NE(run_heed("embed " + model + " a 'hello a!' a").out.find("   1.0000  a\n"), std::string::npos);
  EXPECT_TRUE(run_heed("embed " + model + " a").out.find(" numbers: ") != std::string::npos);
  std::string many;
  for (const char* first : {"hello", "a", ",", "!"})
    for (const char* second : {" hello", " a", " ,", " !"}) many += first + std::string(second) + "\n";
  const ProgramResult similar = run_heed("embed " + model + " --top 1", many + "hello a hello\nhello a hello\n");
  EXPECT_EQ(similar.out, "Most similar of 18 sentences\n cosine  sentences\n 1.0000  hello a hello | hello a hello\n");
  EXPECT_NE(run_heed("embed " + model + " --json a --pooling cls").out, run_heed("embed " + model + " --json a").out);
  EXPECT_NE(run_heed("embed " + model + " --json a --no-normalize").out, run_heed("embed " + model + " --json a").out);
  EXPECT_EQ(run_heed("embed " + model + " --npy x --pairs a").exit_code, 2);
  EXPECT_EQ(run_heed("embed " + model + " --pooling most a").exit_code, 2);
}

}  // namespace
}  // namespace heed::test
