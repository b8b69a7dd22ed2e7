// heed inspect from the command line: the tree, pages, drawings, terminal output and errors.
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "heed/cli/inspect_tree.h"
#include "heed/io/json.h"
#include "heed/models/inspection.h"
#include "tests/cli/program.h"
#include "tests/structure/source.h"
#include "tests/text/vocabularies.h"

namespace heed::test {
namespace {

class InspectProgram : public testing::Test {
 protected:
  static ProgramResult heed(const std::string& arguments) { return run_heed("inspect " + arguments); }
  void refused(const std::string& arguments, int exit_code, const std::string& message) {
    const ProgramResult outcome = heed(arguments);
    EXPECT_EQ(outcome.exit_code, exit_code) << arguments << "\n" << outcome.err;
    EXPECT_NE(outcome.err.find(message), std::string::npos) << outcome.err;
  }
  static std::string fixture(const std::string& name) { return std::string(HEED_SOURCE_DIR) + "/tests/fixtures/" + name; }
  // A copy of a fixture with a tokenizer.
  std::string with_tokenizer(const std::string& name) {
    const Path to = folder / name;
    std::filesystem::copy(fixture(name), to);
    Json json = bert_json();
    for (const char* odd : {"<s>", "</script>", "\"&"}) {
      const auto id = static_cast<int>(json["model"]["vocab"].size());
      json["model"]["vocab"][odd] = id;
      json["added_tokens"].push_back({{"id", id}, {"content", odd}, {"special", false}, {"normalized", false}});
    }
    put(to / "tokenizer.json", json.dump());
    return to;
  }
  std::string image() {
    Image out{.width = 40, .height = 36};
    for (int i = 0; i < 40 * 36 * 3; ++i) out.pixels.push_back(static_cast<uint8_t>(i * 37 % 251));
    write_png(folder / "in.png", out);
    return folder / "in.png";
  }
  std::string file(const char* name) const { return folder / name; }
  const Folder folder;
};

std::string between(const std::string& text, const std::string& begin, const std::string& end) {
  const size_t from = text.find(begin);
  if (from == std::string::npos) return "";
  return text.substr(from + begin.size(), text.find(end, from + begin.size()) - from - begin.size());
}

std::string from_base64(const std::string& text) {
  std::string out;
  uint32_t bits = 0;
  int count = 0;
  for (char letter : text) {
    const size_t digit = std::string_view("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/").find(letter);
    if (digit == std::string::npos) break;
    bits = bits << 6 | static_cast<uint32_t>(digit);
    if ((count += 6) >= 8) out += static_cast<char>(bits >> (count -= 8) & 255);
  }
  return out;
}

// The weights of a page, decoded as its script does.
std::vector<double> unpacked(const Json& set) {
  const std::string weights = from_base64(set["weights"]), most = from_base64(set["most"]);
  const size_t M = set["columns"].size();
  std::vector<double> out;
  for (size_t i = 0; i < weights.size(); ++i) {
    float largest = 0;
    std::memcpy(&largest, most.data() + i / M * 4, 4);
    out.push_back(largest * std::pow(static_cast<unsigned char>(weights[i]) / 255.0, 2));
  }
  return out;
}

// Tags are balanced; scripts and styles contain no tags.
void expect_balanced(const std::string& page) {
  std::vector<std::string> open;
  for (size_t at = page.find('<'); at != std::string::npos; at = page.find('<', at)) {
    const size_t end = page.find('>', at);
    ASSERT_NE(end, std::string::npos);
    const bool closes = page[at + 1] == '/', alone = page[end - 1] == '/' || page[at + 1] == '!';
    const std::string name = page.substr(at + 1 + closes, page.find_first_of(" >/", at + 1 + closes) - at - 1 - closes);
    at = end + 1;
    if (closes) {
      ASSERT_FALSE(open.empty()) << name;
      ASSERT_EQ(open.back(), name);
      open.pop_back();
    } else if (!alone && name != "meta" && name != "input") {
      open.push_back(name);
      if (name == "script" || name == "style") at = page.find("</" + name, at);
    }
  }
  EXPECT_TRUE(open.empty()) << open.back();
}

TEST(InspectFigures, are_formatted_with_units) {
  EXPECT_EQ(cli::readable_count(999), "999");
  EXPECT_EQ(cli::readable_count(999'999), "1.00 M");
  EXPECT_EQ(cli::readable_count(17'563'828'224), "17.6 G");
  EXPECT_EQ(cli::readable_bytes(1023), "1023 B");
  EXPECT_EQ(cli::readable_bytes(346'270'624), "330 MiB");
}

TEST_F(InspectProgram, prints_the_tree) {
  const ProgramResult tree = heed(fixture("gpt2-lm"));
  EXPECT_EQ(tree.exit_code, 0) << tree.err;
  for (const char* line : {"GPT2LMHeadModel: 69840 parameters, 273 KiB\n", "  h 0..1 x 2 ", "    each ",
                           "        c_attn    (48, 144) + (144)  f32 ", "        (attend) ", "lm_head (tied) ", "\ntotal ",
                           "Key/value cache: 768 B per token of a text\n", "For a batch of 1 with 64 tokens each: "})
    EXPECT_NE(tree.out.find(line), std::string::npos) << line << "\n" << tree.out;
  const ProgramResult all = heed(fixture("gpt2-lm") + " --all --size 'batch=2 tokens=10'");
  EXPECT_EQ(all.out.find("0..1"), std::string::npos) << all.out;
  EXPECT_NE(all.out.find("For a batch of 2 with 10 tokens each: "), std::string::npos) << all.out;
  const Json json = Json::parse(heed(fixture("bert-sentiment") + " --json").out);
  EXPECT_EQ(json["architecture"], "BertForSequenceClassification");
  int64_t sum = 0;
  for (const Json& module : json["modules"]) sum += module["multiply_adds"].get<int64_t>();
  EXPECT_EQ(json["multiply_adds"], sum);
  EXPECT_EQ(json["modules"][0]["tensors"][0]["name"], "bert.embeddings.word_embeddings.weight");
}

TEST_F(InspectProgram, prints_shapes) {
  const ProgramResult example = heed(fixture("gpt2-lm") + " --shapes --size tokens=5");
  EXPECT_EQ(example.exit_code, 0) << example.err;
  for (const char* line : {"transformer.h.0..1.attn.map     (1, 3, 5, 5)   f32    q (1, 3, 5, 16), k (1, 3, 5, 16)\n",
                           "hidden_states.0..2 ", "lm_head.(tied) "})
    EXPECT_NE(example.out.find(line), std::string::npos) << line << "\n" << example.out;
  const ProgramResult all = heed(fixture("gpt2-lm") + " --shapes --all --ids '3 4 5'");
  EXPECT_NE(all.out.find("transformer.h.1.attn.map     (1, 3, 3, 3)"), std::string::npos) << all.out << all.err;
  const ProgramResult steps = heed("lstm-additive --shapes --size tokens=3");  // the same calls for every token
  for (const char* line : {"encoder.layers.0.back.hidden x 3 ", "decoder.attention.query x 3 ", "decoder.layers.0.hidden x 3 "})
    EXPECT_NE(steps.out.find(line), std::string::npos) << line << "\n" << steps.out;
  EXPECT_EQ(heed("lstm-additive --shapes --size tokens=3 --all").out.find(" x 3"), std::string::npos);
  const Json json = Json::parse(heed(fixture("resnet-basic") + " --shapes --json").out);  // no attention
  EXPECT_EQ(json["shapes"].front()["from"], "input");
  EXPECT_EQ(json["shapes"].back()["name"], "logits");
  const Json image = Json::parse(heed(fixture("vit-classify") + " " + this->image() + " --shapes --json").out);
  EXPECT_EQ(image["shapes"][0]["name"], "pixel_values");
  refused(fixture("gpt2-lm") + " --shapes --html x.html 'a'", 2, "found --shapes with options of maps");
  refused("vit-tiny " + this->image() + " --image 48", 2, "is a preset without weights");
}

TEST_F(InspectProgram, the_document_shows_the_help) {
  const std::string page = read_source("docs/inspect.md");
  EXPECT_NE(page.find(heed("--help").out), std::string::npos);
  EXPECT_NE(page.find("$ heed inspect tests/fixtures/gpt2-lm\n" + heed(fixture("gpt2-lm")).out), std::string::npos);
}

TEST_F(InspectProgram, a_config_alone_is_enough) {
  put(folder / "config.json", R"({"architectures": ["LlamaForCausalLM"], "max_position_embeddings": 256})");
  const ProgramResult tree = heed(folder.path().string());
  EXPECT_EQ(tree.exit_code, 0) << tree.err;
  EXPECT_NE(tree.out.find("LlamaForCausalLM: 6738415616 parameters, 25.1 GiB\n"), std::string::npos) << tree.out;
}

TEST_F(InspectProgram, shows_text_in_the_terminal) {
  const ProgramResult view = heed(with_tokenizer("bert-sentiment") + " 'Hello, <s> a!'");
  EXPECT_EQ(view.exit_code, 0) << view.err;
  for (const char* line : {"BertForSequenceClassification, Hello, <s> a!\n", "layer 1, mean of 3 heads:\n", "  [CLS] ->  ", "  <s>   ->  "})
    EXPECT_NE(view.out.find(line), std::string::npos) << line << "\n" << view.out;
  EXPECT_EQ(view.out.find("layer 0"), std::string::npos) << view.out;
  const ProgramResult chosen = heed(file("bert-sentiment") + " --layers 0 --heads 2 hello --pair a");
  EXPECT_NE(chosen.out.find("layer 0, head 2:\n"), std::string::npos) << chosen.out << chosen.err;
  const Json json = Json::parse(heed(file("bert-sentiment") + " --layers 0-1 --heads 2 --json 'hello a'").out);
  EXPECT_EQ(json["maps"][0]["queries"], (Json{"[CLS]", "hello", "a", "[SEP]"}));
  EXPECT_EQ(json["maps"][0]["weights"].size(), 2u);
  double sum = 0;
  for (const Json& weight : json["maps"][0]["weights"][1][0][3]) sum += weight.get<double>();
  EXPECT_NEAR(sum, 1, 1e-5);
}

TEST_F(InspectProgram, writes_a_self_contained_page) {
  const ProgramResult ran = heed(with_tokenizer("bert-sentiment") + " 'hello </script> <s> \"& a' --html " + file("page.html"));
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  const std::string page = get(folder / "page.html");
  expect_balanced(page);
  for (const char* outside : {"http:", "https:", "src=", "@import", "url("}) EXPECT_EQ(page.find(outside), std::string::npos) << outside;
  EXPECT_NE(page.find("<b class=\"input\">hello &lt;/script&gt; &lt;s&gt; &quot;&amp; a</b>"), std::string::npos);
  const Json data = Json::parse(between(page, "<script type=\"application/json\" id=\"data\">", "</script>"));
  const Json& set = data["sets"][0];
  EXPECT_EQ(set["rows"], (Json{"[CLS]", "hello", "</script>", "<s>", "\"&", "a", "[SEP]"}));
  EXPECT_EQ(data["sets"][1]["kind"], "rollout");
  for (const Json& each : data["sets"]) {
    const std::vector<double> weights = unpacked(each);
    ASSERT_EQ(weights.size(), each["layers"].size() * each["heads"].size() * 49);
    for (size_t row = 0; row < weights.size(); row += 7)
      EXPECT_NEAR(std::accumulate(weights.begin() + static_cast<int64_t>(row), weights.begin() + static_cast<int64_t>(row) + 7, 0.0), 1,
                  0.005);
  }
  const Json exact = Json::parse(heed(file("bert-sentiment") + " --json 'hello </script> <s> \"& a'").out);
  EXPECT_NEAR(unpacked(set)[7 * 3 + 2], exact["maps"][0]["weights"][0][0][3][2].get<double>(), 0.003);
}

TEST_F(InspectProgram, draws_text) {
  const ProgramResult ran =
      heed(with_tokenizer("bert-sentiment") + " 'hello <s> a' --heads 0,1 --png " + file("a.png") + " --svg " + file("a.svg"));
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_NE(ran.out.find("a.svg: "), std::string::npos) << ran.out;
  const Image image = read_image(folder / "a.png");
  const std::string svg = get(folder / "a.svg");
  expect_balanced(svg);
  EXPECT_NE(svg.find("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" + std::to_string(image.width) + "\" height=\"" +
                     std::to_string(image.height)),
            std::string::npos);
  for (const char* text : {">&lt;s&gt;</text>", ">layer 1</text>", ">head 1</text>", ">mean</text>"})
    EXPECT_NE(svg.find(text), std::string::npos) << text;
}

TEST_F(InspectProgram, shows_attention_over_images) {
  const std::string vit = fixture("vit-classify") + " " + image();
  const ProgramResult view = heed(vit);
  EXPECT_EQ(view.exit_code, 0) << view.err;
  EXPECT_NE(view.out.find("rollout over all layers:\n  |"), std::string::npos) << view.out;
  EXPECT_NE(view.out.find("From 0 to the largest weight of a grid: ' .:-=+*#%@'\n"), std::string::npos) << view.out;
  const ProgramResult ran = heed(vit + " --query 1,2 --html " + file("v.html") + " --png " + file("v.png") + " --svg " + file("v.svg"));
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  const std::string page = get(folder / "v.html");
  expect_balanced(page);
  const Json data = Json::parse(between(page, "<script type=\"application/json\" id=\"data\">", "</script>"));
  EXPECT_EQ(data["grid"]["rows"], 4);
  EXPECT_EQ(data["grid"]["first"], 1);
  const std::string png = from_base64(data["image"].get<std::string>().substr(22));
  EXPECT_EQ(parse_image(std::as_bytes(std::span(png)), "page").width, 32);
  EXPECT_GT(read_image(folder / "v.png").width, 300);
  EXPECT_NE(get(folder / "v.svg").find(">rollout, row 1, column 2</text>"), std::string::npos);
  const Json registers = Json::parse(heed(fixture("dinov2-registers") + " " + image() + " --json").out)["maps"][0]["keys"];
  EXPECT_EQ(registers[2], "[register 2]");
  EXPECT_EQ(registers[3], "row 0, column 0");
  const Json distilled = Json::parse(heed(fixture("deit-teacher") + " " + image() + " --json").out)["maps"][0]["keys"];
  EXPECT_EQ(distilled[1], "[distillation]");
}

TEST_F(InspectProgram, aligns_translations) {
  const std::string model = fixture("marian-translate") + " --ids '5 6 7 8' ";
  const ProgramResult own = heed(model + "--html " + file("t.html") + " --png " + file("t.png"));
  EXPECT_EQ(own.exit_code, 0) << own.err;
  const Json data = Json::parse(between(get(folder / "t.html"), "<script type=\"application/json\" id=\"data\">", "</script>"));
  EXPECT_EQ(data["sets"].size(), 3u);
  EXPECT_EQ(data["sets"][0]["kind"], "cross");
  const ProgramResult given = heed(model + "--target '9 3 1'");
  EXPECT_NE(given.out.find("cross, layer 1, mean of 3 heads:\n  9 ->  "), std::string::npos) << given.out << given.err;
  EXPECT_NE(heed(model + "--target '9 3 1' --maps encoder").out.find("encoder, layer 1, mean of 3 heads:\n  5 ->  "), std::string::npos);
}

TEST_F(InspectProgram, refuses_with_the_right_exit_code) {
  const std::string bert = with_tokenizer("bert-sentiment"), vit = fixture("vit-classify");
  refused("", 2, "model");
  refused("/nowhere", 3, "/nowhere: there is no such folder");
  std::filesystem::create_directory(folder / "empty");
  refused(file("empty"), 3, "config.json: there is no such file");
  put(folder / "empty/config.json", R"({"architectures": ["BertModel"], "hidden_size": -1})");
  refused(file("empty"), 3, "hidden_size is \"-1\"");
  refused(bert + " hello --layers 2", 2, "inspect: layer 2, expected 0 to 1");
  refused(bert + " hello --heads 0-3", 2, "inspect: head 3, expected 0 to 2");
  refused(bert + " hello --layers x", 2, "--layers: found \"x\", expected a number");
  refused(bert + " hello --layers 3-1", 2, "expected for example 0,3-5");
  refused(bert + " --html x.html", 2, "inspect: found no input");
  refused(bert + " hello a", 2, "found 2 inputs, expected one at most");
  refused(bert + " hello --target a", 2, "--target for BertForSequenceClassification, expected a model that translates");
  refused(bert + " hello --query 1,1", 2, "--query: is only for images");
  refused(bert + " hello --maps cross", 2, "--maps: BertForSequenceClassification has no cross maps");
  refused(bert + " --size tokens=65", 2, "cost: 65 tokens, the model has 64 positions");
  refused(bert + " --size token=6", 2, "did you mean 'tokens'?");
  refused(bert + " --size tokens=0", 2, "--size: tokens=0, expected 1 or more");
  refused(bert + " " + image(), 3, "in.png: is an image, but BertForSequenceClassification takes text");
  refused(bert + " none.png", 3, "none.png: there is no such file");  // not a sentence
  refused(bert + " --ids '5 300'", 3, "inspect: found token 300, expected less than 211, the vocabulary size");
  refused(bert + " --ids '5 x'", 2, "expected token ids separated by");
  refused(bert + " --ids ''", 3, "has no tokens, expected one or more");
  refused(bert + " '" + std::string(200, '!') + "'", 3, "tokens, expected at most 64, the positions of the model");
  refused(fixture("bert-model") + " hello", 3, "; without a tokenizer, --ids takes token ids instead of words");
  refused(vit + " 'a sentence'", 3, "a sentence: there is no such file; ViTForImageClassification takes images");
  put(folder / "broken.png", "no image");
  refused(vit + " " + file("broken.png"), 3, "broken.png: ");
  refused(vit + " " + image() + " --query 4,0", 2, "--query: patch 4,0 of 4 x 4");
  refused(bert + " hello --html /nowhere/page.html", 1, "/nowhere/page.html: ");
  refused(bert + " hello --png /nowhere/page.png", 1, "/nowhere/page.png: ");
}

}  // namespace
}  // namespace heed::test
