#include "heed/text/batches.h"

#include <algorithm>
#include <numeric>

#include "heed/core/parallel.h"

namespace heed {

EncodedSentences encode_sentences(const Tokenizer& tokenizer, std::span<const Sentence> sentences, const EncodeOptions& options) {
  EncodedSentences out{.encodings = std::vector<Encoding>(sentences.size())};
  std::vector<uint8_t> cut(sentences.size());
  EncodeOptions whole = options;
  whole.max_length = 0;
  parallel_for(std::ssize(sentences), 16, [&](int64_t begin, int64_t end) {
    for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i) {
      const auto encode = [&](const EncodeOptions& how) {
        const auto& [text, pair] = sentences[i];
        return pair ? tokenizer.encode(text, *pair, how) : tokenizer.encode(text, how);
      };
      Encoding encoding = encode(whole);
      cut[i] = options.max_length > 0 && encoding.size() > options.max_length;
      out.encodings[i] = cut[i] ? encode(options) : std::move(encoding);
    }
  });
  out.cut = std::count(cut.begin(), cut.end(), 1);
  return out;
}

std::vector<std::vector<size_t>> batches_by_length(std::span<const Encoding> encodings, int64_t max_tokens) {
  std::vector<size_t> order(encodings.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return encodings[a].size() > encodings[b].size(); });
  std::vector<std::vector<size_t>> batches;
  int64_t longest = 0;
  for (const size_t index : order) {
    if (batches.empty() || (std::ssize(batches.back()) + 1) * longest > max_tokens) {
      batches.emplace_back();
      longest = encodings[index].size();
    }
    batches.back().push_back(index);
  }
  return batches;
}

}  // namespace heed
