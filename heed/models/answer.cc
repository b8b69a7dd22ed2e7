#include "heed/models/answer.h"

#include <algorithm>
#include <cmath>

namespace heed {
namespace {

constexpr size_t kMostAnswerTokens = 15;

// The tokens of the second text: the last ones that the tokenizer has not added. -> [begin, end)
std::pair<size_t, size_t> second_text(const Encoding& encoding) {
  size_t end = encoding.ids.size();
  while (end > 0 && encoding.special_mask[end - 1]) --end;
  size_t begin = end;
  while (begin > 0 && !encoding.special_mask[begin - 1]) --begin;
  return {begin, end};
}

// The probabilities of tokens begin ... end, with token 0 beside them. logits: of all tokens
std::vector<double> probabilities(std::span<const float> logits, size_t begin, size_t end) {
  const float largest =
      std::max(logits[0], *std::max_element(logits.begin() + static_cast<int64_t>(begin), logits.begin() + static_cast<int64_t>(end)));
  double total = std::exp(static_cast<double>(logits[0] - largest));
  std::vector<double> out;
  for (size_t i = begin; i < end; ++i) {
    out.push_back(std::exp(static_cast<double>(logits[i] - largest)));
    total += out.back();
  }
  for (double& each : out) each /= total;
  return out;
}

std::vector<AnswerSpan> best_answers(const Encoding& encoding, std::span<const float> start_logits, std::span<const float> end_logits,
                                     size_t top) {
  const auto [begin, end] = second_text(encoding);
  if (begin == end || begin < 2) return {};  // before the second text are a token of the tokenizer and one that ends the first
  const std::vector<double> starts = probabilities(start_logits, begin, end), ends = probabilities(end_logits, begin, end);
  std::vector<AnswerSpan> all;
  for (size_t i = 0; i < starts.size(); ++i)
    for (size_t j = i; j < std::min(i + kMostAnswerTokens, ends.size()); ++j)
      all.push_back({{encoding.offsets[begin + i].begin, encoding.offsets[begin + j].end}, static_cast<float>(starts[i] * ends[j])});
  const size_t kept = std::min(std::max<size_t>(top, 1), all.size());
  std::partial_sort(all.begin(), all.begin() + static_cast<int64_t>(kept), all.end(), [](const AnswerSpan& a, const AnswerSpan& b) {
    return a.score != b.score ? a.score > b.score : a.at.begin != b.at.begin ? a.at.begin < b.at.begin : a.at.end < b.at.end;
  });
  all.erase(all.begin() + static_cast<int64_t>(kept), all.end());
  return all;
}

}  // namespace

std::vector<std::vector<AnswerSpan>> find_answers(const TextModel& model, std::span<const Encoding> encodings, int64_t top,
                                                  const Done& done) {
  std::vector<std::vector<AnswerSpan>> out(encodings.size());
  each_batch(model, encodings, [&](const TextBatch& batch) {
    check(batch.out.contains("start_logits"), model.model.architecture(),
          ": has no output start_logits, expected a model that answers questions");
    const std::vector<float> starts = batch.out.at("start_logits").to_vector<float>(), ends = batch.out.at("end_logits").to_vector<float>();
    const auto N = static_cast<size_t>(batch.out.at("start_logits").size(1));
    for (size_t b = 0; b < batch.places.size(); ++b)
      out[batch.places[b]] = best_answers(encodings[batch.places[b]], std::span(starts).subspan(b * N, N),
                                          std::span(ends).subspan(b * N, N), static_cast<size_t>(std::max<int64_t>(top, 1)));
    if (done) done(std::ssize(batch.places));
  });
  return out;
}

}  // namespace heed
