// CLIP's tokenizer as transformers 5.22 writes it. Expected numbers and texts are from the package tokenizers 0.23.3 and from
// CLIPTokenizer.
#include <gtest/gtest.h>

#include "heed/text/byte_chars.h"
#include "heed/text/tokenizer.h"
#include "heed/text/unicode.h"
#include "tests/io/files.h"
#include "tests/text/vocabularies.h"

namespace heed::test {
namespace {

const char* const kClipExpression = R"(<\|startoftext\|>|<\|endoftext\|>|'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+)";

// Every byte, every byte at the end of a word, a few merges.
Json clip_json() {
  Json vocabulary = Json::object(), merges = Json::array();
  for (int byte = 0; byte < 256; ++byte) {
    const std::string token = text::utf8(text::byte_chars()[static_cast<size_t>(byte)]);
    vocabulary[token] = byte;
    vocabulary[token + "</w>"] = 256 + byte;
  }
  int id = 512;
  const std::pair<const char*, const char*> pairs[] = {{"c", "a"},        {"ca", "t</w>"},         {"p", "h"}, {"ph", "o"}, {"pho", "t"},
                                                       {"phot", "o</w>"}, {"\u00c3", "\u00a9</w>"}};
  for (const auto& [left, right] : pairs) {
    merges.push_back({left, right});
    vocabulary[std::string(left) + right] = id++;
  }
  Json added = Json::array();
  for (const char* token : {"<|startoftext|>", "<|endoftext|>"}) {
    vocabulary[token] = id;
    added.push_back({{"id", id++}, {"content", token}, {"special", true}, {"normalized", false}});
  }
  const Json byte_level = {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", true}, {"use_regex", true}};
  const Json white = {{"type", "Replace"}, {"pattern", {{"Regex", "\\s+"}}}, {"content", " "}};
  const Json split = {{"type", "Split"}, {"pattern", {{"Regex", kClipExpression}}}, {"behavior", "Removed"}, {"invert", true}};
  return {{"version", "1.0"},
          {"added_tokens", added},
          {"normalizer", {{"type", "Sequence"}, {"normalizers", {{{"type", "NFC"}}, white, {{"type", "Lowercase"}}}}}},
          {"pre_tokenizer", {{"type", "Sequence"}, {"pretokenizers", {split, byte_level}}}},
          {"post_processor",
           {{"type", "RobertaProcessing"},
            {"sep", {"<|endoftext|>", 520}},
            {"cls", {"<|startoftext|>", 519}},
            {"trim_offsets", false},
            {"add_prefix_space", false}}},
          {"decoder", byte_level},
          {"model",
           {{"type", "BPE"},
            {"dropout", nullptr},
            {"unk_token", "<|endoftext|>"},
            {"continuing_subword_prefix", ""},
            {"end_of_word_suffix", "</w>"},
            {"fuse_unk", false},
            {"byte_fallback", false},
            {"vocab", vocabulary},
            {"merges", merges}}}};
}

TEST(ClipTokenizer, gives_the_ids_and_offsets_of_the_package) {
  using text::Span;
  const Tokenizer clip = tokenizer_of(clip_json());
  const Encoding photo = clip.encode("A photo of a CAT!");
  EXPECT_EQ(photo.ids, (Ids{519, 353, 517, 111, 358, 353, 513, 289, 520}));
  EXPECT_EQ(photo.offsets, (std::vector<Span>{{0, 0}, {0, 1}, {2, 7}, {8, 9}, {9, 10}, {11, 12}, {13, 16}, {16, 17}, {0, 0}}));
  EXPECT_EQ(clip.encode("caf\u00e9  e\u0301\t42<|endoftext|>it's").ids,
            (Ids{519, 512, 102, 518, 518, 308, 306, 520, 105, 372, 39, 371, 520}));
  const Encoding goose = clip.encode("cats' \U0001F600\U0001FABF");  // the second was added in Unicode 15
  EXPECT_EQ(goose.ids, (Ids{519, 512, 116, 371, 295, 240, 159, 152, 128, 240, 159, 170, 447, 520}));
  EXPECT_EQ(goose.offsets[6], (Span{6, 10}));
  EXPECT_EQ(goose.offsets[12], (Span{10, 14}));
  EXPECT_EQ(clip.encode(" ").ids, (Ids{519, 520}));
}

TEST(ClipTokenizer, decodes_as_the_package_and_in_its_folder_as_transformers) {
  const Folder folder;
  put(folder / "tokenizer.json", clip_json().dump());
  const Ids ids = {519, 353, 517, 513, 289, 520};
  EXPECT_EQ(Tokenizer::open(folder.path()).decode(ids), "a</w>photo</w>cat</w>!</w>");
  put(folder / "tokenizer_config.json", R"({"tokenizer_class": "CLIPTokenizer", "pad_token": "<|endoftext|>"})");
  const Tokenizer clip = Tokenizer::open(folder.path());
  EXPECT_EQ(clip.decode(ids), "a photo cat !");
  EXPECT_EQ(clip.decode(ids, false), "<|startoftext|>a photo cat ! <|endoftext|>");
  EXPECT_EQ(clip.decode(Ids{}), "");
  EXPECT_EQ(clip.padding_id(), 520);
}

}  // namespace
}  // namespace heed::test
