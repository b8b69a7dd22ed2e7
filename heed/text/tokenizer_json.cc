// tokenizer.json of the package `tokenizers`: a complete tokenizer in one file.
#include "heed/text/tokenizer_parts.h"

namespace heed::text {
namespace {

Merges json_merges(const JsonReader& list) {
  Merges out;
  for (size_t i = 0; i < list.size(); ++i) {
    const JsonReader merge = list[i];
    if (merge.json().is_array()) {
      if (merge.size() != 2) merge.refuse("found ", merge.size(), " tokens, expected 2");
      out.emplace_back(merge[size_t{0}].text(), merge[1].text());
      continue;
    }
    const std::string line = merge.text();
    const size_t space = line.find(' ');
    if (space == line.npos) merge.refuse("found ", in_quotes(line), ", expected two tokens with a space between");
    out.emplace_back(line.substr(0, space), line.substr(space + 1));
  }
  return out;
}

ModelPointer read_bpe(const JsonReader& json, bool byte_level) {
  if (json.has("dropout") && json["dropout"].json() != 0) json["dropout"].expected("none: heed does not drop merges at random");
  BpeOptions options;
  options.unknown = json.text_or("unk_token", "");
  options.continuing_prefix = json.text_or("continuing_subword_prefix", "");
  options.word_suffix = json.text_or("end_of_word_suffix", "");
  options.byte_level = byte_level;
  options.byte_fallback = json.flag_or("byte_fallback", false);
  options.fuse_unknown = json.flag_or("fuse_unk", false);
  options.ignore_merges = json.flag_or("ignore_merges", false);
  return make_bpe(Vocabulary::from_json(json["vocab"]), json_merges(json["merges"]), options, json.place());
}

ModelPointer read_unigram(const JsonReader& json) {
  Vocabulary vocabulary;
  std::vector<double> scores;
  const JsonReader list = json["vocab"];
  for (size_t i = 0; i < list.size(); ++i) {
    const JsonReader entry = list[i], score = entry[1];
    const std::string token = entry[size_t{0}].text();
    if (static_cast<int64_t>(i) >= kMaxTokenId) list.refuse("found ", list.size(), " tokens, expected at most ", kMaxTokenId);
    if (!vocabulary.add(token, static_cast<int64_t>(i))) entry.refuse("found ", in_quotes(token), " a second time, expected it once");
    scores.push_back(score.number());
  }
  UnigramOptions options;
  options.unknown = json.whole_or("unk_id", -1);
  options.byte_fallback = json.flag_or("byte_fallback", false);
  return make_unigram(std::move(vocabulary), scores, options, json.place());
}

// Older files lack the model type.
std::string model_type(const JsonReader& json) {
  if (json.has("type")) return json.text("type");
  return json.has("merges")                      ? "BPE"
         : json.has("continuing_subword_prefix") ? "WordPiece"
         : json["vocab"].json().is_array()       ? "Unigram"
                                                 : "WordLevel";
}

}  // namespace

ModelPointer make_model(const JsonReader& json, bool byte_level) {
  const std::string type = model_type(json);
  if (type == "BPE") return read_bpe(json, byte_level);
  if (byte_level) json.refuse("found the model ", in_quotes(type), " after the pre-tokenizer ByteLevel, expected BPE");
  if (type == "WordPiece") {
    WordPieceOptions options;
    options.unknown = json.text_or("unk_token", options.unknown);
    options.continuing_prefix = json.text_or("continuing_subword_prefix", options.continuing_prefix);
    options.max_chars_per_word = json.whole_or("max_input_chars_per_word", options.max_chars_per_word);
    return make_wordpiece(Vocabulary::from_json(json["vocab"]), options, json.place());
  }
  if (type == "WordLevel") return make_word_level(Vocabulary::from_json(json["vocab"]), json.text_or("unk_token", "<unk>"), json.place());
  if (type == "Unigram") return read_unigram(json);
  json.refuse("found the model ", in_quotes(type), ", expected one of WordPiece, BPE, Unigram, WordLevel");
}

namespace {

Side side_of(const JsonReader& json) {
  const std::string side = json.text_or("direction", "Right");
  if (side != "Left" && side != "Right") json.refuse("found the direction ", in_quotes(side), ", expected Left or Right");
  return side == "Left" ? Side::left : Side::right;
}

EncodeOptions read_truncation(const JsonReader& json) {
  EncodeOptions out;
  out.max_length = json["max_length"].whole();
  out.truncation_side = side_of(json);
  const std::string strategy = json.text_or("strategy", "LongestFirst");
  if (strategy == "OnlyFirst") out.truncation = Truncation::only_first;
  if (strategy == "OnlySecond") out.truncation = Truncation::only_second;
  return out;
}

Padding read_padding(const JsonReader& json) {
  Padding out;
  const JsonReader strategy = json["strategy"];
  if (strategy.has("Fixed")) out.length = strategy["Fixed"].whole();
  out.multiple_of = json.whole_or("pad_to_multiple_of", 1);
  out.side = side_of(json);
  out.id = json.whole_or("pad_id", 0);
  if (out.id < 0 || out.id >= kMaxTokenId) json.refuse("found the pad_id ", out.id, ", expected one from 0 to ", kMaxTokenId - 1);
  return out;
}

}  // namespace

TokenizerParts read_tokenizer_json(const Json& document, const std::string& source) {
  const JsonReader json(document, source);
  TokenizerParts parts;
  if (json.has("normalizer")) parts.normalizer = make_normalizer(json["normalizer"]);
  if (json.has("pre_tokenizer")) parts.pre_tokenizer = make_pre_tokenizer(json["pre_tokenizer"]);
  parts.model = make_model(json["model"], parts.pre_tokenizer.byte_level);
  const Vocabulary& vocabulary = parts.model->vocabulary();
  if (json.has("added_tokens")) parts.added = read_added_tokens(json["added_tokens"], vocabulary, parts.normalizer);
  if (json.has("post_processor")) parts.post_processor = make_post_processor(json["post_processor"]);
  for (const auto* items : {&parts.post_processor.single, &parts.post_processor.pair})
    for (const TemplateItem& item : *items)
      for (const int32_t id : item.ids)
        if (!vocabulary.has(id) && !parts.added.find(id))
          json["post_processor"].refuse("found the id ", id, ", expected one that has a token");
  parts.decoder = json.has("decoder") ? make_decoder(json["decoder"]) : spaced_decoder();
  if (json.has("truncation")) parts.truncation = read_truncation(json["truncation"]);
  if (json.has("padding")) {
    parts.padding = read_padding(json["padding"]);
    parts.padding_id = static_cast<int32_t>(parts.padding->id);
  }
  for (const char* name : {"[PAD]", "<pad>"})
    if (const AddedToken* token = parts.added.find(name); token && !parts.padding_id) parts.padding_id = token->id;
  return parts;
}

}  // namespace heed::text
