#include "heed/models/answer.h"

#include <algorithm>
#include <cmath>

#include "heed/models/finite.h"

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

// Softmax over the tokens [begin, end) and token 0; returns the probabilities of [begin, end). logits: of all tokens
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

template <class T>
std::vector<T> window_of(const std::vector<T>& all, size_t begin, size_t first, size_t last, size_t end) {
  std::vector<T> out(all.begin(), all.begin() + static_cast<int64_t>(begin));
  out.insert(out.end(), all.begin() + static_cast<int64_t>(first), all.begin() + static_cast<int64_t>(last));
  out.insert(out.end(), all.begin() + static_cast<int64_t>(end), all.end());
  return out;
}

}  // namespace

std::vector<Encoding> answer_windows(const Encoding& pair, int64_t max_length, int64_t overlap) {
  const auto [begin, end] = second_text(pair);
  if (pair.size() <= max_length) return {pair};
  const int64_t others = pair.size() - static_cast<int64_t>(end - begin), room = max_length - others;
  check<UsageError>(room >= 1, "answers: a question of ", others, " tokens, expected fewer than ", max_length,
                    ", so that the text has room");
  const auto width = static_cast<size_t>(room), step = static_cast<size_t>(room - std::min(overlap, room / 2));
  std::vector<Encoding> out;
  for (size_t first = begin;; first += step) {
    const size_t last = std::min(first + width, end);
    out.push_back({.ids = window_of(pair.ids, begin, first, last, end),
                   .type_ids = window_of(pair.type_ids, begin, first, last, end),
                   .attention_mask = window_of(pair.attention_mask, begin, first, last, end),
                   .special_mask = window_of(pair.special_mask, begin, first, last, end),
                   .offsets = window_of(pair.offsets, begin, first, last, end)});
    if (last == end) return out;
  }
}

std::vector<AnswerSpan> best_of_windows(std::vector<AnswerSpan> all, int64_t top) {
  std::sort(all.begin(), all.end(), [](const AnswerSpan& a, const AnswerSpan& b) {
    return a.score != b.score ? a.score > b.score : a.at.begin != b.at.begin ? a.at.begin < b.at.begin : a.at.end < b.at.end;
  });
  std::vector<AnswerSpan> out;
  for (const AnswerSpan& each : all) {  // windows overlap
    const bool is_new = std::none_of(
        out.begin(), out.end(), [&](const AnswerSpan& other) { return other.at.begin == each.at.begin && other.at.end == each.at.end; });
    if (is_new && std::ssize(out) < top) out.push_back(each);
  }
  return out;
}

std::vector<AnswerSpan> answers_in(const Encoding& encoding, std::span<const float> start_logits, std::span<const float> end_logits,
                                   int64_t top) {
  const auto [begin, end] = second_text(encoding);
  if (begin == end || begin < 2) return {};  // no second text: it follows at least [CLS] and [SEP]
  const std::vector<double> starts = probabilities(start_logits, begin, end), ends = probabilities(end_logits, begin, end);
  std::vector<AnswerSpan> all;
  for (size_t i = 0; i < starts.size(); ++i)
    for (size_t j = i; j < std::min(i + kMostAnswerTokens, ends.size()); ++j)
      all.push_back({{encoding.offsets[begin + i].begin, encoding.offsets[begin + j].end}, static_cast<float>(starts[i] * ends[j])});
  const size_t kept = std::min(static_cast<size_t>(std::max<int64_t>(top, 1)), all.size());
  std::partial_sort(all.begin(), all.begin() + static_cast<int64_t>(kept), all.end(), [](const AnswerSpan& a, const AnswerSpan& b) {
    return a.score != b.score ? a.score > b.score : a.at.begin != b.at.begin ? a.at.begin < b.at.begin : a.at.end < b.at.end;
  });
  all.erase(all.begin() + static_cast<int64_t>(kept), all.end());
  return all;
}

std::vector<std::vector<AnswerSpan>> find_answers(const TextModel& model, std::span<const Encoding> encodings, int64_t top,
                                                  const Done& done) {
  std::vector<Encoding> windows;
  std::vector<size_t> pair_of;  // of each window
  std::vector<int64_t> left(encodings.size());
  for (size_t i = 0; i < encodings.size(); ++i)
    for (Encoding& window : answer_windows(encodings[i], model.max_tokens)) {
      windows.push_back(std::move(window));
      pair_of.push_back(i);
      ++left[i];
    }
  std::vector<std::vector<AnswerSpan>> out(encodings.size());
  const auto reduce = [&](const TextBatch& batch) -> TensorMap {
    check(batch.out.contains("start_logits"), model.model.architecture(),
          ": has no output start_logits, expected a model that answers questions");
    return {{"start_logits", batch.out.at("start_logits")}, {"end_logits", batch.out.at("end_logits")}};
  };
  const auto use = [&](const TextBatch& batch) {
    const std::vector<float> starts = batch.out.at("start_logits").to_vector<float>(), ends = batch.out.at("end_logits").to_vector<float>();
    const auto N = static_cast<size_t>(batch.out.at("start_logits").size(1));
    int64_t finished = 0;
    for (size_t b = 0; b < batch.places.size(); ++b) {
      const size_t window = batch.places[b], pair = pair_of[window];
      const std::vector<AnswerSpan> found =
          answers_in(windows[window], std::span(starts).subspan(b * N, N), std::span(ends).subspan(b * N, N), top);
      out[pair].insert(out[pair].end(), found.begin(), found.end());
      finished += --left[pair] == 0;
    }
    if (done) done(finished);
  };
  try {
    each_batch(model, windows, reduce, use);
  } catch (const NonfiniteOutput& error) {
    throw NonfiniteOutput(error.what(), static_cast<int64_t>(pair_of[static_cast<size_t>(error.item)]));
  }
  for (std::vector<AnswerSpan>& each : out) each = best_of_windows(std::move(each), std::max<int64_t>(top, 1));
  return out;
}

}  // namespace heed
