// heed generate and heed translate from the command line.
#include <gtest/gtest.h>

#include "heed/cli/text_output.h"
#include "heed/models/beam.h"
#include "tests/cli/program.h"
#include "tests/text/vocabularies.h"

namespace heed::test {
namespace {

// A tokenizer of words "w0", "w1", ...: token i is word i. `end`: a token appended to every text, -1: none
Json words(int64_t count, int64_t end) {
  Json vocabulary = Json::object();
  for (int64_t i = 0; i < count; ++i) vocabulary["w" + std::to_string(i)] = i;
  Json out = {{"pre_tokenizer", {{"type", "WhitespaceSplit"}}},
              {"model", {{"type", "WordLevel"}, {"unk_token", "w2"}, {"vocab", vocabulary}}}};
  if (end < 0) return out;
  const std::string token = "w" + std::to_string(end);
  out["added_tokens"] = {{{"id", end}, {"content", token}, {"special", true}}};
  const auto sequence = [](const char* name) { return Json{{"Sequence", {{"id", name}, {"type_id", 0}}}}; };
  const Json special{{"SpecialToken", {{"id", token}, {"type_id", 0}}}};
  out["post_processor"] = {{"type", "TemplateProcessing"},
                           {"single", {sequence("A"), special}},
                           {"pair", {sequence("A"), sequence("B"), special}},
                           {"special_tokens", {{token, {{"id", token}, {"ids", {end}}, {"tokens", {token}}}}}}};
  return out;
}

class GenerateProgram : public testing::Test {
 protected:
  // A copy of a fixture with this tokenizer.
  std::string model(const std::string& name, int64_t end) {
    const Path to = folder / name;
    std::filesystem::create_directories(to);
    for (const char* file : {"config.json", "generation_config.json", "model.safetensors"})
      std::filesystem::copy_file(kFixtures / name / file, to / file, std::filesystem::copy_options::overwrite_existing);
    put(to / "tokenizer.json", words(211, end).dump());
    return to.string();
  }
  static std::string heed(const std::string& arguments, const std::string& input = "") { return output_of_heed(arguments, input); }
  const Folder folder;
};

std::string as_words(const std::vector<int64_t>& tokens) {
  std::string out;
  for (int64_t token : tokens) out += (out.empty() ? "w" : " w") + std::to_string(token);
  return out + "\n";
}

TEST_F(GenerateProgram, continues_prompts) {
  const std::string gpt2 = model("gpt2-lm", -1), some = "generate " + gpt2 + " --max-new-tokens 6 ";
  const Model loaded = load(gpt2);
  GenerationOptions options = generation_options(loaded);
  options.max_new_tokens = 6;
  const auto expected = [&](std::vector<int64_t> prompt) {
    return generate(loaded, {{"input_ids", Tensor::from(prompt, {1, std::ssize(prompt)}, kCpu)}}, options).to_vector<int64_t>();
  };
  const std::string one = as_words(expected({5, 6, 7})), two = as_words(expected({9}));
  const ProgramResult ran = run_heed(some + "'w5 w6 w7' w9");
  EXPECT_EQ(ran.exit_code, 0);
  EXPECT_EQ(ran.out, one + two);
  EXPECT_EQ(ran.err.substr(0, 12), "6 tokens in ");
  EXPECT_EQ(heed(some, "w5 w6 w7\nw9\n"), one + two);
  put(folder / "prompts", "w9\n");
  EXPECT_EQ(heed(some + "--file " + (folder / "prompts").string()), two);
  EXPECT_EQ(heed(some + "--stream 'w5 w6 w7'"), one);
  EXPECT_EQ(heed(some + "--beams 1 'w5 w6 w7'"), one);
  EXPECT_EQ(heed(some + "--temperature 0 'w5 w6 w7'"), one);
  EXPECT_EQ(heed(some + "''"), as_words(expected({0})));  // starts with bos_token_id
  options.beams = 3;
  options.count = 2;
  options.length_penalty = 0.5f;
  const Beams beams = beam_search(loaded, {{"input_ids", Tensor::from(std::vector<int64_t>{9}, {1, 1}, kCpu)}}, options);
  const std::string lines = heed(some + "--beams 3 --count 2 --length-penalty 0.5 --json w9");
  const Json first = Json::parse(lines.substr(0, lines.find('\n')));
  EXPECT_NEAR(first["score"].get<double>(), static_cast<double>(beams.scores[0]), 1e-5);
  EXPECT_EQ(first["prompt"], "w9");
  EXPECT_EQ(first["prompt_tokens"], (Json{9}));
  std::vector<int64_t> row = slice(beams.tokens, 0, 0, 1).to_vector<int64_t>();
  row.erase(row.begin());
  EXPECT_EQ(first["tokens"], Json(row));
  EXPECT_EQ(" " + first["text"].get<std::string>() + "\n", " " + std::string(" ") + as_words(row));
  EXPECT_GT(first["tokens_per_second"], 0);
}

TEST_F(GenerateProgram, samples_by_seed) {
  const std::string some = "generate " + model("gpt2-lm", -1) + " w5 --max-new-tokens 8 ";
  const std::string texts = heed(some + "--temperature 1.5 --count 3 --seed 4");
  EXPECT_EQ(std::count(texts.begin(), texts.end(), '\n'), 3);
  EXPECT_EQ(texts.substr(0, 5), "1: w5");
  EXPECT_EQ(heed("generate " + model("gpt2-lm", -1) + " w5 --max-new-tokens 8 --temperature 1.5 --count 3 --seed 4"), texts);
  EXPECT_NE(heed(some + "--temperature 1.5 --count 3 --seed 5"), texts);
  EXPECT_EQ("1: " + heed(some + "--temperature 1.5 --seed 4"), texts.substr(0, texts.find('\n') + 1));
  const std::string folder_path = model("gpt2-lm", -1);
  put(Path(folder_path) / "generation_config.json", R"({"do_sample": true, "temperature": 1.5, "max_new_tokens": 8, "eos_token_id": 0})");
  EXPECT_EQ("1: " + heed("generate " + folder_path + " w5 --seed 4"), texts.substr(0, texts.find('\n') + 1));
  EXPECT_EQ(heed("generate " + folder_path + " w5 --greedy"), heed(some + "--greedy"));
}

TEST_F(GenerateProgram, accepts_ids_without_a_tokenizer) {
  const std::string fixture = (kFixtures / "gpt2-lm").string();
  const std::string with = heed("generate " + model("gpt2-lm", -1) + " --ids '5, 6, 7' --json --max-new-tokens 4");
  const std::string without = heed("generate " + fixture + " --ids '5 6 7' --json --max-new-tokens 4");
  EXPECT_EQ(Json::parse(with)["tokens"], Json::parse(without)["tokens"]);
  EXPECT_FALSE(Json::parse(without).contains("text"));
  std::string plain = heed("generate " + fixture + " --ids '5 6 7' --max-new-tokens 4");
  std::replace(plain.begin(), plain.end(), ' ', ',');
  EXPECT_EQ(Json::parse("[" + plain + "]"), Json::parse(without)["tokens"]);
}

TEST_F(GenerateProgram, reports_invalid_arguments) {
  const std::string gpt2 = model("gpt2-lm", -1), run = "generate " + gpt2 + " ";
  EXPECT_EQ(heed("generate /nowhere a"), "3: heed: /nowhere: there is no such folder\n");
  EXPECT_EQ(heed("generate gpt2 a"),
            "3: heed: gpt2: there is no such folder; the preset of this name has no weights, expected a model or a run\n");
  const std::string untokenized = heed("generate " + (kFixtures / "gpt2-lm").string() + " a");
  EXPECT_NE(untokenized.find("gpt2-lm: found no tokenizer, expected tokenizer.json"), std::string::npos) << untokenized;
  EXPECT_NE(untokenized.find("; without a tokenizer, --ids '5 6 7' gives the prompt as token ids\n"), std::string::npos) << untokenized;
  EXPECT_NE(heed("generate " + (kFixtures / "bert-model").string() + " a")
                .find("bert-model: BertModel: does not generate text, expected a language model"),
            std::string::npos);
  EXPECT_EQ(heed(run + "--ids '5 x'"), "2: heed: generate: found \"x\" among the ids, expected token ids below 211\n");
  EXPECT_EQ(heed(run + "--ids 211").substr(0, 40), "2: heed: generate: found \"211\" among the");
  EXPECT_EQ(heed(run + "--ids 5 a"), "2: heed: generate: found --ids and prompts, expected one of the two\n");
  EXPECT_EQ(heed(run + "a --beams 2 --top-k 3"), "2: heed: generate: found --beams and sampling flags, expected one of the two\n");
  EXPECT_EQ(heed(run + "a --beams 2 --count 3"), "2: heed: generate: found --count 3 of 2 beams, expected at most the number of beams\n");
  EXPECT_EQ(heed(run + "a --greedy --seed 3"),
            "2: heed: generate: found --greedy and flags of sampling or beams, expected one of the two\n");
  EXPECT_EQ(heed(run + "a --top-p 2").substr(0, 9), "2: heed: ");
  EXPECT_EQ(heed(run, "\xFF\n").substr(0, 40), "3: heed: standard input: line 1: found \"");
  EXPECT_EQ(heed(run, ""), "3: heed: standard input: is empty, expected one sentence per line\n");
  std::string many;
  for (int i = 0; i < 70; ++i) many += "w5 ";
  EXPECT_EQ(heed(run, many), "3: heed: prompt 1: found 70 tokens, expected fewer than 64, the positions of " + gpt2 + "\n");
  put(Path(gpt2) / "generation_config.json", R"({"typical_p": 0.5, "do_sample": true})");
  EXPECT_EQ(heed(run + "a"),
            "3: heed: " + gpt2 + "/generation_config.json: typical_p is \"0.5\", expected 1; heed supports no other value\n");
  EXPECT_NE(
      heed("translate " + (kFixtures / "bert-model").string() + " a").find("BertModel: does not translate, expected an encoder and a"),
      std::string::npos);
  EXPECT_NE(heed("translate " + model("gpt2-variant", -1) + " a").find("expected a model that translates"), std::string::npos);
}

TEST_F(GenerateProgram, translates_in_order) {
  const std::string marian = model("marian-translate", 1), run = "translate " + marian + " --max-length 12 ";
  const std::vector<std::string> sentences{"w5 w9 w11", "w7", "", "w30 w31 w32 w33 w34 w35 w36", "w8 w9"};
  std::string input, alone;
  for (const std::string& each : sentences) {
    input += each + "\n";
    alone += heed(run + "'" + each + "'");
  }
  EXPECT_EQ(heed(run, input), alone);
  const Model loaded = load(marian);
  GenerationOptions options = generation_options(loaded);
  options.max_length = 12;
  options.beams = 4;
  options.length_penalty = 0.6f;
  const Beams beams = beam_search(loaded, {{"input_ids", Tensor::from(std::vector<int64_t>{7, 1}, {1, 2}, kCpu)}}, options);
  const std::string lines = heed(run + "--beams 4 --length-penalty 0.6 --json", input);
  const size_t begin = lines.find('\n') + 1;
  const Json second = Json::parse(lines.substr(begin, lines.find('\n', begin) - begin));
  EXPECT_EQ(second["sentence"], "w7");
  EXPECT_NEAR(second["score"].get<double>(), static_cast<double>(beams.scores[0]), 1e-4);
  std::vector<int64_t> row = beams.tokens.to_vector<int64_t>();
  EXPECT_EQ(second["tokens"], Json(std::vector<int64_t>(row.begin() + 1, row.end())));
}

// One token per byte, as in byte-level BPE for unknown characters.
TEST(TextStream, returns_whole_characters) {
  Json vocabulary = Json::object();
  int id = 0;
  for (const char* letter : {"\u00c3", "\u00a9", "\u00e2", "\u0124", "\u00ac", "a", "\u0120"}) vocabulary[letter] = id++;
  const Tokenizer tokenizer = tokenizer_of(
      with_model({{"type", "BPE"}, {"vocab", vocabulary}, {"merges", Json::array()}},
                 {{"pre_tokenizer", {{"type", "ByteLevel"}, {"add_prefix_space", false}}}, {"decoder", {{"type", "ByteLevel"}}}}));
  cli::TextStream stream(tokenizer, {5});
  const auto add = [&](int32_t token) { return stream.add({&token, 1}); };
  EXPECT_EQ(add(0), "");
  EXPECT_EQ(add(1), "\u00e9");
  EXPECT_EQ(add(5), "a");
  EXPECT_EQ(add(2), "");
  EXPECT_EQ(add(99), "");  // an id without a token
  EXPECT_EQ(add(3), "");
  EXPECT_EQ(add(4), "\u20ac");
  EXPECT_EQ(add(6), " ");
  EXPECT_EQ(add(0), "");
  EXPECT_EQ(stream.finish(), "\uFFFD");
  EXPECT_EQ(stream.finish(), "");
}

}  // namespace
}  // namespace heed::test
