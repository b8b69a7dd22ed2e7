// Tokenizer: text to the numbers that a model reads, and back. It opens the files that published models come with.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "heed/core/tensor.h"
#include "heed/io/file.h"
#include "heed/text/aligned.h"

namespace heed {

namespace text {
struct TokenizerParts;  // tokenizer_parts.h
}

enum class Side { left, right };
enum class Truncation { longest_first, only_first, only_second };  // which of a pair is cut

struct EncodeOptions {
  bool add_special_tokens = true;
  int64_t max_length = 0;  // tokens, special ones among them; 0: as many as there are
  Truncation truncation = Truncation::longest_first;
  Side truncation_side = Side::right;  // where tokens are dropped
};

struct Padding {
  int64_t length = 0;       // at least so many tokens; 0: as many as the longest of the batch
  int64_t multiple_of = 1;  // and a multiple of this
  Side side = Side::right;
  int64_t id = -1;  // of the padding token; -1: the tokenizer's own
};

// One text, or a pair of them, as tokens. All lists have one entry a token.
struct Encoding {
  std::vector<int32_t> ids, type_ids;
  std::vector<uint8_t> attention_mask, special_mask;  // 0: padding; 1: a token that the post-processor added, or padding
  std::vector<text::Span> offsets;                    // bytes of the text (of its own text, in a pair) that the token stands for

  int64_t size() const { return std::ssize(ids); }
};

// A batch as a model takes it; all three are (B, N) i64.
struct EncodedBatch {
  Tensor input_ids, token_type_ids, attention_mask;
};

class Tokenizer {
 public:
  // From the folder of a model: tokenizer.json, or vocab.txt (BERT), or vocab.json and merges.txt (GPT-2, RoBERTa), or vocab.json and
  // source.spm (Marian). Also from the path of a tokenizer.json itself.
  static Tokenizer open(const Path& path);
  static Tokenizer open_target(const Path& path);                                // of what a translation is written in, where that differs
  static Tokenizer from_json(std::string_view json, const std::string& source);  // the text of a tokenizer.json

  // Bytes that are not UTF-8 count as U+FFFD. May be called from many threads.
  Encoding encode(std::string_view text, const EncodeOptions& options = {}) const;
  Encoding encode(std::string_view text, std::string_view pair, const EncodeOptions& options = {}) const;
  std::vector<Encoding> encode_all(std::span<const std::string> texts, const EncodeOptions& options = {}) const;  // on all threads
  EncodedBatch encode_batch(std::span<const std::string> texts, const EncodeOptions& options = {}, const Padding& padding = {}) const;
  EncodedBatch batch(std::span<const Encoding> encodings, const Padding& padding = {}) const;
  void pad(Encoding& encoding, int64_t length, const Padding& padding = {}) const;

  std::string decode(std::span<const int32_t> ids, bool skip_special = true) const;

  int64_t id_limit() const;                    // one more than the largest id
  bool has(int64_t id) const;                  // ids may have holes
  const std::string& token(int64_t id) const;  // as it stands in the files
  // For people: bytes as the text they are, a space as "·", a newline as "⏎", half a character as <0xC3>; the number of an id without
  // token.
  std::string display(int64_t id) const;
  std::optional<int32_t> id(std::string_view token) const;
  bool is_special(int64_t id) const;
  std::optional<int32_t> padding_id() const;

  // What the file would have encode do; heed does what it is told.
  const std::optional<EncodeOptions>& stored_truncation() const;
  const std::optional<Padding>& stored_padding() const;

 private:
  explicit Tokenizer(std::shared_ptr<const text::TokenizerParts> parts) : parts_(std::move(parts)) {}

  std::shared_ptr<const text::TokenizerParts> parts_;
};

}  // namespace heed
