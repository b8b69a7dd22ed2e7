// Code uses the traits of architectures (models/architecture.h): outside of the files that define architectures, none compares their names
// or searches for the names of their parameters.
#include <gtest/gtest.h>

#include <filesystem>
#include <regex>
#include <sstream>
#include <vector>

#include "tests/structure/source.h"

namespace heed::test {
namespace {

bool defines_architectures(const std::string& text) {
  return std::regex_search(text, std::regex(R"(Architectures \w+_architectures\(\) \{)"));
}

// Lines that compare the name of an architecture or of a parameter, with their numbers.
std::vector<std::string> guesses_in(const std::string& text) {
  static const std::regex compares(R"((==|!=|starts_with|ends_with|find|contains|substr|allow_missing|allow_unused))");
  static const std::regex architecture(
      R"(architecture\w*(\(\)|)(\s*(==|!=)|\.(starts_with|ends_with|find|contains|substr)\()|model_type\W.*(==|!=)\s*")");
  static const std::regex head(
      R"(For(ImageClassification|SequenceClassification|TokenClassification|QuestionAnswering|MaskedLM|PreTraining)|)"
      R"(For(NextSentencePrediction|CausalLM|ConditionalGeneration)|LMHeadModel|MTModel)");
  static const std::regex parameter(
      R"rx("[\w.]*(word_embeddings\.|wte|embed_tokens|shared\.weight|lm_head|classifier|pooler|cls\.|predictions|)rx"
      R"rx(seq_relationship\.|encoder_attn|patch_embeddings|embeddings\.|layernorm|[qkv]_proj|[qkv]_lin|c_attn|qa_outputs))rx");
  std::vector<std::string> found;
  std::istringstream lines(text);
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    if (line.find('"') == std::string::npos || line.find("\"architectures\"") != std::string::npos) continue;  // writes a config.json
    if (!std::regex_search(line, compares)) continue;
    if (std::regex_search(line, architecture) || std::regex_search(line, head) || std::regex_search(line, parameter))
      found.push_back(std::to_string(number) + ": " + line);
  }
  return found;
}

TEST(Traits, other_code_does_not_compare_architecture_names) {
  const std::filesystem::path root = HEED_SOURCE_DIR;
  int defining = 0, read = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root / "heed")) {
    if (entry.path().extension() != ".h" && entry.path().extension() != ".cc") continue;
    const std::string path = std::filesystem::relative(entry.path(), root), text = read_source(path);
    ++read;
    if (defines_architectures(text)) {
      ++defining;
      continue;
    }
    for (const std::string& guess : guesses_in(text)) ADD_FAILURE() << path << ":" << guess;
  }
  EXPECT_GE(defining, 8);
  EXPECT_GT(read, 200);
}

TEST(Traits, comparisons_of_names_are_found) {
  EXPECT_EQ(guesses_in("if (model.architecture() == \"MarianMTModel\") f();").size(), 1U);
  EXPECT_EQ(guesses_in("if (name.ends_with(\"ForSequenceClassification\")) f();").size(), 1U);
  EXPECT_EQ(guesses_in("if (model.architecture().starts_with(\"GPT2\")) f();").size(), 1U);
  EXPECT_EQ(guesses_in("if (config.value(\"model_type\", \"\") == \"bert\") f();").size(), 1U);
  EXPECT_EQ(guesses_in("if (parameter.name.ends_with(\"wte.weight\")) f();").size(), 1U);
  EXPECT_EQ(guesses_in("load(folder, {.names = {.allow_missing = {\"classifier\", \"pooler\"}}});").size(), 1U);
  EXPECT_EQ(guesses_in("{{\"architectures\", {\"BertForSequenceClassification\"}},").size(), 0U);
  EXPECT_EQ(guesses_in("if (model.traits().task == ModelTask::masked_lm) f();").size(), 0U);
}

}  // namespace
}  // namespace heed::test
