// heed inspect --terms: tables, JSON, the choice of the query, refusals.
#include <gtest/gtest.h>

#include "heed/io/image.h"
#include "heed/io/json.h"
#include "tests/cli/program.h"
#include "tests/text/vocabularies.h"

namespace heed::test {
namespace {

class InspectTerms : public testing::Test {
 protected:
  static ProgramResult heed(const std::string& arguments) { return run_heed("inspect " + arguments); }
  static void refused(const std::string& arguments, const std::string& message) {
    const ProgramResult outcome = heed(arguments);
    EXPECT_EQ(outcome.exit_code, 2) << arguments << "\n" << outcome.err;
    EXPECT_NE(outcome.err.find(message), std::string::npos) << outcome.err;
  }
  static std::string fixture(const std::string& name) { return std::string(HEED_SOURCE_DIR) + "/tests/fixtures/" + name; }
  std::string with_tokenizer(const std::string& name) const {
    const Path to = folder / name;
    std::filesystem::copy(fixture(name), to);
    put(to / "tokenizer.json", bert_json().dump());
    return to;
  }
  // Grey, with a white column if `varied`.
  std::string image(bool varied) const {
    Image out{.width = 40, .height = 36, .pixels = std::vector<uint8_t>(40 * 36 * 3, 99)};
    for (size_t i = 0; varied && i < out.pixels.size(); i += 30) out.pixels[i] = 255;
    write_png(folder / "in.png", out);
    return folder / "in.png";
  }
  const Folder folder;
};

// The numbers after the name of a key in a printed table.
std::vector<double> numbers_of(const std::string& text, const std::string& key) {
  const size_t at = text.find("\n" + key + " ");
  EXPECT_NE(at, std::string::npos) << key << "\n" << text;
  if (at == std::string::npos) return std::vector<double>(6);
  std::istringstream line(text.substr(at + 1 + key.size(), text.find('\n', at + 1) - at - 1 - key.size()));
  std::vector<double> out;
  for (double each = 0; line >> each;) out.push_back(each);
  return out;
}

TEST_F(InspectTerms, prints_shares_of_heads_and_scores_of_a_query) {
  const std::string bert = with_tokenizer("bert-sentiment") + " 'hello a' --terms";
  const ProgramResult all = heed(bert);
  EXPECT_EQ(all.exit_code, 0) << all.err;
  for (const char* line : {"\nlayer  head  content-content  content-position  position-content  position-position\n", "\n    0     0 ",
                           "\n    1     2 ", "--layers L --heads H shows the terms of one head"})
    EXPECT_NE(all.out.find(line), std::string::npos) << line << "\n" << all.out;
  EXPECT_EQ(all.out.find("query 0"), std::string::npos) << all.out;
  const ProgramResult one = heed(bert + " --layers 1 --heads 2 --query hello");
  EXPECT_NE(one.out.find("layer 1, head 2, query 1 (hello):\n"), std::string::npos) << one.out << one.err;
  double weights = 0;
  for (const char* key : {"[CLS]", "hello", "a", "[SEP]"}) {
    const std::vector<double> row = numbers_of(one.out, key);
    ASSERT_EQ(row.size(), 6u) << one.out;
    EXPECT_NEAR(row[0] + row[1] + row[2] + row[3], row[4], 0.026);  // five numbers of two digits
    weights += row[5];
  }
  EXPECT_NEAR(weights, 1, 0.0021);
  EXPECT_EQ(heed(bert + " --layers 1 --heads 2 --query 1").out, one.out);
  EXPECT_NE(heed(bert + " --layers 1 --heads 2").out.find(", query 0 ([CLS]):"), std::string::npos);
  // A causal model shows the last token, and of another only the keys before it.
  const std::string causal = fixture("gpt2-lm") + " --ids '5 9 2 33' --terms --layers 0 --heads 1";
  EXPECT_NE(heed(causal).out.find(", query 3 (33):"), std::string::npos);
  const ProgramResult early = heed(causal + " --query 1");
  EXPECT_NE(early.out.find("\n9 "), std::string::npos) << early.out;
  EXPECT_EQ(early.out.find("\n2 "), std::string::npos) << early.out;
  EXPECT_NE(heed(fixture("marian-translate") + " --ids '5 6 7' --target '9 3 1' --terms --maps encoder --layers 0 --heads 0 --query 2")
                .out.find("encoder, layer 0, head 0, query 2 (7):"),
            std::string::npos);
}

TEST_F(InspectTerms, draws_the_terms_over_patches) {
  const std::string vit = fixture("vit-classify") + " " + image(true) + " --terms --layers 0 --heads 0";
  const ProgramResult found = heed(vit);
  EXPECT_EQ(found.exit_code, 0) << found.err;
  for (const char* line : {", query 0 ([class]):\n", "\nrow 3, column 3 ", "the terms over the patches, each less its mean: blank for ",
                           "\ncontent-content:\n  |", "\nposition-position:\n  |", "@@"})
    EXPECT_NE(found.out.find(line), std::string::npos) << line << "\n" << found.out;
  EXPECT_NE(heed(vit + " --query 1,2").out.find(", query 7 (row 1, column 2):\n"), std::string::npos);
  // Learned positions, interpolated for images of another size. An image of one colour has no content.
  const Json grey = Json::parse(heed(fixture("dinov2-model") + " " + image(false) + " --image 48 --terms --json").out)["terms"];
  ASSERT_FALSE(grey["heads"].empty());
  for (const Json& head : grey["heads"]) EXPECT_NEAR(head["shares"]["position_position"].get<double>(), 1, 1e-3);
}

TEST_F(InspectTerms, prints_json) {
  const std::string model = fixture("bert-model") + " --ids '5 9 2 33' --terms --json --layers 1 --heads 0,2 --query 2";
  const Json found = Json::parse(heed(model).out);
  EXPECT_EQ(found["architecture"], "BertModel");
  const Json& terms = found["terms"];
  EXPECT_EQ(terms["kind"], "attention");
  EXPECT_EQ(terms["rows"], (Json{2}));
  EXPECT_EQ(terms["keys"], (Json{"5", "9", "2", "33"}));
  ASSERT_EQ(terms["heads"].size(), 2u);
  const Json maps = Json::parse(heed(fixture("bert-model") + " --ids '5 9 2 33' --json --layers 1 --heads 0,2").out)["maps"][0];
  for (size_t i = 0; i < 2; ++i) {
    const Json& head = terms["heads"][i];
    EXPECT_EQ(head["layer"], 1);
    EXPECT_EQ(head["head"], i == 0 ? 0 : 2);
    EXPECT_EQ(head["weights"][0], maps["weights"][0][i][2]);
    double shares = 0;
    for (const Json& each : head["shares"]) shares += each.get<double>();
    EXPECT_NEAR(shares, 1, 1e-5);
    for (size_t j = 0; j < 4; ++j) {
      double sum = 0;
      for (const char* name : {"content_content", "content_position", "position_content", "position_position"})
        sum += head["terms"][name][0][j].get<double>();
      EXPECT_NEAR(head["scores"][0][j].get<double>(), sum, 1e-5);
    }
  }
}

TEST_F(InspectTerms, refuses_what_it_cannot_show) {
  const std::string bert = fixture("bert-model") + " --ids '5 9 2 33' --terms";
  refused(bert + " --query 4", "--query: found \"4\", expected a token of the text or its number, 0 to 3");
  refused(bert + " --query dog", "--query: found \"dog\", expected a token of the text or its number, 0 to 3");
  refused(bert + " --html x.html", "found --terms with --html, --png or --svg, expected one of them");
  refused(bert + " --shapes", "found --shapes with options of maps, expected one of them");
  refused(fixture("bert-model") + " --terms", "inspect: found no input");
  refused(fixture("llama-grouped") + " --ids '5 9' --terms", "LlamaForCausalLM has rotary: rotates pairs of features");
  refused(fixture("vit-classify") + " " + image(true) + " --terms --query 9,9", "--query: patch 9,9 of 4 x 4");
}

}  // namespace
}  // namespace heed::test
