// Bad input files: exit code 3 and a message that names the file and the problem.
#include <sys/resource.h>
#include <sys/stat.h>

#include "heed/io/image.h"
#include "tests/cli/program.h"
#include "tests/models/text_folder.h"

namespace heed::test {
namespace {

void expect_bad(const std::string& arguments, const std::string& file, const std::string& problem, const std::string& input = "") {
  const ProgramResult ran = run_heed(arguments, input);
  EXPECT_EQ(ran.exit_code, 3) << arguments << "\n" << ran.err;
  EXPECT_EQ(std::count(ran.err.begin(), ran.err.end(), '\n'), 1) << ran.err;
  EXPECT_NE(ran.err.find(file), std::string::npos) << "found: " << ran.err << "expected: " << file;
  EXPECT_NE(ran.err.find(problem), std::string::npos) << "found: " << ran.err << "expected: " << problem;
}

struct BadInputs : testing::Test {
  const TextFolder folder{"bert-sentiment"};
  const std::string model = folder.path().string(), predict = "predict " + model + " ";

  void with_both(const std::string& file, const std::string& problem) const {
    for (const char* command : {"predict ", "embed "}) expect_bad(command + model + " a", model + file, problem);
  }
};

TEST_F(BadInputs, a_truncated_checkpoint) {
  const std::string whole = get(folder / "model.safetensors");
  for (const size_t size : {whole.size() / 2, whole.size() - 1, size_t{100}, size_t{7}, size_t{0}}) {
    put(folder / "model.safetensors", whole.substr(0, size));
    with_both("/model.safetensors: ", size == 0 || size == 7 ? "" : "expected");
  }
  std::filesystem::remove(folder / "model.safetensors");
  with_both(": found neither", "model.safetensors");
}

TEST_F(BadInputs, invalid_sizes) {
  for (const Json& size : {Json(-32), Json(0), Json(1.5), Json("many"), Json(1e300), Json::array()}) {
    folder.change("hidden_size", size);
    with_both("/config.json: ", "hidden_size is");
  }
  folder.change("hidden_size", int64_t{1} << 39);
  EXPECT_EQ(run_heed(predict + "a").exit_code, 3);
}

TEST_F(BadInputs, invalid_configs) {
  put(folder / "config.json", "[1, 2]");
  with_both("/config.json: found \"[1,2]\"", "expected a JSON object");
  put(folder / "config.json", "{\"architectures\": [");
  with_both("/config.json: ", "");
  put(folder / "config.json", "");
  with_both("/config.json: ", "");
  put(folder / "config.json", "{}");
  with_both("/config.json: has no list of \"architectures\"", "");
  put(folder / "config.json", R"({"architectures": ["BartForConditionalGeneration"]})");
  with_both("/config.json: the architecture \"BartForConditionalGeneration\" is not known", "");
  std::filesystem::remove(folder / "config.json");
  with_both("/config.json: there is no such file", "");
  for (const char* command : {"predict ", "embed "})
    expect_bad(std::string(command) + "/nowhere a", "/nowhere: ", "there is no such folder");
}

TEST_F(BadInputs, labels_with_missing_numbers) {
  folder.change("id2label", {{"0", "bad"}, {"2", "good"}});
  expect_bad(predict + "a", model + "/config.json: ", "id2label has 2 names but none for 1, expected one for every number from 0 to 1");
  folder.change("id2label", {{"0", "bad"}, {"1", 7}});
  expect_bad(predict + "a", model + "/config.json: ", "id2label.1 is \"7\", expected a string");
  folder.change("id2label", {"bad", "good"});
  expect_bad(predict + "a", model + "/config.json: ", "id2label is");
}

TEST_F(BadInputs, tokenizers) {
  std::filesystem::remove(folder / "tokenizer.json");
  with_both(": found no tokenizer, expected tokenizer.json", "");
  put(folder / "tokenizer.json", "{\"model\": ");
  with_both("/tokenizer.json: ", "");
  put(folder / "tokenizer.json", "[]");
  with_both("/tokenizer.json", "");
  Json json = bert_json();
  json["model"]["type"] = "Magic";
  put(folder / "tokenizer.json", json.dump());
  with_both("/tokenizer.json", "Magic");
  json = bert_json();
  for (int i = 22; i < 400; ++i) json["model"]["vocab"]["word" + std::to_string(i)] = i;
  put(folder / "tokenizer.json", json.dump());
  with_both(": the tokenizer has ids up to 399, the model has 211 embeddings, expected one for each id", "");
}

TEST_F(BadInputs, invalid_text) {
  const std::string file = folder / "lines.txt";
  put(file, "fine\n\xC3\x28\n");
  expect_bad(predict + "--file " + file, file + ": line 2: ", "at byte 0, expected UTF-8");
  expect_bad("embed " + model, "standard input: line 2: ", "at byte 0, expected UTF-8", "fine\n\xC3\x28\n");
  expect_bad(predict + "\"$(printf 'a\\377')\"", "argument 1: ", "at byte 1, expected UTF-8");
  put(file, "");
  expect_bad(predict + "--file " + file, file + ": is empty", "expected one sentence per line");
  expect_bad("embed " + model, "standard input: is empty", "expected one sentence per line");
  for (const char* name : {"none.txt", "/nowhere/reviews.csv", "none.jsonl.gz", "none.jpg"})
    expect_bad(predict + name, std::string(name) + ": there is no such file", "standard input");
  EXPECT_EQ(run_heed(predict + "'it is in notes.txt'").exit_code, 0);
  const std::string err = folder / "err", lines = "'" HEED_PROGRAM "' tokenize '" + model + "' --lines <'" + model + "' 2>'" + err + "'";
  EXPECT_EQ(WEXITSTATUS(std::system(lines.c_str())), 3);  // standard input is a folder
  EXPECT_EQ(get(err), "heed: standard input: cannot be read\n");
  expect_bad(predict + "--file /nowhere/lines", "/nowhere/lines: there is no such file", "");
  expect_bad(predict + "--file " + model, model + ": is a folder", "");
  expect_bad(predict + "--pairs", "standard input: line 1: found 0 tabs", "expected one", "no pair\n");
}

TEST_F(BadInputs, a_pipe_as_an_argument_is_read) {
  const std::string pipe = folder / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(std::system(("printf 'hello\\na\\n' >'" + pipe + "' &").c_str()), 0);
  const ProgramResult ran = run_heed(predict + pipe);
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_EQ(ran.err, "heed: predict reads the file " + pipe + ", one sentence per line\n");
  EXPECT_NE(ran.out.find("  hello\n"), std::string::npos) << ran.out;
}

// Processor time of the programs that have run. Time on the clock depends on what else the machine does.
double children_seconds() {
  rusage used{};
  ::getrusage(RUSAGE_CHILDREN, &used);
  const auto seconds = [](const timeval& time) { return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec); };
  return seconds(used.ru_utime) + seconds(used.ru_stime);
}

TEST_F(BadInputs, a_line_of_ten_megabytes_is_truncated_or_refused_quickly) {
  const double start = children_seconds();
  std::string words, letters;
  while (words.size() < 10'000'000) words += "hello unaffable ";
  letters.resize(words.size(), 'a');
  for (const std::string& line : {words, letters}) {
    const ProgramResult ran = run_heed(predict, line);
    EXPECT_EQ(ran.exit_code, 0) << ran.err;
    EXPECT_EQ(ran.err, line == words ? "heed: 1 sentence was longer than 64 tokens and truncated\n" : "");
    EXPECT_LT(ran.out.size(), 300u);
  }
  const std::string huge = folder / "huge";
  put(huge, "a\n");
  std::filesystem::resize_file(huge, 5'000'000'000);  // sparse: takes no disk space
  expect_bad(predict + "--file " + huge, huge + ": line 2: ", "found more than 67108864 bytes");
  EXPECT_LT(children_seconds() - start, kSanitized ? 600 : 60);
}

TEST(BadImages, damaged_and_oversized_images) {
  const Folder folder;
  const std::string predict = "predict " + fixture("vit-classify").string() + " ", file = folder / "image.png";
  const Image dot{1, 1, {1, 2, 3}};
  std::string bomb = png_bytes(dot);
  bomb.replace(16, 8, std::string("\x7f\xff\xff\xff\x7f\xff\xff\xff", 8));  // width and height
  put(file, bomb);
  expect_bad(predict + file, file + ": ", "");
  const std::string whole = png_bytes({64, 64, std::vector<uint8_t>(3 * 64 * 64, 9)});
  put(file, whole.substr(0, whole.size() / 2));
  expect_bad(predict + file, file + ": ", "");
  put(file, "");
  expect_bad(predict + file, file + ": ", "");
  put(file, "GIF89a");
  expect_bad(predict + file, file + ": ", "");
  expect_bad(predict + "/nowhere.png", "/nowhere.png: ", "");
  expect_bad(predict, "standard input: is empty", "expected one image or folder per line");
  put(folder / "good.png", whole);
  const std::string good = (folder / "good.png").string();
  expect_bad(predict + file + " " + good, file + ": ", "; --skip-bad skips such images");
  std::filesystem::remove(folder / "image.png");
  std::filesystem::remove(folder / "good.png");
  expect_bad(predict + folder.path().string(), folder.path().string() + ": found no images in the folder", "");
}

}  // namespace
}  // namespace heed::test
