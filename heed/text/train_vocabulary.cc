#include "heed/text/train_vocabulary.h"

#include <algorithm>
#include <map>
#include <mutex>

#include "heed/core/parallel.h"
#include "heed/text/byte_chars.h"
#include "heed/text/normalizer.h"
#include "heed/text/pre_tokenizer.h"
#include "heed/text/vocabulary.h"

namespace heed {
namespace text {
namespace {

// All of tokenizer.json but the model.
Json tokenizer_json(const TrainVocabularyOptions& options) {
  const bool bpe = options.kind == VocabularyKind::bpe;
  const Json bert = {{"type", "BertNormalizer"},
                     {"clean_text", true},
                     {"handle_chinese_chars", true},
                     {"strip_accents", nullptr},
                     {"lowercase", options.lowercase}};
  const Json byte_level = {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", true}, {"use_regex", true}};
  Json out = {{"version", "1.0"},      {"truncation", nullptr},     {"padding", nullptr}, {"added_tokens", Json::array()},
              {"normalizer", nullptr}, {"post_processor", nullptr}, {"decoder", nullptr}};
  if (options.kind == VocabularyKind::wordpiece) {
    out["normalizer"] = bert;
    out["pre_tokenizer"] = {{"type", "BertPreTokenizer"}};
    out["decoder"] = {{"type", "WordPiece"}, {"prefix", "##"}, {"cleanup", true}};
  } else if (bpe) {
    out["pre_tokenizer"] = out["post_processor"] = out["decoder"] = byte_level;
  } else {
    if (options.lowercase) out["normalizer"] = {{"type", "Lowercase"}};
    const bool words = options.kind == VocabularyKind::words;
    const Json every_char = {{"type", "Split"}, {"pattern", {{"Regex", "[\\s\\S]"}}}, {"behavior", "Isolated"}, {"invert", false}};
    out["pre_tokenizer"] = words ? Json{{"type", "Whitespace"}} : every_char;
    if (!words) out["decoder"] = {{"type", "Fuse"}};
  }
  return out;
}

std::vector<std::string> special_tokens(VocabularyKind kind) {
  if (kind == VocabularyKind::wordpiece) return {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"};
  if (kind == VocabularyKind::bpe) return {"<|endoftext|>"};
  return {"<pad>", "<unk>", "<s>", "</s>"};
}

// Counts the words of text files, one chunk of lines per task.
class Counter {
 public:
  explicit Counter(const Json& json) : pre_tokenizer_(make_pre_tokenizer({json["pre_tokenizer"], "pre_tokenizer"})) {
    if (!json["normalizer"].is_null()) normalizer_ = make_normalizer({json["normalizer"], "normalizer"});
  }

  void add(const Path& path) {
    const std::shared_ptr<const MappedFile> file = MappedFile::open(path);
    const std::string_view text = file->text(0, file->size());
    bytes_ += file->size();
    constexpr size_t chunk_bytes = size_t{1} << 20;
    std::vector<size_t> ends;
    for (size_t begin = 0; begin < text.size(); begin = ends.back()) {
      const size_t line_end = text.find('\n', std::min(begin + chunk_bytes, text.size()));
      ends.push_back(line_end == text.npos ? text.size() : line_end + 1);
    }
    parallel_tasks(std::ssize(ends), [&](int64_t task) {
      const auto i = static_cast<size_t>(task);
      const size_t begin = i == 0 ? 0 : ends[i - 1];
      Counts counts;
      count(text.substr(begin, ends[i] - begin), counts);
      const std::lock_guard lock(mutex_);
      for (size_t w = 0; w < counts.words.size(); ++w) all_.add(counts.words[w].text, counts.words[w].count);
    });
  }

  std::vector<CountedWord> sorted() {  // by bytes: independent of thread timing
    std::sort(all_.words.begin(), all_.words.end(), [](const CountedWord& a, const CountedWord& b) { return a.text < b.text; });
    if (pre_tokenizer_.byte_level)
      for (CountedWord& word : all_.words) word.text = to_byte_chars(word.text);
    return std::move(all_.words);
  }
  int64_t bytes() const { return bytes_; }

 private:
  struct Counts {
    StringTable table;
    std::vector<CountedWord> words;

    void add(std::string_view word, int64_t times) {
      int32_t index = table.find(word);
      if (index < 0) {
        index = static_cast<int32_t>(words.size());
        table.insert(word, index);
        words.push_back({std::string(word), 0});
      }
      words[static_cast<size_t>(index)].count += times;
    }
  };

  void count(std::string_view text, Counts& counts) const {
    Words words;
    for (size_t begin = 0, end = 0; begin < text.size(); begin = end) {
      end = std::min(text.find('\n', begin), text.size() - 1) + 1;
      words.text = Aligned(text.substr(begin, end - begin));
      if (normalizer_) normalizer_(words.text);
      words.words.assign(1, {{0, static_cast<uint32_t>(words.text.text.size())}});
      pre_tokenizer_(words);
      for (const Word& word : words.words)
        counts.add(std::string_view(words.text.text).substr(word.at.begin, word.at.end - word.at.begin), 1);
    }
  }

  Normalizer normalizer_;
  PreTokenizer pre_tokenizer_;
  std::mutex mutex_;
  Counts all_;
  int64_t bytes_ = 0;
};

// Most frequent first, ties by bytes.
void by_count(std::vector<CountedWord>& words) {
  std::sort(words.begin(), words.end(),
            [](const CountedWord& a, const CountedWord& b) { return a.count != b.count ? a.count > b.count : a.text < b.text; });
}

// The `max_chars` most frequent characters of the words, by code point.
std::vector<std::string> alphabet(const std::vector<CountedWord>& words, size_t max_chars) {
  std::map<std::string, int64_t> counts;
  for (const CountedWord& word : words)
    for (size_t i = 0, next = 0; i < word.text.size(); i = next) {
      next = i + char_bytes(word.text[i]);
      counts[word.text.substr(i, next - i)] += word.count;
    }
  std::vector<CountedWord> chars;
  for (const auto& [c, count] : counts) chars.push_back({c, count});
  by_count(chars);
  chars.resize(std::min(chars.size(), max_chars));
  std::vector<std::string> out;
  for (CountedWord& c : chars) out.push_back(std::move(c.text));
  std::sort(out.begin(), out.end());  // UTF-8 sorts by code point
  return out;
}

Json model_json(const TrainVocabularyOptions& options, const TrainedMerges& trained) {
  Json vocabulary = Json::object();
  for (size_t id = 0; id < trained.tokens.size(); ++id) vocabulary[trained.tokens[id]] = id;
  if (options.kind == VocabularyKind::wordpiece)
    return {{"type", "WordPiece"},
            {"unk_token", "[UNK]"},
            {"continuing_subword_prefix", "##"},
            {"max_input_chars_per_word", 100},
            {"vocab", vocabulary}};
  if (options.kind != VocabularyKind::bpe) return {{"type", "WordLevel"}, {"unk_token", "<unk>"}, {"vocab", vocabulary}};
  Json merges = Json::array();
  for (const auto& [left, right] : trained.merges) merges.push_back(left + " " + right);
  return {{"type", "BPE"},
          {"dropout", nullptr},
          {"unk_token", nullptr},
          {"continuing_subword_prefix", nullptr},
          {"end_of_word_suffix", nullptr},
          {"fuse_unk", false},
          {"byte_fallback", false},
          {"ignore_merges", false},
          {"vocab", vocabulary},
          {"merges", merges}};
}

void add_special(Json& json, VocabularyKind kind) {
  int id = 0;
  for (const std::string& token : special_tokens(kind)) json["added_tokens"].push_back(added_token(id++, token));
  if (kind != VocabularyKind::wordpiece) return;
  const auto special = [](const char* token, int type) { return Json{{"SpecialToken", {{"id", token}, {"type_id", type}}}}; };
  const auto sequence = [](const char* name, int type) { return Json{{"Sequence", {{"id", name}, {"type_id", type}}}}; };
  const Json single = {special("[CLS]", 0), sequence("A", 0), special("[SEP]", 0)};
  Json pair = single;
  pair.push_back(sequence("B", 1));
  pair.push_back(special("[SEP]", 1));
  Json ids = Json::object();
  for (const auto& [token, number] : {std::pair("[CLS]", 2), std::pair("[SEP]", 3)})
    ids[token] = {{"id", token}, {"ids", {number}}, {"tokens", {token}}};
  json["post_processor"] = {{"type", "TemplateProcessing"}, {"single", single}, {"pair", pair}, {"special_tokens", ids}};
}

void save(const Path& folder, const TrainVocabularyOptions& options, const Json& json, const TrainedMerges& trained) {
  std::filesystem::create_directories(folder);
  if (options.kind == VocabularyKind::wordpiece) {
    std::string lines;
    for (const std::string& token : trained.tokens) lines += token + "\n";
    write_text(folder / "vocab.txt", lines);
    write_json(folder / "tokenizer_config.json", {{"tokenizer_class", "BertTokenizer"}, {"do_lower_case", options.lowercase}});
  } else if (options.kind == VocabularyKind::bpe) {
    std::string lines = "#version: 0.2\n";
    for (const auto& [left, right] : trained.merges) lines.append(left).append(" ").append(right).append("\n");
    write_text(folder / "merges.txt", lines);
    write_json(folder / "vocab.json", json["model"]["vocab"]);
    write_json(folder / "tokenizer_config.json", {{"tokenizer_class", "GPT2Tokenizer"}, {"add_prefix_space", false}});
  }
  write_json(folder / "tokenizer.json", json);
}

}  // namespace
}  // namespace text

TrainedVocabulary train_vocabulary(std::span<const Path> files, const Path& folder, const TrainVocabularyOptions& options) {
  Json json = text::tokenizer_json(options);
  std::vector<std::string> tokens = text::special_tokens(options.kind);
  check(options.size > std::ssize(tokens) && options.size <= text::kMaxTokenId, "train_vocabulary: found a size of ", options.size,
        ", expected ", tokens.size() + 1, " to ", text::kMaxTokenId);
  text::Counter counter(json);
  for (const Path& file : files) counter.add(file);
  std::vector<text::CountedWord> words = counter.sorted();
  check<FileError>(!words.empty(), files.empty() ? "train_vocabulary" : files.front().string(),
                   ": found no words, expected text to train on");

  text::TrainedMerges trained;
  TrainedVocabulary out{0, std::ssize(words), counter.bytes()};
  if (options.kind == VocabularyKind::wordpiece) {
    for (std::string& c : text::alphabet(words, static_cast<size_t>(options.limit_alphabet))) tokens.push_back(std::move(c));
    trained = text::train_merges(words, std::move(tokens), "##", options.size, options.min_count);
  } else if (options.kind == VocabularyKind::bpe) {
    std::vector<char32_t> bytes(text::byte_chars().begin(), text::byte_chars().end());
    std::sort(bytes.begin(), bytes.end());
    for (const char32_t c : bytes) tokens.push_back(text::utf8(c));
    trained = text::train_merges(words, std::move(tokens), "", options.size, options.min_count);
  } else {
    text::by_count(words);
    trained.tokens = std::move(tokens);
    for (text::CountedWord& word : words)
      if (std::ssize(trained.tokens) < options.size && word.count >= options.min_count &&
          std::find(trained.tokens.begin(), trained.tokens.begin() + 4, word.text) == trained.tokens.begin() + 4)
        trained.tokens.push_back(std::move(word.text));
  }
  out.tokens = std::ssize(trained.tokens);
  json["model"] = text::model_json(options, trained);
  text::add_special(json, options.kind);
  text::save(folder, options, json, trained);
  return out;
}

}  // namespace heed
