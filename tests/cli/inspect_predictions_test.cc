// Predictions and token labels shown by heed inspect.
#include <gtest/gtest.h>

#include "heed/io/image.h"
#include "heed/io/json.h"
#include "heed/io/markup.h"
#include "heed/models/inspect.h"
#include "heed/train/report_draw.h"
#include "tests/cli/program.h"
#include "tests/text/vocabularies.h"

namespace heed::test {
namespace {

class InspectPrediction : public testing::Test {
 protected:
  // A copy of a fixture with a tokenizer.
  std::string model(const std::string& name, const Json& tokenizer) {
    const Path to = folder / name;
    std::filesystem::copy(std::string(HEED_SOURCE_DIR) + "/tests/fixtures/" + name, to);
    put(to / "tokenizer.json", tokenizer.dump());
    return to;
  }
  // A tokenizer of words: w5 is token 5.
  static Json words() {
    Json vocabulary = Json::object();
    for (int i = 0; i < 211; ++i) vocabulary["w" + std::to_string(i)] = i;
    return with_model({{"type", "WordLevel"}, {"unk_token", "w2"}, {"vocab", vocabulary}},
                      {{"pre_tokenizer", {{"type", "WhitespaceSplit"}}}});
  }
  std::string page(const std::string& arguments) const {
    const ProgramResult ran = run_heed("inspect " + arguments + " --html " + (folder / "page.html").string());
    EXPECT_EQ(ran.exit_code, 0) << ran.err;
    return get(folder / "page.html");
  }
  static Json data_in(const std::string& page) {
    const std::string begin = "<script type=\"application/json\" id=\"data\">";
    const size_t from = page.find(begin) + begin.size();
    return Json::parse(page.substr(from, page.find("</script>", from) - from));
  }
  const Folder folder;
};

void expect_in(const std::string& page, const std::string& text) { EXPECT_NE(page.find(text), std::string::npos) << text; }

TEST_F(InspectPrediction, pages_share_the_style_of_reports) { expect_in(page(model("gpt2-lm", words()) + " w5"), kReportStyle); }

TEST_F(InspectPrediction, predictions_equal_those_of_heed_predict) {
  Image image{.width = 40, .height = 36};
  for (int i = 0; i < 40 * 36 * 3; ++i) image.pixels.push_back(static_cast<uint8_t>(i * 37 % 251));
  write_png(folder / "in.png", image);
  const std::string vit = std::string(HEED_SOURCE_DIR) + "/tests/fixtures/vit-classify", bert = model("bert-sentiment", bert_json());
  for (const std::string& input : {vit + " " + (folder / "in.png").string(), bert + " 'hello a'"}) {
    const std::string html = page(input), view = output_of_heed("inspect " + input);
    expect_in(html, "<h3>Prediction: class</h3>");
    const Json json = Json::parse(output_of_heed("inspect --json " + input)),
               expected = Json::parse(output_of_heed("predict --json --top 5 " + input));
    ASSERT_EQ(json["prediction"].size(), 1u);
    const Json& labels = json["prediction"][0]["labels"];
    ASSERT_EQ(labels.size(), expected["labels"].size());
    for (size_t i = 0; i < labels.size(); ++i) {
      EXPECT_EQ(labels[i]["label"], expected["labels"][i]["label"]);
      EXPECT_NEAR(labels[i]["score"].get<double>(), expected["labels"][i]["score"].get<double>(), 1e-5);
      const std::string shown = figure_text("recall", labels[i]["score"].get<double>());
      expect_in(html, "<th scope=\"row\">" + escape_markup(labels[i]["label"].get<std::string>()) +
                          "</th><td class=\"number\"><span class=\"value\">" + shown + "</span>");
      expect_in(view, labels[i]["label"].get<std::string>() + " ");
    }
  }
}

TEST_F(InspectPrediction, shows_words_token_labels_and_values) {
  const std::string masked = model("bert-masked", bert_json());
  const Json filled = Json::parse(output_of_heed("predict --json " + masked + " 'a [MASK] a [MASK]'"));
  const Json predictions = Json::parse(output_of_heed("inspect --json " + masked + " 'a [MASK] a [MASK]'"))["prediction"];
  ASSERT_EQ(predictions.size(), 2u);
  for (size_t i = 0; i < 2; ++i) EXPECT_EQ(predictions[i]["labels"][0]["id"], filled["masks"][i]["words"][0]["id"]);
  expect_in(page(model("bert-tokens", bert_json()) + " 'hello a'"),
            "<h3>Prediction: label of every token</h3><p class=\"tokens list\"><span><b>[CLS]</b> ");
  expect_in(page(model("bert-regression", bert_json()) + " 'hello a'"), "<h3>Prediction: value</h3>");
  const std::string gpt = model("gpt2-lm", words());
  expect_in(page(gpt + " 'w5 w6 w7'"), "<h3>Prediction: next token</h3>");
  const std::string next = output_of_heed("generate " + gpt + " 'w5 w6 w7' --greedy --max-new-tokens 1");
  const Json best = Json::parse(output_of_heed("inspect --json " + gpt + " 'w5 w6 w7'"))["prediction"][0]["labels"][0];
  expect_in(next, best["label"].get<std::string>());
  EXPECT_EQ(Json::parse(output_of_heed("inspect --json " + model("bert-model", bert_json()) + " hello"))["prediction"], Json::array());
}

TEST_F(InspectPrediction, shows_the_translation) {
  const std::string marian = model("marian-translate", words());
  std::string own = output_of_heed("translate " + marian + " 'w5 w9 w11' --max-length 20");
  own.pop_back();
  ASSERT_FALSE(own.empty());
  std::string html = page(marian + " 'w5 w9 w11'");
  expect_in(html, "<h3>Translation by the model</h3><dl><dt>source</dt><dd>w5 w9 w11</dd><dt>translation</dt><dd>" +
                      own.substr(0, own.find(' ')));
  expect_in(output_of_heed("inspect " + marian + " 'w5 w9 w11'"), "translation: " + own.substr(0, own.find(' ')));
  expect_in(page(marian + " 'w5 w9' --target 'w3 w1'"),
            "<h3>Provided translation</h3><dl><dt>source</dt><dd>w5 w9</dd><dt>translation</dt><dd>w3 w1</dd>");
  const Json sets = data_in(html)["sets"];
  EXPECT_EQ(sets[0]["causal"], false);
  EXPECT_EQ(sets[2]["kind"], "decoder");
  EXPECT_EQ(sets[2]["causal"], true);
}

TEST_F(InspectPrediction, shows_byte_level_tokens_as_text) {
  Json vocabulary = Json::object();
  int id = 0;
  for (const char* token : {"S", "t", "r", "a", "e", "\u00c3", "\u0141", "\u00c3\u0141", "\u0120", "\u010a"}) vocabulary[token] = id++;
  const Json level = {{"type", "ByteLevel"}, {"add_prefix_space", false}}, merges = {"\u00c3 \u0141"};
  const std::string gpt = model(
      "gpt2-lm", with_model({{"type", "BPE"}, {"vocab", vocabulary}, {"merges", merges}}, {{"pre_tokenizer", level}, {"decoder", level}}));
  const std::string input = gpt + " 'a\u00df e\na'";
  const Json labels{"a", "\u00df", "\u00b7", "e", "\u23ce", "a"};
  const std::string html = page(input);
  EXPECT_EQ(data_in(html)["sets"][0]["rows"], labels);
  EXPECT_EQ(data_in(html)["sets"][0]["causal"], true);
  EXPECT_EQ(html.find("\u00c3\u0141"), std::string::npos);
  const std::string view = output_of_heed("inspect " + input);
  expect_in(view, "\n  \u00df ->");
  expect_in(view, "\n  \u23ce ->");
  EXPECT_EQ(view.find('?'), std::string::npos) << view;
}

TEST_F(InspectPrediction, rows_of_causal_maps_have_their_own_scale) {
  const std::vector<float> map{1, 0, 0, 0.5, 0.5, 0, 0.2f, 0.2f, 0.6f};
  EXPECT_EQ(scaled_by_row(map, 3), (std::vector<float>{1, 0, 0, 1, 1, 0, 0.2f / 0.6f, 0.2f / 0.6f, 1}));
  EXPECT_EQ(scaled_by_row(std::vector<float>{0, 0}, 2), (std::vector<float>{0, 0}));
  AttentionMaps maps{.layers = {0}, .heads = {0}, .N = 3, .M = 3, .weights = map};
  EXPECT_TRUE(maps.causal());
  maps.weights[2] = 0.1f;
  EXPECT_FALSE(maps.causal());
  // In drawings, the last row of a causal map is as bright as the first.
  const std::string gpt = model("gpt2-lm", words());
  const ProgramResult ran = run_heed("inspect " + gpt + " 'w5 w6 w7' --svg " + (folder / "a.svg").string());
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  expect_in(get(folder / "a.svg"), "each matrix row scaled by its largest weight");
}

}  // namespace
}  // namespace heed::test
