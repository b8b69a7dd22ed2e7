// Tokenizers from a model folder, by the files it contains.
#include <set>

#include "heed/core/parse.h"
#include "heed/text/sentencepiece.h"
#include "heed/text/tokenizer_parts.h"

namespace heed {
namespace text {

Json read_tokenizer_config(const Path& folder) {
  const Path path = folder / "tokenizer_config.json";
  Json json = std::filesystem::exists(path) ? read_json(path) : Json::object();
  JsonReader(json, path.string()).object();
  return json;
}

std::string special_token(const JsonReader& config, const std::string& key, const std::string& fallback) {
  if (!config.has(key)) return fallback;
  const JsonReader token = config[key];
  return token.json().is_object() ? token.text("content") : token.text();
}

std::string read_model_type(const Path& folder) {
  const Path path = folder / "config.json";
  if (!std::filesystem::exists(path)) return "";
  const Json config = read_json(path);
  return JsonReader(config, path.string()).text_or("model_type", "");
}

namespace {

std::string word_suffix_of(const Json& document) {
  const auto model = document.find("model");
  return model == document.end() ? "" : JsonReader(*model, "").text_or("end_of_word_suffix", "");
}

// mask: the name of a token that also takes the space before it, as RoBERTa's does; may be empty
AddedTokens added_special_tokens(const std::vector<std::string>& names, const Vocabulary& vocabulary, const std::string& mask = "") {
  std::vector<AddedToken> tokens;
  StringTable seen;
  for (const std::string& name : names) {
    const int32_t id = vocabulary.find(name);
    if (id >= 0 && seen.insert(name, 0)) tokens.push_back({.content = name, .id = id, .special = true, .lstrip = name == mask});
  }
  return {std::move(tokens), {}};
}

int32_t id_of(const Vocabulary& vocabulary, const std::string& token, const Path& path) {
  const int32_t id = vocabulary.find(token);
  check<FileError>(id >= 0, path.string(), ": found no ", in_quotes(token), ", expected that token in the vocabulary");
  return id;
}

// The special tokens that a file names: "pad_token" and so on, and the list additional_special_tokens.
void add_special_names(const JsonReader& json, std::set<std::string>& names) {
  for (const auto& [key, value] : json.json().items())
    if (key.ends_with("_token") && (value.is_string() || value.is_object())) names.insert(special_token(json, key, ""));
  if (!json.has("additional_special_tokens")) return;
  for (const JsonReader& token : json["additional_special_tokens"].list())
    names.insert(token.json().is_object() ? token.text("content") : token.text());
}

// added_tokens_decoder of tokenizer_config.json, with the flags of every token.
Json listed_by_id(const JsonReader& tokens) {
  Json out = Json::array();
  for (const auto& [id, token] : tokens.object().items()) {
    Json entry = tokens[id].object();
    entry["id"] = parse_number<int64_t>(id).value_or(-1);
    out.push_back(std::move(entry));
  }
  return out;
}

// The older added_tokens.json, which has ids only. Tokens that are known already keep their flags.
Json listed_by_content(const JsonReader& ids, const std::set<std::string>& special, const AddedTokens& known) {
  Json out = Json::array();
  for (const auto& [content, id] : ids.object().items())
    if (!known.find(content)) out.push_back({{"id", id}, {"content", content}, {"special", special.contains(content)}});
  return out;
}

// The tokens that a folder without tokenizer.json adds to its vocabulary.
TokenizerParts with_added_tokens(TokenizerParts parts, const Path& folder) {
  const Path older = folder / "added_tokens.json", map = folder / "special_tokens_map.json";
  const Json document = read_tokenizer_config(folder);
  const JsonReader config(document, (folder / "tokenizer_config.json").string());
  Json list = Json::array();
  std::string source;
  if (config.has("added_tokens_decoder")) {
    source = (folder / "tokenizer_config.json: added_tokens_decoder").string();
    list = listed_by_id(config["added_tokens_decoder"]);
  } else if (std::filesystem::exists(older)) {
    source = older.string();
    std::set<std::string> special;
    add_special_names(config, special);
    if (std::filesystem::exists(map)) {
      const Json names = read_json(map);
      add_special_names({names, map.string()}, special);
    }
    const Json ids = read_json(older);
    list = listed_by_content({ids, source}, special, parts.added);
  }
  const AddedTokens found = read_added_tokens({list, source}, parts.model->vocabulary(), parts.normalizer);
  std::vector<AddedToken> all = found.all();
  for (const AddedToken& token : parts.added.all())
    if (!found.find(token.content)) all.push_back(token);
  parts.added = {std::move(all), parts.normalizer};
  if (const AddedToken* pad = parts.added.find(special_token(config, "pad_token", ""))) parts.padding_id = pad->id;
  return parts;
}

}  // namespace

TokenizerParts read_bert_folder(const Path& folder) {
  const Path path = folder / "vocab.txt";
  const Json document = read_tokenizer_config(folder);
  const JsonReader config(document, (folder / "tokenizer_config.json").string());
  BertNormalizer normalizer;
  normalizer.lowercase = config.flag_or("do_lower_case", true);
  normalizer.strip_accents = config.flag_or("strip_accents", normalizer.lowercase);
  normalizer.handle_chinese = config.flag_or("tokenize_chinese_chars", true);
  WordPieceOptions options;
  options.unknown = special_token(config, "unk_token", options.unknown);
  const std::string cls = special_token(config, "cls_token", "[CLS]"), sep = special_token(config, "sep_token", "[SEP]"),
                    pad = special_token(config, "pad_token", "[PAD]"), mask = special_token(config, "mask_token", "[MASK]");

  TokenizerParts parts;
  parts.normalizer = normalizer;
  parts.pre_tokenizer = bert_pre_tokenizer();
  parts.model = make_wordpiece(Vocabulary::from_lines(path), options, path.string());
  const Vocabulary& vocabulary = parts.model->vocabulary();
  parts.added = added_special_tokens({pad, options.unknown, cls, sep, mask}, vocabulary);
  parts.post_processor = bert_post_processor(id_of(vocabulary, cls, path), id_of(vocabulary, sep, path));
  parts.decoder = wordpiece_decoder(options.continuing_prefix, true);
  if (const int32_t id = vocabulary.find(pad); id >= 0) parts.padding_id = id;
  return parts;
}

TokenizerParts read_gpt2_folder(const Path& folder, const Path& vocabulary_path, const Path& merges_path) {
  const Json document = read_tokenizer_config(folder);
  const JsonReader config(document, (folder / "tokenizer_config.json").string());
  const std::string type = read_model_type(folder);
  const char* const usual = type == "roberta" ? "RobertaTokenizer"
                            : type == "clip"  ? "CLIPTokenizer"
                            : type == "qwen2" ? "Qwen2Tokenizer"
                                              : "GPT2Tokenizer";
  const std::string kind = config.text_or("tokenizer_class", usual);
  const bool roberta = kind.starts_with("Roberta");
  if (!roberta && !kind.starts_with("GPT2"))
    config.refuse("found the tokenizer_class ", in_quotes(kind), ", expected GPT2Tokenizer or RobertaTokenizer; ",
                  "for others heed needs a tokenizer.json");
  BpeOptions options;
  options.byte_level = true;
  const Json tokens = read_json(vocabulary_path);
  TokenizerParts parts;
  parts.model =
      make_bpe(Vocabulary::from_json({tokens, vocabulary_path.string()}), read_merges(merges_path), options, merges_path.string());
  parts.pre_tokenizer = gpt2_pre_tokenizer(config.flag_or("add_prefix_space", false));
  const Vocabulary& vocabulary = parts.model->vocabulary();
  const std::string end = special_token(config, "eos_token", roberta ? "</s>" : "<|endoftext|>");
  const std::string pad = special_token(config, "pad_token", roberta ? "<pad>" : "");
  std::vector<std::string> names = {end, special_token(config, "bos_token", end), special_token(config, "unk_token", end), pad};
  if (roberta) names = {"<s>", "</s>", "<unk>", "<pad>", "<mask>"};
  parts.added = added_special_tokens(names, vocabulary, "<mask>");
  if (roberta)
    parts.post_processor = roberta_post_processor(id_of(vocabulary, "<s>", vocabulary_path), id_of(vocabulary, "</s>", vocabulary_path));
  parts.post_processor.trim_offsets = true;
  parts.decoder = byte_level_decoder();
  if (const int32_t id = vocabulary.find(pad); id >= 0) parts.padding_id = id;
  return parts;
}

// Two SentencePiece models segment source and target; vocab.json (target_vocab.json for the target) maps pieces to ids. Sentences end
// with an end token; a token like >>deu<< selects the target language.
TokenizerParts read_marian_folder(const Path& folder, bool target) {
  const Json document = read_tokenizer_config(folder);
  const JsonReader config(document, (folder / "tokenizer_config.json").string());
  const Path path = folder / (target ? "target.spm" : "source.spm");
  const Path vocabulary_path = folder / (target && config.flag_or("separate_vocabs", false) ? "target_vocab.json" : "vocab.json");
  const Json ids = read_json(vocabulary_path);
  const std::string unknown = special_token(config, "unk_token", "<unk>"), end = special_token(config, "eos_token", "</s>"),
                    pad = special_token(config, "pad_token", "<pad>");
  const SentencePieceFile file = read_sentencepiece(path);
  TokenizerParts parts;
  Vocabulary all = Vocabulary::from_json({ids, vocabulary_path.string()});
  const int32_t unknown_id = id_of(all, unknown, vocabulary_path);
  parts.model = make_sentencepiece(file, std::move(all), unknown_id, path.string());
  const Vocabulary& vocabulary = parts.model->vocabulary();
  std::vector<AddedToken> added = added_special_tokens({end, unknown, pad}, vocabulary).all();
  for (int32_t id = 0; id < vocabulary.id_limit(); ++id)
    if (vocabulary.has(id) && vocabulary.token(id).starts_with(">>") && vocabulary.token(id).ends_with("<<"))
      added.push_back({vocabulary.token(id), id});
  parts.added = {std::move(added), {}};
  parts.normalizer = sentencepiece_normalizer(file, path.string());
  const char* scheme = file.prefix_space ? "always" : "never";
  const Json spaces{{"type", "Metaspace"}, {"prepend_scheme", scheme}, {"split", !crosses_words(file)}};
  parts.pre_tokenizer = make_pre_tokenizer({spaces, path.string()});
  parts.post_processor.single = {{0, {}, 0}, {-1, {id_of(vocabulary, end, vocabulary_path)}, 0}};
  parts.post_processor.pair = {{0, {}, 0}, {1, {}, 0}, {-1, {id_of(vocabulary, end, vocabulary_path)}, 0}};
  const Json words = {{"type", "Sequence"},
                      {"decoders", {{{"type", "ByteFallback"}}, {{"type", "Metaspace"}, {"prepend_scheme", scheme}}}}};
  parts.decoder = make_decoder({words, path.string()});
  if (const int32_t id = vocabulary.find(pad); id >= 0) parts.padding_id = id;
  return parts;
}

}  // namespace text

Tokenizer Tokenizer::from_json(std::string_view json, const std::string& source) {
  return Tokenizer(std::make_shared<const text::TokenizerParts>(text::read_tokenizer_json(parse_json(source, json), source)));
}

Tokenizer Tokenizer::open(const Path& path) {
  namespace fs = std::filesystem;
  check<FileError>(fs::exists(path), path.string(), ": found nothing there, expected the folder of a model or a tokenizer.json");
  const auto make_tokenizer = [](text::TokenizerParts parts) {
    return Tokenizer(std::make_shared<const text::TokenizerParts>(std::move(parts)));
  };
  const auto from_file = [&](const Path& file) {
    const Json document = read_json(file);
    text::TokenizerParts parts = text::read_tokenizer_json(document, file.string());
    const Json config = text::read_tokenizer_config(file.parent_path());
    const std::string pad = text::special_token({config, "tokenizer_config.json"}, "pad_token", "");
    if (const text::AddedToken* token = parts.added.find(pad)) parts.padding_id = token->id;
    if (JsonReader(config, "tokenizer_config.json").text_or("tokenizer_class", "").starts_with("CLIPTokenizer"))
      parts.decoder = text::clip_decoder(std::move(parts.decoder), text::word_suffix_of(document));
    return make_tokenizer(std::move(parts));
  };
  if (!fs::is_directory(path)) return from_file(path);
  if (fs::exists(path / "tokenizer.json")) return from_file(path / "tokenizer.json");
  const auto from_folder = [&](text::TokenizerParts parts) { return make_tokenizer(text::with_added_tokens(std::move(parts), path)); };
  if (fs::exists(path / "vocab.txt")) return from_folder(text::read_bert_folder(path));
  for (const auto& [vocabulary, merges] : {std::pair("vocab.json", "merges.txt"), std::pair("encoder.json", "vocab.bpe")})
    if (fs::exists(path / vocabulary) && fs::exists(path / merges))
      return from_folder(text::read_gpt2_folder(path, path / vocabulary, path / merges));
  if (fs::exists(path / "vocab.json") && fs::exists(path / "source.spm")) return from_folder(text::read_marian_folder(path, false));
  for (const char* model : {"spiece.model", "sentencepiece.bpe.model", "tokenizer.model"})
    if (fs::exists(path / model)) return from_folder(text::read_sentencepiece_folder(path, path / model));
  fail<FileError>(path.string(),
                  ": found no tokenizer, expected tokenizer.json, or vocab.txt, or vocab.json and merges.txt, or encoder.json and ",
                  "vocab.bpe, or vocab.json and source.spm, or spiece.model, sentencepiece.bpe.model or tokenizer.model");
}

Tokenizer Tokenizer::open_target(const Path& path) {
  namespace fs = std::filesystem;
  if (fs::exists(path / "tokenizer.json") || !fs::exists(path / "vocab.json") || !fs::exists(path / "target.spm")) return open(path);
  text::TokenizerParts parts = text::read_marian_folder(path, true);
  const Json config = text::read_tokenizer_config(path);
  if (!JsonReader(config, (path / "tokenizer_config.json").string()).flag_or("separate_vocabs", false))  // ids are those of the source
    parts = text::with_added_tokens(std::move(parts), path);
  return Tokenizer(std::make_shared<const text::TokenizerParts>(std::move(parts)));
}

}  // namespace heed
