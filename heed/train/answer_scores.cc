#include "heed/train/answer_scores.h"

#include <algorithm>
#include <cctype>
#include <map>

#include "heed/text/unicode.h"
#include "heed/train/ngrams.h"

namespace heed {
namespace {

std::vector<std::string> words_of_answer(const std::string& answer) {
  const std::string lower = lowercased(answer);
  std::vector<std::string> out(1);
  for (size_t at = 0; at < lower.size();) {
    const char32_t c = text::next_char(lower, at);
    if (splits_words(c))
      out.emplace_back();
    else if (c >= 128 || std::ispunct(static_cast<int>(c)) == 0)
      text::append_utf8(out.back(), c);
  }
  std::erase_if(out, [](const std::string& word) { return word.empty() || word == "a" || word == "an" || word == "the"; });
  return out;
}

}  // namespace

std::pair<int64_t, int64_t> tokens_of_answer(const Encoding& window, size_t begin, size_t bytes) {
  int64_t last = window.size() - 1;
  while (last >= 0 && window.special_mask[static_cast<size_t>(last)]) --last;
  int64_t first = last;
  while (first > 0 && !window.special_mask[static_cast<size_t>(first - 1)]) --first;  // of the second text
  int64_t start = -1, end = -1;
  for (int64_t i = first; i <= last; ++i) {
    const text::Span at = window.offsets[static_cast<size_t>(i)];
    if (at.end <= begin || at.begin >= begin + bytes) continue;
    if (start < 0) start = i;
    end = i;
  }
  const bool whole = start >= 0 && window.offsets[static_cast<size_t>(start)].begin <= begin &&
                     window.offsets[static_cast<size_t>(end)].end >= begin + bytes;
  return whole ? std::pair(start, end) : std::pair(int64_t{0}, int64_t{0});
}

std::string plain_answer(const std::string& answer) {
  std::string out;
  for (const std::string& word : words_of_answer(answer)) out += (out.empty() ? "" : " ") + word;
  return out;
}

bool exact_answer(const std::string& guess, const Question& item) {
  return std::any_of(item.answers.begin(), item.answers.end(),
                     [&](const Question::Answer& answer) { return plain_answer(answer.text) == plain_answer(guess); });
}

double answer_f1(const std::string& guess, const std::string& truth) {
  const std::vector<std::string> guessed = words_of_answer(guess), right = words_of_answer(truth);
  if (guessed.empty() || right.empty()) return guessed.empty() && right.empty();
  std::map<std::string, int64_t> counts;
  for (const std::string& word : right) ++counts[word];
  double shared = 0;
  for (const std::string& word : guessed) shared += counts[word]-- > 0;
  return 2 * shared / static_cast<double>(guessed.size() + right.size());
}

Evaluation answer_evaluation(const std::vector<Question>& items, const std::vector<std::vector<AnswerSpan>>& found) {
  constexpr size_t listed = 20;
  double exact = 0, f1 = 0;
  Json list = Json::array();
  for (size_t i = 0; i < items.size(); ++i) {
    const Question& item = items[i];
    const text::Span at = found[i].empty() ? text::Span{} : found[i][0].at;
    const std::string guess = item.context.substr(at.begin, at.end - at.begin);
    exact += exact_answer(guess, item);
    double best = 0;
    for (const Question::Answer& answer : item.answers) best = std::max(best, answer_f1(guess, answer.text));
    f1 += best;
    if (i < listed) list.push_back({{"question", item.question}, {"answer", item.answers[0].text}, {"found", guess}});
  }
  const auto count = static_cast<double>(std::max<size_t>(items.size(), 1));
  return {.figures = {{"exact", exact / count}, {"f1", f1 / count}}, .detail = {{"answers", list}}};
}

Evaluation evaluate_answers(const TextModel& model, const std::vector<Question>& items, const Done& done) {
  const NoGrad no_grad;
  std::vector<Sentence> pairs;
  for (const Question& item : items) pairs.push_back({item.question, item.context});
  return answer_evaluation(items, find_answers(model, encode_sentences(model.tokenizer, pairs).encodings, 1, done));
}

}  // namespace heed
