// Encoding of one or two texts: tokens, truncation, special tokens.
#include <algorithm>

#include "heed/text/tokenizer_parts.h"

namespace heed::text {
namespace {

void cut(Encoding& encoding, int64_t length, Side side) {
  const int64_t surplus = encoding.size() - length;
  if (surplus <= 0) return;
  const auto drop = [&](auto& list) {
    const auto begin = side == Side::left ? list.begin() : list.end() - surplus;
    list.erase(begin, begin + surplus);
  };
  drop(encoding.ids);
  drop(encoding.offsets);
}

// Truncates two sequences, or one if `pair` is null, to `max_tokens` tokens in total.
void truncate(Encoding& first, Encoding* pair, int64_t max_tokens, const EncodeOptions& options) {
  const int64_t total = first.size() + (pair ? pair->size() : 0);
  if (total <= max_tokens) return;
  if (options.truncation != Truncation::longest_first) {
    Encoding* chosen = options.truncation == Truncation::only_first ? &first : pair;
    check(chosen != nullptr, "encode: found one text, expected a pair for truncation of the second text only");
    const int64_t left = chosen->size() - (total - max_tokens);
    check(left > 0, "encode: found ", total, " tokens and ", chosen->size(),
          " of them in the text to truncate, expected it to have more than the ", total - max_tokens, " to drop");
    return cut(*chosen, left, options.truncation_side);
  }
  if (!pair) return cut(first, max_tokens, options.truncation_side);
  // The shorter sequence keeps all its tokens, up to half of the limit.
  int64_t shorter = std::min(first.size(), pair->size());
  int64_t longer = std::max(shorter, max_tokens - shorter);
  if (shorter + longer > max_tokens) {
    shorter = max_tokens / 2;
    longer = max_tokens - shorter;
  }
  const bool swapped = first.size() > pair->size();
  cut(first, swapped ? longer : shorter, options.truncation_side);
  cut(*pair, swapped ? shorter : longer, options.truncation_side);
}

}  // namespace

std::span<const TokenSpan> WordCache::tokens(const Model& model, std::string_view word) {
  if (word.size() > kLongestWord) {
    uncached_.clear();
    model.split(word, uncached_);
    return uncached_;
  }
  int32_t index = table_.find(word);
  if (index < 0) {
    if (ranges_.size() >= kMaxWords) {
      table_.clear();
      ranges_.clear();
      tokens_.clear();
    }
    index = static_cast<int32_t>(ranges_.size());
    const auto begin = static_cast<uint32_t>(tokens_.size());
    model.split(word, tokens_);
    ranges_.push_back({begin, static_cast<uint32_t>(tokens_.size())});
    table_.insert(word, index);
  }
  const Span range = ranges_[static_cast<size_t>(index)];
  return std::span(tokens_).subspan(range.begin, range.end - range.begin);
}

void TokenizerParts::append_tokens(std::string_view text, Workspace& workspace, Encoding& out) const {
  const Aligned whole(text);
  workspace.raw.clear();
  added.split(whole.text, false, workspace.raw);
  Words& words = workspace.words;
  const auto emit = [&](int32_t id, Span at) {
    while (post_processor.trim_offsets && at.begin < at.end && text[at.begin] == ' ') ++at.begin;
    while (post_processor.trim_offsets && at.begin < at.end && text[at.end - 1] == ' ') --at.end;
    out.ids.push_back(id);
    out.offsets.push_back(at);
  };
  for (const Word& raw : workspace.raw) {
    if (raw.id >= 0) {
      emit(raw.id, whole.source(raw.at.begin, raw.at.end));
      continue;
    }
    whole.cut(raw.at, words.text);
    words.text.limit_growth();
    if (normalizer) normalizer(words.text);
    words.words.clear();
    added.split(words.text.text, true, words.words);
    pre_tokenizer(words);
    for (const Word& word : words.words) {
      if (word.id >= 0) {
        emit(word.id, words.text.source(word.at.begin, word.at.end));
        continue;
      }
      const std::string_view bytes = std::string_view(words.text.text).substr(word.at.begin, word.at.end - word.at.begin);
      for (const TokenSpan& token : workspace.cache.tokens(*model, bytes))
        emit(token.id, words.text.source(word.at.begin + token.begin, word.at.begin + token.end));
    }
  }
}

Encoding TokenizerParts::encode(std::string_view text, const std::string_view* pair, const EncodeOptions& options,
                                Workspace& workspace) const {
  Encoding sequences[2];
  append_tokens(text, workspace, sequences[0]);
  if (pair) append_tokens(*pair, workspace, sequences[1]);
  if (options.max_length != 0) {
    const int64_t special = options.add_special_tokens ? post_processor.added(pair != nullptr) : 0;
    check(options.max_length >= special, "encode: found a max_length of ", options.max_length, ", expected at least ", special,
          ", the number of special tokens");
    truncate(sequences[0], pair ? &sequences[1] : nullptr, options.max_length - special, options);
  }
  Encoding out;
  const auto append = [&](const Encoding& part, int32_t type_id, bool special) {
    out.ids.insert(out.ids.end(), part.ids.begin(), part.ids.end());
    out.offsets.insert(out.offsets.end(), part.offsets.begin(), part.offsets.end());
    out.type_ids.resize(out.ids.size(), type_id);
    out.attention_mask.resize(out.ids.size(), 1);
    out.special_mask.resize(out.ids.size(), special ? 1 : 0);
  };
  for (const TemplateItem& item : pair ? post_processor.pair : post_processor.single) {
    if (item.sequence >= 0) {
      append(sequences[item.sequence], item.type_id, false);
    } else if (options.add_special_tokens) {
      Encoding special;
      special.ids = item.ids;
      special.offsets.resize(item.ids.size());
      append(special, item.type_id, true);
    }
  }
  return out;
}

}  // namespace heed::text
