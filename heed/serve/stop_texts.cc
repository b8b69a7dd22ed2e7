#include "heed/serve/stop_texts.h"

#include <algorithm>

namespace heed::serve {
namespace {

constexpr std::string_view kIncomplete = "\xEF\xBF\xBD";  // U+FFFD, for a character whose last bytes are in the next tokens
constexpr size_t kMostIncomplete = 8;                     // tokens; then it is not a character at all

// The longest end of the text that is the beginning of a stop text.
size_t possible_stop(const std::string& text, const std::vector<std::string>& stops) {
  size_t most = 0;
  for (const std::string& stop : stops)
    for (size_t n = std::min(stop.size() - 1, text.size()); n > most; --n)
      if (text.compare(text.size() - n, n, stop, 0, n) == 0) most = n;
  return most;
}

}  // namespace

std::string TextSoFar::add(int32_t token) {
  tokens_.push_back(token);
  const std::span<const int32_t> all(tokens_);
  const std::string before = tokenizer_->decode(all.subspan(context_, decoded_ - context_)),
                    after = tokenizer_->decode(all.subspan(context_));
  const bool incomplete = after.ends_with(kIncomplete) && tokens_.size() - decoded_ < kMostIncomplete;
  if (!incomplete && after.size() >= before.size()) {
    held_ += after.substr(before.size());
    context_ = decoded_;
    decoded_ = tokens_.size();
  }
  return released(false);
}

std::string TextSoFar::rest() {
  if (!stopped_ && decoded_ < tokens_.size()) {
    const std::span<const int32_t> all(tokens_);
    const std::string before = tokenizer_->decode(all.subspan(context_, decoded_ - context_));
    const std::string after = tokenizer_->decode(all.subspan(context_));
    if (after.size() > before.size()) held_ += after.substr(before.size());  // shorter: the last bytes complete a character before them
    decoded_ = tokens_.size();
  }
  return released(true);
}

std::string TextSoFar::released(bool at_end) {
  if (stopped_) return "";
  size_t first = std::string::npos;
  for (const std::string& stop : stop_) first = std::min(first, held_.find(stop));
  if (first != std::string::npos) {
    stopped_ = true;
    return held_.substr(0, first);
  }
  const size_t keep = at_end ? 0 : possible_stop(held_, stop_);
  std::string out = held_.substr(0, held_.size() - keep);
  held_.erase(0, out.size());
  return out;
}

}  // namespace heed::serve
