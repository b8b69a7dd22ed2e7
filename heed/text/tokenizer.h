// Tokenizer: text to token ids and back, from the tokenizer files of published models.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "heed/core/api.h"
#include "heed/core/tensor.h"
#include "heed/io/file.h"
#include "heed/text/aligned.h"

namespace HEED_API heed {

namespace text {
struct TokenizerParts;  // tokenizer_parts.h
}

// Of a sequence of tokens.
enum class Side { left, right };
enum class Truncation { longest_first, only_first, only_second };  // which text of a pair is truncated

// How text becomes tokens: special tokens such as [CLS], and where long texts are cut.
struct EncodeOptions {
  bool add_special_tokens = true;
  int64_t max_length = 0;  // tokens including special ones; 0: no limit
  Truncation truncation = Truncation::longest_first;
  Side truncation_side = Side::right;  // the side where tokens are dropped
};

// How the encodings of a batch get the same length.
struct Padding {
  int64_t length = 0;       // minimum length; 0: the longest of the batch
  int64_t multiple_of = 1;  // lengths are rounded up to a multiple
  Side side = Side::right;
  int64_t id = -1;  // of the padding token; -1: the tokenizer's own
};

// A tokenized text or pair of texts. All vectors have one entry per token.
struct Encoding {
  std::vector<int32_t> ids, type_ids;
  std::vector<uint8_t> attention_mask, special_mask;  // attention 0: padding; special 1: added by the post-processor, or padding
  std::vector<text::Span> offsets;                    // byte range of the token in its text

  int64_t size() const { return std::ssize(ids); }  // tokens
};

// Model inputs, each (B, N) i64.
struct EncodedBatch {
  Tensor input_ids, token_type_ids, attention_mask;
};

// Text to token ids and back, equal to the `tokenizers` package.
class Tokenizer {
 public:
  // Opens a model folder with tokenizer.json, or vocab.txt (BERT), or vocab.json and merges.txt (GPT-2, RoBERTa), or vocab.json and
  // source.spm (Marian), or spiece.model (T5), sentencepiece.bpe.model (XLM-R) or tokenizer.model (Llama); or the path of a tokenizer.json.
  static Tokenizer open(const Path& path);
  static Tokenizer open_target(const Path& path);                                // the target-side tokenizer of a translation model
  static Tokenizer from_json(std::string_view json, const std::string& source);  // contents of a tokenizer.json

  // Invalid UTF-8 is read as U+FFFD. Thread-safe.
  Encoding encode(std::string_view text, const EncodeOptions& options = {}) const;
  Encoding encode(std::string_view text, std::string_view pair, const EncodeOptions& options = {}) const;
  std::vector<Encoding> encode_all(std::span<const std::string> texts, const EncodeOptions& options = {}) const;  // on all threads
  EncodedBatch encode_batch(std::span<const std::string> texts, const EncodeOptions& options = {}, const Padding& padding = {}) const;
  EncodedBatch batch(std::span<const Encoding> encodings, const Padding& padding = {}) const;
  void pad(Encoding& encoding, int64_t length, const Padding& padding = {}) const;

  // The text of tokens. skip_special: without [CLS] and the like
  std::string decode(std::span<const int32_t> ids, bool skip_special = true) const;

  int64_t id_limit() const;                    // largest id + 1
  bool has(int64_t id) const;                  // ids may have gaps
  const std::string& token(int64_t id) const;  // as stored in the vocabulary
  // Readable form: bytes decoded to text, a space as "·", a newline as "⏎", an incomplete character as <0xC3>; the id if it has no token.
  std::string display(int64_t id) const;
  std::optional<int32_t> id(std::string_view token) const;
  bool is_special(int64_t id) const;
  std::optional<int32_t> padding_id() const;
  std::optional<int32_t> mask_id() const;  // [MASK], or <mask> as in RoBERTa

  // Settings stored in the tokenizer file; encode ignores them.
  const std::optional<EncodeOptions>& stored_truncation() const;
  const std::optional<Padding>& stored_padding() const;

 private:
  explicit Tokenizer(std::shared_ptr<const text::TokenizerParts> parts) : parts_(std::move(parts)) {}

  std::shared_ptr<const text::TokenizerParts> parts_;
};

}  // namespace heed
