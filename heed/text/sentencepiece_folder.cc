// Tokenizers of folders whose only tokenizer file is SentencePiece's *.model: those of T5, XLM-R, and Llama and Mistral, as `transformers`
// converts them.
#include "heed/text/sentencepiece.h"
#include "heed/text/tokenizer_parts.h"

namespace heed::text {
namespace {

constexpr const char* kSpaceSign = "\u2581";  // replaces spaces
constexpr int64_t kMostExtraTokens = 10'000;

// The tokens of a unigram model, in the order of their ids.
struct Pieces {
  const std::string& source;
  Vocabulary vocabulary = {};
  std::vector<double> scores = {};
  std::vector<AddedToken> added = {};

  int32_t add(const std::string& text, double score) {
    const auto id = static_cast<int32_t>(scores.size());
    check<FileError>(vocabulary.add(text, id), source, ": found the piece ", in_quotes(text), " twice, expected it once");
    scores.push_back(score);
    return id;
  }
  void add_special(const std::string& text, bool lstrip = false) {
    added.push_back({.content = text, .id = add(text, 0), .special = true, .lstrip = lstrip});
  }
};

int32_t piece_id(const Vocabulary& vocabulary, const std::string& token, const std::string& source) {
  const int32_t id = vocabulary.find(token);
  check<FileError>(id >= 0, source, ": found no ", in_quotes(token), ", expected that piece");
  return id;
}

// Control pieces and the unknown piece are special tokens, user-defined ones are matched in the text too.
void add_token(std::vector<AddedToken>& added, const SentencePieceFile::Entry& piece, int32_t id) {
  const bool special = piece.kind == PieceKind::control || piece.kind == PieceKind::unknown;
  if (special || piece.kind == PieceKind::user_defined) added.push_back({.content = piece.text, .id = id, .special = special});
}

const std::string& unknown_piece(const SentencePieceFile& file, const std::string& source) {
  for (const auto& piece : file.pieces)
    if (piece.kind == PieceKind::unknown) return piece.text;
  fail<FileError>(source, ": found no unknown piece, expected one");
}

TokenizerParts unigram_parts(const SentencePieceFile& file, Pieces pieces, const std::string& unknown) {
  const std::string& source = pieces.source;
  const Json metaspace{{"type", "Metaspace"}, {"prepend_scheme", "always"}};
  const Json words{{"type", "Sequence"}, {"pretokenizers", {{{"type", "WhitespaceSplit"}}, metaspace}}};
  TokenizerParts parts;
  parts.normalizer = sentencepiece_normalizer(file, source);
  parts.pre_tokenizer = make_pre_tokenizer({words, source});
  const UnigramOptions options{.unknown = piece_id(pieces.vocabulary, unknown, source)};
  parts.model = make_unigram(std::move(pieces.vocabulary), pieces.scores, options, source);
  parts.added = {std::move(pieces.added), {}};
  parts.decoder = make_decoder({metaspace, source});
  return parts;
}

// Ids are the places of pieces; <extra_id_99> to <extra_id_0> follow.
TokenizerParts t5_parts(const SentencePieceFile& file, const JsonReader& config, const std::string& source) {
  require_model(file, PieceModel::unigram, source);
  Pieces pieces{source};
  for (const auto& piece : file.pieces) add_token(pieces.added, piece, pieces.add(piece.text, static_cast<double>(piece.score)));
  const int64_t extra = config.has("extra_ids") ? config["extra_ids"].whole(0, kMostExtraTokens) : 100;
  for (int64_t i = extra - 1; i >= 0; --i) pieces.add_special("<extra_id_" + std::to_string(i) + ">");
  TokenizerParts parts = unigram_parts(file, std::move(pieces), unknown_piece(file, source));
  const TemplateItem end{-1, {piece_id(parts.model->vocabulary(), special_token(config, "eos_token", "</s>"), source)}, 0};
  parts.post_processor.single = {{0, {}, 0}, end};
  parts.post_processor.pair = {{0, {}, 0}, end, {1, {}, 0}, end};
  return parts;
}

// Four tokens replace the first three pieces, which are <unk>, <s> and </s>; <mask> is the last.
TokenizerParts xlm_roberta_parts(const SentencePieceFile& file, const std::string& source) {
  require_model(file, PieceModel::unigram, source);
  Pieces pieces{source};
  for (const char* token : {"<s>", "<pad>", "</s>", "<unk>"}) pieces.add_special(token);
  for (size_t i = 3; i < file.pieces.size(); ++i) pieces.add(file.pieces[i].text, static_cast<double>(file.pieces[i].score));
  pieces.add_special("<mask>", true);
  TokenizerParts parts = unigram_parts(file, std::move(pieces), "<unk>");
  parts.post_processor = roberta_post_processor(0, 2);
  parts.post_processor.trim_offsets = false;
  return parts;
}

// All pairs of pieces that make up another piece, in the order of that piece.
Merges merges_of(const SentencePieceFile& file, const Vocabulary& vocabulary) {
  Merges out;
  for (const auto& piece : file.pieces) {
    const std::string& text = piece.text;
    for (size_t i = char_bytes(text[0]); i < text.size(); i += char_bytes(text[i])) {
      const std::string_view left = std::string_view(text).substr(0, i), right = std::string_view(text).substr(i);
      if (vocabulary.find(left) >= 0 && vocabulary.find(right) >= 0) out.emplace_back(left, right);
    }
  }
  return out;
}

TokenizerParts llama_parts(const SentencePieceFile& file, const JsonReader& config, const std::string& source) {
  require_model(file, PieceModel::bpe, source);
  Pieces pieces{source};
  for (const auto& piece : file.pieces) add_token(pieces.added, piece, pieces.add(piece.text, static_cast<double>(piece.score)));
  const bool prefix = config.flag_or("add_prefix_space", true), legacy = config.flag_or("legacy", false);
  const Json metaspace{{"type", "Metaspace"}, {"prepend_scheme", !prefix ? "never" : legacy ? "always" : "first"}, {"split", false}};
  Json steps{
      {{"type", "Replace"}, {"pattern", {{"String", kSpaceSign}}}, {"content", " "}}, {{"type", "ByteFallback"}}, {{"type", "Fuse"}}};
  if (prefix) steps.push_back({{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}});
  const Json words{{"type", "Sequence"}, {"decoders", steps}};
  const auto special = [&](const char* key, const char* fallback) {
    return piece_id(pieces.vocabulary, special_token(config, key, fallback), source);
  };
  const int32_t begin = special("bos_token", "<s>"), end = special("eos_token", "</s>");
  BpeOptions options;
  options.unknown = unknown_piece(file, source);
  options.byte_fallback = options.fuse_unknown = true;
  const Merges merges = merges_of(file, pieces.vocabulary);
  TokenizerParts parts;
  parts.pre_tokenizer = make_pre_tokenizer({metaspace, source});
  parts.model = make_bpe(std::move(pieces.vocabulary), merges, options, source);
  parts.added = {std::move(pieces.added), {}};
  parts.decoder = make_decoder({words, source});
  const auto sequence = [&](int32_t number) {
    std::vector<TemplateItem> out{{number, {}, number}};
    if (config.flag_or("add_bos_token", true)) out.insert(out.begin(), TemplateItem{-1, {begin}, number});
    if (config.flag_or("add_eos_token", false)) out.push_back({-1, {end}, number});
    return out;
  };
  parts.post_processor.single = parts.post_processor.pair = sequence(0);
  for (const TemplateItem& item : sequence(1)) parts.post_processor.pair.push_back(item);
  return parts;
}

// tokenizer_class of tokenizer_config.json, or what belongs to the model_type of config.json or to the name of the file.
std::string kind_of(const JsonReader& config, const Path& folder, const std::string& file) {
  if (config.has("tokenizer_class")) return config.text("tokenizer_class");
  const std::string type = read_model_type(folder);
  if (type == "t5" || (type.empty() && file == "spiece.model")) return "T5Tokenizer";
  if (type == "xlm-roberta" || (type.empty() && file == "sentencepiece.bpe.model")) return "XLMRobertaTokenizer";
  if (type == "llama" || type == "mistral" || type.empty()) return "LlamaTokenizer";
  return type;
}

}  // namespace

TokenizerParts read_sentencepiece_folder(const Path& folder, const Path& model) {
  const Json document = read_tokenizer_config(folder);
  const JsonReader config(document, (folder / "tokenizer_config.json").string());
  const std::string source = model.string(), kind = kind_of(config, folder, model.filename().string());
  const bool t5 = kind.starts_with("T5"), xlm_roberta = kind.starts_with("XLMRoberta");
  if (!t5 && !xlm_roberta && !kind.starts_with("Llama"))
    config.refuse("found the tokenizer ", in_quotes(kind), ", expected T5Tokenizer, XLMRobertaTokenizer or LlamaTokenizer; ",
                  "for others heed needs a tokenizer.json");
  const SentencePieceFile file = read_sentencepiece(model);
  TokenizerParts parts = t5            ? t5_parts(file, config, source)
                         : xlm_roberta ? xlm_roberta_parts(file, source)
                                       : llama_parts(file, config, source);
  const std::string pad = special_token(config, "pad_token", t5 || xlm_roberta ? "<pad>" : "");
  if (const int32_t id = parts.model->vocabulary().find(pad); id >= 0) parts.padding_id = id;
  return parts;
}

}  // namespace heed::text
