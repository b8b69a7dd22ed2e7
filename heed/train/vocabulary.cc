#include "heed/train/vocabulary.h"

#include "heed/io/json.h"
#include "heed/io/temporary.h"
#include "heed/models/architecture.h"
#include "heed/text/vocabulary.h"

namespace heed {
namespace {

const std::map<std::string, VocabularyKind> kKinds{{"wordpiece", VocabularyKind::wordpiece},
                                                   {"bpe", VocabularyKind::bpe},
                                                   {"words", VocabularyKind::words},
                                                   {"characters", VocabularyKind::characters}};

// Files of tokenizers; a folder has some of them.
constexpr std::array kFiles{"tokenizer.json",
                            "tokenizer_config.json",
                            "special_tokens_map.json",
                            "added_tokens.json",
                            "vocab.txt",
                            "vocab.json",
                            "merges.txt",
                            "encoder.json",
                            "vocab.bpe",
                            "source.spm",
                            "target.spm",
                            "target_vocab.json",
                            "spiece.model",
                            "sentencepiece.bpe.model",
                            "tokenizer.model"};
constexpr int64_t kMaxVocabularyBytes = int64_t{256} << 20;

TaskTokenizer opened(const Path& folder) {
  TaskTokenizer out{Tokenizer::open(folder), {}};
  for (const char* name : kFiles)
    if (std::filesystem::exists(folder / name)) out.files[name] = read_text(folder / name, kMaxVocabularyBytes);
  return out;
}

int32_t add_token(Json& tokenizer, const std::string& token) {
  int32_t next = 0;
  for (const auto& [word, id] : tokenizer.at("model").at("vocab").items()) next = std::max(next, id.get<int32_t>() + 1);
  for (const Json& added : tokenizer.at("added_tokens")) {
    if (added.at("content").get<std::string>() == token) return added.at("id").get<int32_t>();
    next = std::max(next, added.at("id").get<int32_t>() + 1);
  }
  tokenizer["added_tokens"].push_back(text::added_token(next, token));
  return next;
}

// Appends an end token to texts, and adds a padding token.
void add_ends(Json& tokenizer, VocabularyKind kind) {
  const std::string end = kind == VocabularyKind::wordpiece ? "[SEP]" : "</s>";
  add_token(tokenizer, kind == VocabularyKind::wordpiece ? "[PAD]" : "<pad>");
  const int32_t id = add_token(tokenizer, end);
  const auto text = [](const char* name) { return Json{{"Sequence", {{"id", name}, {"type_id", 0}}}}; };
  const Json ending = {{"SpecialToken", {{"id", end}, {"type_id", 0}}}};
  tokenizer["post_processor"] = {{"type", "TemplateProcessing"},
                                 {"single", Json::array({text("A"), ending})},
                                 {"pair", Json::array({text("A"), ending, text("B"), ending})},
                                 {"special_tokens", {{end, {{"id", end}, {"ids", {id}}, {"tokens", {end}}}}}}};
}

}  // namespace

void declare(Settings& settings, VocabularyOptions& options) {
  std::vector<std::string> kinds;
  for (const auto& [name, kind] : kKinds) kinds.push_back(name);
  settings.heading("Tokens");
  settings.add("tokenizer", options.kind, "Kind of tokenizer for a model from scratch", {.choices = kinds});
  settings.add("vocabulary", options.size, "Maximum vocabulary size", {.least = 10, .most = 1e6});
  settings.add("lowercase", options.lowercase, "Lowercase texts and strip accents; not for bpe");
}

void TaskTokenizer::save(const Path& folder) const {
  for (const auto& [name, contents] : files) write_text(folder / name, contents);
}

TaskTokenizer tokenizer_for(const JobOptions& chosen, const VocabularyOptions& options, std::span<const std::string> texts, bool ends) {
  if (!chosen.keep.empty()) return opened(chosen.keep);
  if (!chosen.from.empty()) return opened(chosen.from);
  const TemporaryFolder scratch;
  std::string lines;
  for (const std::string& text : texts) lines.append(text).append("\n");
  check<FileError>(lines.find_first_not_of(" \t\r\n") != lines.npos, "train: found no words to train on, expected more text");
  const Path file = scratch.path() / "texts";
  write_text(file, lines);
  const VocabularyKind kind = kKinds.at(options.kind);
  train_vocabulary(std::span(&file, 1), scratch.path() / "trained", {.kind = kind, .size = options.size, .lowercase = options.lowercase});
  if (!ends) return opened(scratch.path() / "trained");
  Json tokenizer = read_json(scratch.path() / "trained" / "tokenizer.json");
  add_ends(tokenizer, kind);
  const bool wordpiece = kind == VocabularyKind::wordpiece;
  const Json tokenizer_config = {{"tokenizer_class", "PreTrainedTokenizerFast"},
                                 {"eos_token", wordpiece ? "[SEP]" : "</s>"},
                                 {"pad_token", wordpiece ? "[PAD]" : "<pad>"},
                                 {"clean_up_tokenization_spaces", false}};
  write_json(scratch.path() / "tokenizer.json", tokenizer);
  write_json(scratch.path() / "tokenizer_config.json", tokenizer_config);
  return opened(scratch.path());
}

TensorMap text_inputs(const Model& model, const Tokenizer& tokenizer, const std::vector<Encoding>& texts, std::span<const int64_t> which) {
  std::vector<Encoding> chosen;
  for (const int64_t i : which) chosen.push_back(texts[static_cast<size_t>(i)]);
  const EncodedBatch batch = tokenizer.batch(chosen);
  TensorMap out{{"input_ids", batch.input_ids}, {"attention_mask", batch.attention_mask}};
  if (model.family().segments) out["token_type_ids"] = batch.token_type_ids;
  return out;
}

TrackedSample tracked_text(const TensorMap& inputs, const Tokenizer& tokenizer) {
  TrackedSample out{.inputs = inputs};
  for (const int64_t id : inputs.at("input_ids").to_vector<int64_t>()) out.columns.push_back(tokenizer.display(id));
  return out;
}

std::optional<int32_t> end_token(const Tokenizer& tokenizer) {
  for (const char* end : {"</s>", "<|endoftext|>", "[SEP]"})
    if (const std::optional<int32_t> id = tokenizer.id(end)) return id;
  return std::nullopt;
}

void set_vocabulary(Json& config, const Tokenizer& tokenizer) {
  config["vocab_size"] = tokenizer.id_limit();
  if (const std::optional<int32_t> pad = tokenizer.padding_id()) {
    config["pad_token_id"] = *pad;
    if (config.contains("decoder_start_token_id")) config["decoder_start_token_id"] = *pad;
  }
  if (!architecture_of(Config(config, "config.json")).family->causal) return;  // generates no text
  if (const std::optional<int32_t> id = end_token(tokenizer)) {
    config["eos_token_id"] = *id;
    if (config.contains("bos_token_id")) config["bos_token_id"] = *id;
  }
}

}  // namespace heed
