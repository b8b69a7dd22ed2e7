// The one list of choices: names are unique, architectures support what they can, and the documents show the list.
#include "heed/models/choices.h"

#include <gtest/gtest.h>

#include <set>

#include "heed/models/architecture.h"
#include "tests/cli/program.h"
#include "tests/structure/source.h"

namespace heed::test {
namespace {

using Names = std::vector<std::string>;

TEST(Choices, names_and_aliases_are_unique) {
  for (const Choices& list : all_choices()) {
    std::set<std::string> names;
    for (const Choice& each : list.all) {
      EXPECT_FALSE(each.summary.empty()) << each.name;
      EXPECT_TRUE(names.insert(each.name).second) << each.name;
      EXPECT_EQ(list.find(each.name), &each);
      for (const std::string& alias : each.aliases) {
        EXPECT_TRUE(names.insert(alias).second) << alias;
        EXPECT_EQ(list.find(alias), &each);
      }
    }
    EXPECT_EQ(list.find("nothing"), nullptr);
  }
}

TEST(Choices, every_term_that_models_can_use_is_in_the_list) {
  for (const TermInfo& info : term_infos())
    if (info.use == TermUse::position || info.use == TermUse::pattern) {
      EXPECT_EQ(choices(info.use == TermUse::position ? "positions" : "pattern").find(info.name)->term, &info);
    }
}

TEST(Choices, texts_become_json_and_are_read_again) {
  const Choices &patterns = choices("pattern"), &positions = choices("positions");
  EXPECT_EQ(parse_chosen(patterns, "chunks:16:shifted").json(), Json::parse(R"({"kind": "chunks", "size": 16, "shifted": true})"));
  EXPECT_EQ(parse_chosen(patterns, "causal").json(), Json::parse(R"({"kind": "causal"})"));
  EXPECT_EQ(parse_chosen(positions, "rope").json(), "rotary");
  EXPECT_EQ(parse_chosen(positions, "relative").json(), "relative");
  for (const Json& value : {Json("window:4:2"), parse_chosen(patterns, "window:4:2").json()}) {
    const std::vector<Chosen> read = chosen_in(Config({{"pattern", value}}, "config.json"), "pattern");
    ASSERT_EQ(read.size(), 1u);
    EXPECT_EQ(read[0].given, (TermValues{{"before", 4}, {"after", 2}}));
  }
  EXPECT_EQ(chosen_names(Json::parse(R"(["rope", "relative:4", {"kind": "t5"}, {"kind": 3}, 5, "other"])"), positions),
            (Names{"rotary", "relative", "bucketed", "other"}));
}

TEST(Choices, architectures_support_what_they_can) {
  const auto supported = [](const char* architecture, const char* key) {
    return supported_choices(*architecture_named("held", architecture).family, choices(key));
  };
  EXPECT_EQ(supported("ViTModel", "positions"), choices("positions").names());
  EXPECT_EQ(supported("ViTModel", "pooling"), (Names{"cls", "gap", "map", "flatten"}));
  EXPECT_EQ(supported("BertModel", "pooling"), (Names{"cls", "gap", "map"}));
  EXPECT_EQ(supported("GPT2LMHeadModel", "pooling"), Names());
  EXPECT_EQ(supported("BertModel", "attention"), (Names{"soft", "hard", "linear"}));
  EXPECT_EQ(supported("LlamaForCausalLM", "pattern"), (Names{"causal", "window", "chunks", "dilated"}));
  const Names bert = supported("BertModel", "positions"), gpt = supported("GPT2LMHeadModel", "positions"),
              marian = supported("MarianMTModel", "positions");
  const auto has = [](const Names& names, const char* name) { return std::find(names.begin(), names.end(), name) != names.end(); };
  EXPECT_TRUE(has(bert, "relative_content") && has(bert, "learned") && !has(bert, "gaussian"));
  EXPECT_TRUE(!has(gpt, "relative_content") && has(gpt, "learned") && has(gpt, "bucketed"));
  EXPECT_TRUE(!has(marian, "learned") && has(marian, "sinusoidal"));
}

TEST(Choices, the_documents_show_the_lists) {
  const std::string models = read_source("docs/models.md"), attention = read_source("docs/attention.md");
  for (const Choices& list : all_choices()) {
    const std::string text = output_of_heed("variants " + list.key);
    EXPECT_NE(models.find(text), std::string::npos) << "docs/models.md lacks\n" << text;
  }
  const std::string terms = output_of_heed("variants terms");
  EXPECT_NE(attention.find(terms), std::string::npos) << "docs/attention.md lacks\n" << terms;
  EXPECT_EQ(output_of_heed("variants position"),
            "2: heed: variants: found 'position', expected one of positions, pattern, attention, features, "
            "pooling, norm, terms; did you mean 'positions'?\n");
}

}  // namespace
}  // namespace heed::test
