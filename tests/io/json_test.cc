#include "heed/io/json.h"

#include "tests/io/files.h"

namespace heed::test {
namespace {

TEST(Json, round_trips) {
  const Folder folder;
  const Json json = {{"a", {1, -2, 2.5, true, nullptr}}, {"b", {{"c", "\xc3\xa4\n"}}}, {"list", Json::array()}, {"object", Json::object()}};
  write_json(folder / "a.json", json);
  EXPECT_EQ(read_json(folder / "a.json"), json);
}

TEST(Json, reads_values_of_every_kind) {
  const Json json = parse_json(
      "text", R"( {"n": [0, -1, 18446744073709551615, 1e3, -0.5], "s": "\u00e4\ud83d\ude00", "t": [true, false, null], "e": [[], {}]} )");
  EXPECT_EQ(json["n"][2].get<uint64_t>(), 18446744073709551615u);
  EXPECT_EQ(json["n"][3].get<double>(), 1000);
  EXPECT_EQ(json["s"], "\xc3\xa4\xf0\x9f\x98\x80");
  EXPECT_EQ(json["t"], Json({true, false, nullptr}));
  EXPECT_EQ(json["e"].size(), 2u);
  EXPECT_EQ(parse_json("text", "7"), 7);
}

TEST(Json, refuses_invalid_texts) {
  const std::string deep(65, '['), fine(64, '[');
  const struct {
    const char* name;
    std::string text, fragment;
  } bad[] = {
      {"duplicate key", R"({"a": 1, "a": 2})", "text: byte 12: found the key \"a\" a second time"},
      {"duplicate key inside", R"([{"b": {"a": 1, "b": 2, "a": 3}}])", "found the key \"a\" a second time"},
      {"duplicate key, escaped differently", R"({"a": 1, "\u0061": 2})", "found the key \"a\" a second time"},
      {"too deep", deep, "text: byte 65: found values nested more than 64 levels deep"},
      {"too deep, objects",
       [] {
         std::string text;
         for (int i = 0; i < 65; ++i) text += R"({"a":)";
         return text;
       }(),
       "nested more than 64 levels deep"},
      {"nothing", "", "text: byte 0: found a syntax error, expected JSON"},
      {"spaces", "  \n ", "unexpected end of input"},
      {"cut short", R"({"a": [1, 2)", "text: byte 11: found a syntax error"},
      {"two values", "{} {}", "expected end of input"},
      {"trailing comma", "[1,]", "unexpected ']'"},
      {"no quotes", "{a: 1}", "text: byte 2: found a syntax error"},
      {"comment", "// hello\n1", "found a syntax error"},
      {"not a number", "[NaN]", "found a syntax error"},
      {"number too large", "[1e999]", "expected JSON: \"number overflow"},
      {"leading zero", "[01]", "found a syntax error"},
      {"broken UTF-8", "[\"\xff\"]", "text: byte 3: found a syntax error"},
      {"overlong UTF-8", "[\"\xc0\x80\"]", "found a syntax error"},
      {"surrogate in UTF-8", "[\"\xed\xa0\x80\"]", "found a syntax error"},
      {"lone surrogate", R"(["\ud83d"])", "found a syntax error"},
      {"control character", "[\"\n\"]", "found a syntax error"},
      {"zero byte at the end", std::string("{}\0garbage", 10), "text: byte 2: found a zero byte"},
      {"endless string", std::string("\"").append(5 << 20, 'x'), "found a string, number or whitespace of more than 4194304 bytes"},
      {"endless number", std::string(5 << 20, '1'), "found a string, number or whitespace of more than 4194304 bytes"},
      {"endless spaces", std::string("[").append(5 << 20, ' '), "found a string, number or whitespace of more than 4194304 bytes"},
  };
  for (const auto& c : bad) {
    SCOPED_TRACE(c.name);
    expect_refused([&] { parse_json("text", c.text); }, c.fragment);
  }
  expect_refused([&] { parse_json("text", fine); }, "unexpected end of input");
  EXPECT_EQ(parse_json("text", fine + std::string(64, ']')).size(), 1u);
}

TEST(Json, refuses_texts_above_its_limits) {
  expect_refused([] { parse_json("text", "[1, 2, 3]", 5); }, "text: found 9 bytes of JSON, expected at most 5");
  std::string many = "[0";
  for (int64_t i = 1; i <= kMaxJsonValues; ++i) many += ",0";
  expect_refused([&] { parse_json("text", many + "]"); }, "found more than 4000000 values");
}

TEST(Json, reads_a_large_vocabulary_quickly) {
  std::string text = "{";
  for (int i = 0; i < 200'000; ++i) text += "\"word" + std::to_string(i) + "\":" + std::to_string(i) + ",";
  text.back() = '}';
  const Json json = parse_json("text", text);
  EXPECT_EQ(json.size(), 200'000u);
  EXPECT_EQ(json["word123456"], 123456);
}

TEST(Json, refuses_to_write_invalid_utf8) {
  const Folder folder;
  expect_refused([&] { write_json(folder / "a.json", Json("\xff")); }, "a.json: found text that is not UTF-8");
  EXPECT_TRUE(folder.names().empty());
}

}  // namespace
}  // namespace heed::test
