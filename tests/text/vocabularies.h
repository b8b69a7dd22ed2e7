// Small tokenizers whose ids can be checked by hand.
#pragma once

#include <string>
#include <vector>

#include "heed/io/json.h"
#include "heed/text/tokenizer.h"

namespace heed::test {

using Ids = std::vector<int32_t>;

inline Json numbered(const std::vector<std::string>& tokens) {
  Json out = Json::object();
  for (size_t id = 0; id < tokens.size(); ++id) out[tokens[id]] = id;
  return out;
}

// BERT's, lowercase without accents: 0 [PAD], 1 [UNK], 2 [CLS], 3 [SEP], 4 [MASK], then the words below.
inline const std::vector<std::string> kBertTokens = {"[PAD]",  "[UNK]",  "[CLS]",  "[SEP]",  "[MASK]", "un", "##aff", "##able",
                                                     "want",   "##ed",   "runn",   "##ing",  ",",      "!",  "hello", "a",
                                                     "\u4f60", "\u597d", "\u00e9", "\u03c3", "'",      "##s"};

inline Json bert_json() {
  const auto special = [](const char* token, int type) { return Json{{"SpecialToken", {{"id", token}, {"type_id", type}}}}; };
  const auto sequence = [](const char* name, int type) { return Json{{"Sequence", {{"id", name}, {"type_id", type}}}}; };
  Json added = Json::array();
  for (int id = 0; id < 5; ++id)
    added.push_back({{"id", id}, {"content", kBertTokens[static_cast<size_t>(id)]}, {"special", true}, {"normalized", false}});
  return {
      {"version", "1.0"},
      {"added_tokens", added},
      {"normalizer",
       {{"type", "BertNormalizer"}, {"clean_text", true}, {"handle_chinese_chars", true}, {"strip_accents", nullptr}, {"lowercase", true}}},
      {"pre_tokenizer", {{"type", "BertPreTokenizer"}}},
      {"post_processor",
       {{"type", "TemplateProcessing"},
        {"single", {special("[CLS]", 0), sequence("A", 0), special("[SEP]", 0)}},
        {"pair", {special("[CLS]", 0), sequence("A", 0), special("[SEP]", 0), sequence("B", 1), special("[SEP]", 1)}},
        {"special_tokens",
         {{"[CLS]", {{"id", "[CLS]"}, {"ids", {2}}, {"tokens", {"[CLS]"}}}},
          {"[SEP]", {{"id", "[SEP]"}, {"ids", {3}}, {"tokens", {"[SEP]"}}}}}}}},
      {"decoder", {{"type", "WordPiece"}, {"prefix", "##"}, {"cleanup", true}}},
      {"model",
       {{"type", "WordPiece"},
        {"unk_token", "[UNK]"},
        {"continuing_subword_prefix", "##"},
        {"max_input_chars_per_word", 100},
        {"vocab", numbered(kBertTokens)}}}};
}

inline Json with_model(const Json& model, const Json& rest = Json::object()) {
  Json out = rest;
  out["model"] = model;
  return out;
}

inline Tokenizer tokenizer_of(const Json& json) { return Tokenizer::from_json(json.dump(), "test.json"); }

inline std::vector<std::string> tokens_of(const Tokenizer& tokenizer, const Encoding& encoding) {
  std::vector<std::string> out;
  for (const int32_t id : encoding.ids) out.push_back(tokenizer.token(id));
  return out;
}

// The spans of the words after normalizer and pre-tokenizer: every word is unknown, its offsets are the word's.
inline std::vector<text::Span> words_of(const std::string& text, const Json& pre_tokenizer, const Json& normalizer = nullptr) {
  const Json model = {{"type", "WordLevel"}, {"unk_token", "?"}, {"vocab", {{"?", 0}}}};
  return tokenizer_of(with_model(model, {{"pre_tokenizer", pre_tokenizer}, {"normalizer", normalizer}})).encode(text).offsets;
}
inline std::vector<std::string> split_words(const std::string& text, const Json& pre_tokenizer) {
  std::vector<std::string> out;
  for (const text::Span at : words_of(text, pre_tokenizer)) out.push_back(text.substr(at.begin, at.end - at.begin));
  return out;
}

}  // namespace heed::test
