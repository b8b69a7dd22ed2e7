#include "heed/text/tokenizer.h"

#include <algorithm>
#include <numeric>

#include "heed/core/parallel.h"
#include "heed/text/tokenizer_parts.h"

namespace heed {

Encoding Tokenizer::encode(std::string_view text, const EncodeOptions& options) const {
  text::BorrowedWorkspace workspace(*parts_->pool);
  return parts_->encode(text, nullptr, options, *workspace);
}

Encoding Tokenizer::encode(std::string_view text, std::string_view pair, const EncodeOptions& options) const {
  text::BorrowedWorkspace workspace(*parts_->pool);
  return parts_->encode(text, &pair, options, *workspace);
}

std::vector<Encoding> Tokenizer::encode_all(std::span<const std::string> texts, const EncodeOptions& options) const {
  std::vector<Encoding> out(texts.size());
  parallel_for(std::ssize(texts), 64, [&](int64_t begin, int64_t end) {
    text::BorrowedWorkspace workspace(*parts_->pool);
    for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i)
      out[i] = parts_->encode(texts[i], nullptr, options, *workspace);
  });
  return out;
}

void Tokenizer::pad(Encoding& encoding, int64_t length, const Padding& padding) const {
  const int64_t missing = length - encoding.size();
  if (missing <= 0) return;
  const int64_t id = padding.id >= 0 ? padding.id : padding_id().value_or(-1);
  check(id >= 0, "pad: the tokenizer has no padding token, set its id in the options");
  const auto grow = [&](auto& list, auto value) {
    list.insert(padding.side == Side::left ? list.begin() : list.end(), static_cast<size_t>(missing), value);
  };
  grow(encoding.ids, static_cast<int32_t>(id));
  grow(encoding.type_ids, int32_t{0});
  grow(encoding.attention_mask, uint8_t{0});
  grow(encoding.special_mask, uint8_t{1});
  grow(encoding.offsets, text::Span{});
}

EncodedBatch Tokenizer::batch(std::span<const Encoding> encodings, const Padding& padding) const {
  check(!encodings.empty(), "batch: found no texts, expected at least one");
  check(padding.multiple_of > 0, "batch: found a multiple_of of ", padding.multiple_of, ", expected at least 1");
  int64_t length = padding.length;
  for (const Encoding& encoding : encodings) length = std::max(length, encoding.size());
  length = (length + padding.multiple_of - 1) / padding.multiple_of * padding.multiple_of;
  std::vector<int64_t> ids, type_ids, mask;
  for (const Encoding& encoding : encodings) {
    Encoding row = encoding;
    pad(row, length, padding);
    ids.insert(ids.end(), row.ids.begin(), row.ids.end());
    type_ids.insert(type_ids.end(), row.type_ids.begin(), row.type_ids.end());
    mask.insert(mask.end(), row.attention_mask.begin(), row.attention_mask.end());
  }
  const Shape shape{std::ssize(encodings), length};
  return {Tensor::from(ids, shape, kCpu), Tensor::from(type_ids, shape, kCpu), Tensor::from(mask, shape, kCpu)};
}

EncodedBatch Tokenizer::encode_batch(std::span<const std::string> texts, const EncodeOptions& options, const Padding& padding) const {
  return batch(encode_all(texts, options), padding);
}

std::string Tokenizer::decode(std::span<const int32_t> ids, bool skip_special) const {
  std::vector<std::string> tokens;
  for (const int32_t id : ids) {
    check(has(id), "decode: found the id ", id, ", expected one of the ", parts_->model->vocabulary().count(), " tokens, all below ",
          id_limit());
    if (!skip_special || !is_special(id)) tokens.push_back(token(id));
  }
  parts_->decoder(tokens);
  return std::accumulate(tokens.begin(), tokens.end(), std::string());
}

int64_t Tokenizer::id_limit() const {
  int64_t limit = parts_->model->vocabulary().id_limit();
  for (const text::AddedToken& token : parts_->added.all()) limit = std::max<int64_t>(limit, token.id + 1);
  return limit;
}

bool Tokenizer::has(int64_t id) const { return parts_->added.find(id) != nullptr || parts_->model->vocabulary().has(id); }

const std::string& Tokenizer::token(int64_t id) const {
  if (const text::AddedToken* added = parts_->added.find(id)) return added->content;
  check(parts_->model->vocabulary().has(id), "token: found the id ", id, ", expected one that has a token, all below ", id_limit());
  return parts_->model->vocabulary().token(id);
}

std::optional<int32_t> Tokenizer::id(std::string_view token) const {
  if (const text::AddedToken* added = parts_->added.find(token)) return added->id;
  const int32_t id = parts_->model->vocabulary().find(token);
  return id >= 0 ? std::optional(id) : std::nullopt;
}

bool Tokenizer::is_special(int64_t id) const {
  const text::AddedToken* added = parts_->added.find(id);
  return added && added->special;
}

std::optional<int32_t> Tokenizer::mask_id() const {
  const std::optional<int32_t> mask = id("[MASK]");
  return mask ? mask : id("<mask>");
}

std::optional<int32_t> Tokenizer::padding_id() const { return parts_->padding_id; }
const std::optional<EncodeOptions>& Tokenizer::stored_truncation() const { return parts_->truncation; }
const std::optional<Padding>& Tokenizer::stored_padding() const { return parts_->padding; }

}  // namespace heed
