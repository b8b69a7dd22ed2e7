// Tokenizer files with SentencePiece models, written here byte by byte: Marian's with a vocab.json, and those of T5, XLM-R and Llama.
#include "heed/text/sentencepiece.h"

#include <gtest/gtest.h>

#include <bit>

#include "tests/io/files.h"
#include "tests/text/vocabularies.h"

namespace heed::test {
namespace {

using text::PieceKind;

std::string varint(uint64_t value) {
  std::string out;
  for (; value >= 128; value >>= 7) out += static_cast<char>(value | 128);
  return out + static_cast<char>(value);
}
std::string number(int field, uint64_t value) { return varint(static_cast<uint64_t>(field) << 3) + varint(value); }
std::string bytes(int field, const std::string& content) {
  return varint(static_cast<uint64_t>(field) << 3 | 2) + varint(content.size()) + content;
}
std::string piece(const std::string& text, float score, PieceKind kind = PieceKind::normal) {
  const auto bits = std::bit_cast<uint32_t>(score);
  std::string real = varint(2 << 3 | 5);
  for (int shift = 0; shift < 32; shift += 8) real += static_cast<char>(bits >> shift);
  return bytes(1, bytes(1, text) + real + (kind == PieceKind::normal ? "" : number(3, static_cast<uint64_t>(kind))));
}

// As SentencePiece writes them: <unk>, <s>, </s>, then pieces by score.
std::string source_model(const std::string& rest = "") {
  return piece("<unk>", 0, PieceKind::unknown) + piece("<s>", 0, PieceKind::control) + piece("</s>", 0, PieceKind::control) +
         piece("\u2581a", -1) + piece("\u2581ab", -2) + piece("b", -2.5f) + piece("\u2581", -3) + piece("c", -4) + piece("bc", -4.5f) +
         piece("secret", 0, PieceKind::unused) + rest;
}
const Json kVocabulary = {{"</s>", 0}, {"<unk>", 1}, {"\u2581a", 2}, {"\u2581ab", 3}, {"b", 4},     {"\u2581", 5},
                          {"c", 6},    {"bc", 7},    {"\u00fc", 8},  {">>de<<", 9},   {"<pad>", 10}};

class MarianFolder : public testing::Test {
 protected:
  MarianFolder() {
    put(folder / "source.spm", source_model());
    put(folder / "target.spm", source_model());
    put(folder / "vocab.json", kVocabulary.dump());
  }
  Ids ids(const std::string& text) const { return Tokenizer::open(folder.path()).encode(text).ids; }
  const Folder folder;
};

TEST_F(MarianFolder, ids_come_from_the_vocabulary) {
  EXPECT_EQ(ids("a"), (Ids{2, 0}));
  EXPECT_EQ(ids("ab"), (Ids{3, 0}));      // -2 beats -1 - 2.5
  EXPECT_EQ(ids("abc"), (Ids{2, 7, 0}));  // -1 - 4.5 beats -2 - 4
  EXPECT_EQ(ids("  a   b "), (Ids{2, 5, 4, 0}));
  EXPECT_EQ(ids(""), (Ids{0}));
  EXPECT_EQ(ids("   "), (Ids{0}));
  EXPECT_EQ(ids("axxb"), (Ids{2, 1, 4, 0}));       // consecutive unknown characters are one piece
  EXPECT_EQ(ids("a\u00fc"), (Ids{2, 8, 0}));       // a token of vocab.json that is not in source.spm
  EXPECT_EQ(ids("secret"), (Ids{5, 1, 6, 1, 0}));  // unused pieces are ignored
  EXPECT_EQ(ids(">>de<< a"), (Ids{9, 2, 0}));
  EXPECT_EQ(ids("a</s>b"), (Ids{2, 0, 5, 4, 0}));
}

TEST_F(MarianFolder, decodes) {
  const Tokenizer tokenizer = Tokenizer::open(folder.path());
  EXPECT_EQ(tokenizer.decode(Ids{2, 7, 3, 0, 10}), "abc ab");
  EXPECT_EQ(tokenizer.padding_id(), 10);
  EXPECT_TRUE(tokenizer.is_special(0) && tokenizer.is_special(1) && !tokenizer.is_special(9));
}

TEST_F(MarianFolder, may_have_a_vocabulary_for_each_side) {
  put(folder / "tokenizer_config.json", R"({"separate_vocabs": true})");
  put(folder / "target_vocab.json", R"({"</s>": 0, "<unk>": 1, "b": 2, "▁": 3, "<pad>": 4})");
  EXPECT_EQ(Tokenizer::open_target(folder.path()).encode("b").ids, (Ids{3, 2, 0}));
  EXPECT_EQ(ids("b"), (Ids{5, 4, 0}));
  std::filesystem::remove(folder / "target_vocab.json");
  expect_refused([&] { Tokenizer::open_target(folder.path()); }, "target_vocab.json: there is no such file");
}

TEST_F(MarianFolder, follows_the_normalizer_of_the_file) {
  const std::string no_prefix = bytes(3, number(3, 0) + number(4, 0));
  put(folder / "source.spm", source_model(no_prefix));
  EXPECT_EQ(ids("b"), (Ids{4, 0}));
  EXPECT_EQ(ids("b  b"), (Ids{4, 5, 5, 4, 0}));
  // A character map of one entry: "X" becomes "c". Trie cells: the root, the node of 'X', the value.
  const auto cell = [](uint32_t bits) {
    std::string out;
    for (int shift = 0; shift < 32; shift += 8) out += static_cast<char>(bits >> shift);
    return out;
  };
  std::string cells;
  for (uint32_t at = 0; at < 256; ++at) {
    constexpr uint32_t root = 1, letter = root ^ 'X', value = letter ^ 2;
    cells += cell(at == 0 ? root << 10 : at == letter ? (2u << 10 | 1u << 8 | 'X') : at == value ? 0x80000000u : 0);
  }
  const std::string map = cell(static_cast<uint32_t>(cells.size())) + cells + std::string("c\0", 2);
  put(folder / "source.spm", source_model(bytes(3, bytes(2, map))));
  EXPECT_EQ(ids("aX"), (Ids{2, 6, 0}));
}

TEST_F(MarianFolder, that_is_damaged_is_refused) {
  const auto refused = [&](const std::string& content, const std::string& message) {
    put(folder / "source.spm", content);
    expect_refused([&] { Tokenizer::open(folder.path()); }, "source.spm: " + message);
  };
  const std::string whole = source_model();
  refused("", "found 0 pieces, expected a SentencePiece model");
  refused(whole.substr(0, whole.size() - 3), "found ");
  refused("hello, world", "found ");
  refused(std::string(12, '\xFF'), "found an unterminated varint at byte 10");
  refused(whole + piece("b", -1), "found the piece \"b\" twice");
  refused(whole + piece("\xFF", -1), "found the piece ");
  refused(whole + bytes(2, number(3, 2)), "found a model of kind BPE, expected unigram");
  refused(whole + piece("<sep>", 0, PieceKind::user_defined), "found the user-defined piece \"<sep>\", expected none");
  refused(piece("a", -1), "found 0 unknown pieces, expected 1");
  for (size_t end = 0; end < whole.size(); ++end)  // truncation anywhere must not crash
    try {
      text::parse_sentencepiece(std::string_view(whole).substr(0, end), "cut");
    } catch (const FileError&) {
    }
  put(folder / "source.spm", whole);
  put(folder / "vocab.json", R"({"a": 0})");
  expect_refused([&] { Tokenizer::open(folder.path()); }, "vocab.json: found no \"<unk>\"");
}

TEST(SentencePieceFolder, of_t5) {
  const Folder folder;
  const std::string model = piece("<pad>", 0, PieceKind::control) + piece("</s>", 0, PieceKind::control) +
                            piece("<unk>", 0, PieceKind::unknown) + piece("\u2581a", -1) + piece("\u2581", -2) + piece("b", -3) +
                            piece("ab", -2.5f);
  put(folder / "spiece.model", model);
  EXPECT_EQ(Tokenizer::open(folder.path()).id("<extra_id_0>"), 106);
  put(folder / "tokenizer_config.json", R"({"extra_ids": 2})");
  const Tokenizer t5 = Tokenizer::open(folder.path());
  EXPECT_EQ(t5.encode("a").ids, (Ids{3, 1}));
  EXPECT_EQ(t5.encode("  ab  b ").ids, (Ids{3, 5, 4, 5, 1}));  // -1 - 3 beats -2 - 2.5
  EXPECT_EQ(t5.encode("a <extra_id_0> b").ids, (Ids{3, 8, 4, 5, 1}));
  EXPECT_EQ(t5.encode("x").ids, (Ids{4, 2, 1}));
  EXPECT_EQ(t5.encode("a", "b").ids, (Ids{3, 1, 4, 5, 1}));
  EXPECT_EQ(t5.decode(Ids{3, 5, 4, 5, 1}), "ab b");
  EXPECT_EQ(t5.padding_id(), 0);
  put(folder / "spiece.model", model + bytes(2, number(3, 2)));
  expect_refused([&] { Tokenizer::open(folder.path()); }, "spiece.model: found a model of kind BPE, expected unigram");
  put(folder / "spiece.model", piece("</s>", 0, PieceKind::control) + piece("a", -1));
  expect_refused([&] { Tokenizer::open(folder.path()); }, "spiece.model: found no unknown piece");
  put(folder / "tokenizer_config.json", R"({"extra_ids": -1})");
  expect_refused([&] { Tokenizer::open(folder.path()); }, "extra_ids is");
  put(folder / "tokenizer_config.json", R"({"tokenizer_class": "AlbertTokenizer"})");
  expect_refused([&] { Tokenizer::open(folder.path()); }, "found the tokenizer \"AlbertTokenizer\", expected T5Tokenizer");
  std::filesystem::remove(folder / "tokenizer_config.json");
  put(folder / "config.json", R"({"model_type": "albert"})");
  expect_refused([&] { Tokenizer::open(folder.path()); }, "found the tokenizer \"albert\", expected T5Tokenizer");
}

TEST(SentencePieceFolder, of_xlm_roberta) {
  const Folder folder;
  put(folder / "sentencepiece.bpe.model", piece("<unk>", 0, PieceKind::unknown) + piece("<s>", 0, PieceKind::control) +
                                              piece("</s>", 0, PieceKind::control) + piece("\u2581a", -1) + piece("\u2581", -2) +
                                              piece("b", -3));
  const Tokenizer tokenizer = Tokenizer::open(folder.path());
  EXPECT_EQ(tokenizer.encode("a <mask>").ids, (Ids{0, 4, 7, 2}));
  EXPECT_EQ(tokenizer.encode("a", "b").ids, (Ids{0, 4, 2, 2, 5, 6, 2}));
  EXPECT_EQ(tokenizer.encode("x").ids, (Ids{0, 5, 3, 2}));
  EXPECT_EQ(tokenizer.padding_id(), 1);
  EXPECT_EQ(tokenizer.mask_id(), 7);
}

TEST(SentencePieceFolder, of_llama) {
  const Folder folder;
  const std::string model = piece("<unk>", 0, PieceKind::unknown) + piece("<s>", 0, PieceKind::control) +
                            piece("</s>", 0, PieceKind::control) + piece("<0x21>", 0, PieceKind::byte) + piece("\u2581a", 0) +
                            piece("ab", -1) + piece("\u2581ab", -2) + piece("\u2581", -3) + piece("a", -4) + piece("b", -5);
  put(folder / "tokenizer.model", model + bytes(2, number(3, 2)));
  const Tokenizer llama = Tokenizer::open(folder.path());
  EXPECT_EQ(llama.encode("ab").ids, (Ids{1, 6}));
  EXPECT_EQ(llama.encode("a b").ids, (Ids{1, 4, 7, 9}));
  EXPECT_EQ(llama.encode("a!").ids, (Ids{1, 4, 3}));
  EXPECT_EQ(llama.encode("</s>ab").ids, (Ids{1, 2, 5}));
  EXPECT_EQ(llama.encode("a", "ab").ids, (Ids{1, 4, 1, 6}));
  EXPECT_EQ(llama.decode(Ids{1, 6, 7, 9}), "ab b");
  EXPECT_FALSE(llama.padding_id());
  put(folder / "tokenizer_config.json",
      R"({"legacy": true, "add_bos_token": false, "add_eos_token": true, "pad_token": {"content": "<unk>"}})");
  const Tokenizer other = Tokenizer::open(folder.path());
  EXPECT_EQ(other.encode("</s>ab").ids, (Ids{2, 6, 2}));  // a space before every part of the text
  EXPECT_EQ(other.padding_id(), 0);
  put(folder / "tokenizer.model", model);
  expect_refused([&] { Tokenizer::open(folder.path()); }, "tokenizer.model: found a model of kind unigram, expected BPE");
}

}  // namespace
}  // namespace heed::test
