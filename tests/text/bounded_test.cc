// Tokenizer steps that make a text far longer stop with an error that names the step.
#include <gtest/gtest.h>

#include "heed/text/normalizer.h"
#include "heed/text/tokenizer.h"
#include "tests/io/files.h"
#include "tests/text/vocabularies.h"

namespace heed::test {
namespace {

Json replace(const std::string& what, const std::string& content) {
  return {{"type", "Replace"}, {"pattern", {{"String", what}}}, {"content", content}};
}

// BERT's tokenizer with one part replaced.
Json with(const std::string& part, const Json& json) {
  Json out = bert_json();
  out[part] = json;
  return out;
}

Json many(const std::string& key, const Json& step) {
  Json steps = Json::array();
  for (int i = 0; i < 40; ++i) steps.push_back(step);
  return {{"type", "Sequence"}, {key, steps}};
}

TEST(BoundedText, normalizers_that_double_a_text_forty_times) {
  const Tokenizer growing = tokenizer_of(with("normalizer", many("normalizers", replace("a", "aa"))));
  expect_refused(
      [&] { growing.encode("a"); },
      ": normalizer.normalizers[10] (Replace): the text grew to more than 1040 bytes, expected at most 16 times its size plus 1024");
  EXPECT_EQ(growing.encode("hello").ids, (Ids{2, 14, 3}));  // nothing to double
  expect_refused([&] { growing.encode_all(std::vector<std::string>(100, "banana")); }, "(Replace): the text grew to more than 1120 bytes");
  const Json nested = {
      {"type", "Sequence"},
      {"normalizers", {many("normalizers", {{"type", "Prepend"}, {"prepend", std::string(100, ' ') + "a"}}), {{"type", "Strip"}}}}};
  expect_refused([&] { tokenizer_of(with("normalizer", nested)).encode("b"); }, "(Prepend): the text grew to more than 1040 bytes");
}

// Stripping between the steps does not reset the limit.
TEST(BoundedText, the_limit_follows_from_the_original_text) {
  Json steps = Json::array();
  for (int i = 0; i < 40; ++i) {
    steps.push_back(replace("a", "aa"));
    steps.push_back({{"type", "Prepend"}, {"prepend", " "}});
    steps.push_back({{"type", "Strip"}});
  }
  const Tokenizer growing = tokenizer_of(with("normalizer", {{"type", "Sequence"}, {"normalizers", steps}}));
  expect_refused([&] { growing.encode("a"); }, "(Replace): the text grew to more than 1040 bytes");
}

TEST(BoundedText, one_long_replacement_is_not_made) {
  const Tokenizer growing = tokenizer_of(with("normalizer", replace("a", std::string(1 << 20, 'x'))));
  expect_refused([&] { growing.encode(std::string(100000, 'a')); }, ": normalizer (Replace): the text grew to more than 1601024 bytes");
  const Tokenizer spaced = tokenizer_of(with("pre_tokenizer", {{"type", "Metaspace"}, {"replacement", std::string(4000, '_')}}));
  expect_refused([&] { spaced.encode("a a a a"); }, ": pre_tokenizer (Metaspace): the text grew to more than 1136 bytes");
}

TEST(BoundedText, the_longest_decomposition_fits) {
  const std::string longest = "\uFDFA";  // 3 bytes; NFKC gives 33 bytes with 3 spaces
  std::string text;
  for (int i = 0; i < 1000; ++i) text += longest;
  text::Aligned aligned(text);
  const Json form = {{"type", "NFKC"}}, spaces = replace(" ", "\u2581");
  const Json both = {{"type", "Sequence"}, {"normalizers", {form, spaces}}};
  text::make_normalizer({both, "n"})(aligned);
  EXPECT_EQ(aligned.text.size(), 39000u);
}

TEST(BoundedText, decoders_that_double_a_text_forty_times) {
  const Tokenizer growing = tokenizer_of(with("decoder", many("decoders", replace("a", "aa"))));
  expect_refused([&] { growing.decode(Ids{15}); }, "(Replace): the tokens grew to more than 1040 bytes");
  EXPECT_EQ(growing.decode(Ids{14}), "hello");
}

TEST(BoundedText, decoding_a_long_token_is_not_quadratic) {
  Json json = with("decoder", {{"type", "Metaspace"}});
  json["model"]["vocab"][std::string(1 << 20, 'm')] = 100;
  std::string marks;
  for (int i = 0; i < 1 << 20; ++i) marks += "\u2581";
  json["model"]["vocab"][marks] = 101;
  EXPECT_EQ(tokenizer_of(json).decode(Ids{100, 101}).size(), size_t{2} << 20);
}

TEST(BoundedText, templates_and_added_tokens) {
  Json json = bert_json();
  json["post_processor"]["special_tokens"]["[CLS]"]["ids"] = std::vector<int>(1000, 2);
  json["post_processor"]["single"].push_back({{"SpecialToken", {{"id", "[CLS]"}, {"type_id", 0}}}});
  expect_refused([&] { tokenizer_of(json); }, ": post_processor.single: found more than 1024 special tokens");
  json = bert_json();
  json["added_tokens"].push_back({{"id", 100}, {"content", std::string(2000, 'a')}, {"special", true}});
  expect_refused([&] { tokenizer_of(json); }, "of 2000 bytes, expected at most 1024");
}

}  // namespace
}  // namespace heed::test
