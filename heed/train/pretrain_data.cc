#include "heed/train/pretrain_data.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "heed/core/check.h"
#include "heed/data/draws.h"
#include "heed/train/batch_order.h"
#include "heed/train/data_fingerprint.h"
#include "heed/train/padded_rows.h"
#include "heed/train/translate_data.h"

namespace heed {
namespace {

bool is_space(char letter) { return letter == ' ' || letter == '\t' || letter == '\n' || letter == '\r'; }

int32_t special_token(const Tokenizer& tokenizer, const char* bert, const char* roberta) {
  for (const char* token : {bert, roberta})
    if (const std::optional<int32_t> id = tokenizer.id(token)) return *id;
  fail<UsageError>("pretrain: the tokenizer has no ", bert, " and no ", roberta, ", expected one; tokenizer=wordpiece has it");
}

bool says_follows(const std::string& label) {
  static const std::set<std::string> words{"follows", "entailment", "entailed", "entails", "yes", "true"};
  return words.contains(label);
}

template <class T>
void shuffle(std::vector<T>& list, size_t first, Draws& draws) {  // only list[0, first)
  for (size_t i = 0; i < first; ++i) {
    const auto rest = static_cast<int64_t>(list.size() - i);
    std::swap(list[i], list[i + static_cast<size_t>(draws.below(rest))]);
  }
}

}  // namespace

std::vector<PairTask> PretrainOptions::pair_tasks() const {
  std::vector<PairTask> out;
  if (next) out.push_back(PairTask::next);
  if (inversion) out.push_back(PairTask::inversion);
  if (inference) out.push_back(PairTask::inference);
  return out;
}

PretrainData::PretrainData(Tokenizer tokenizer, const PretrainOptions& options, std::span<const std::vector<std::string>> documents,
                           std::span<const SentencePair> pairs, const std::string& what)
    : tokenizer_(std::move(tokenizer)),
      options_(options),
      tasks_(options.pair_tasks()),
      cls_(special_token(tokenizer_, "[CLS]", "<s>")),
      sep_(special_token(tokenizer_, "[SEP]", "</s>")),
      mask_(special_token(tokenizer_, "[MASK]", "<mask>")) {
  check<UsageError>(options.max_length >= 8, "pretrain: max_length=", options.max_length, ", expected at least 8");
  for (int32_t id = 0; id < tokenizer_.id_limit(); ++id)
    if (tokenizer_.has(id) && !tokenizer_.is_special(id)) plain_tokens_.push_back(id);
  const EncodeOptions plain{.add_special_tokens = false};
  const int64_t all = tasks_.empty() ? options.max_length - 2 : pair_tokens();
  for (const std::vector<std::string>& texts : documents) {
    const std::vector<Encoding> encodings = tokenizer_.encode_all(texts, plain);
    std::vector<Sentence> sentences;
    for (size_t i = 0; i < texts.size(); ++i)
      if (encodings[i].size() > 0) sentences.push_back(read(texts[i], encodings[i]));
    // A document of one sentence has no next sentence. It must not serve as a wrong second segment either: that would identify it.
    if (sentences.empty() || (options.next && sentences.size() < 2)) continue;
    int64_t tokens = 0, first = 0;
    for (int64_t i = 0; i < std::ssize(sentences); ++i) {
      tokens += std::ssize(sentences[static_cast<size_t>(i)].ids);
      if (tokens < all && i + 1 < std::ssize(sentences)) continue;
      windows_.push_back({std::ssize(documents_), first, i + 1 - first});
      first = i + 1;
      tokens = 0;
    }
    documents_.push_back(std::move(sentences));
  }
  check<FileError>(!windows_.empty(), what, ": found no documents", options.next ? " of two sentences or more" : "", ", expected some");
  check<FileError>(!options.next || documents_.size() > 1, what, ": found ", documents_.size(),
                   " document of two sentences or more, expected at least 2: next=true needs segments of other documents; blank lines "
                   "separate documents");
  check<FileError>(!options.inference || !pairs.empty(), what, ": found no pairs, expected some for inference=true");
  for (const SentencePair& pair : pairs) {
    pairs_.emplace_back(read(pair.first, tokenizer_.encode(pair.first, plain)), read(pair.second, tokenizer_.encode(pair.second, plain)));
    follows_.push_back(pair.follows);
  }
}

PretrainData::Sentence PretrainData::read(const std::string& text, const Encoding& encoding) const {
  Sentence out{encoding.ids, {}};
  for (size_t i = 0; i < out.ids.size(); ++i) {
    const size_t at = encoding.offsets[i].begin;
    if (i == 0 || is_space(text[at]) || (at > 0 && is_space(text[at - 1]))) out.words.push_back(i);
  }
  return out;
}

// Whole sentences from `first` on and before `last` that fit into max_tokens; at least one, truncated if needed.
PretrainData::Segment PretrainData::fill(int64_t document, int64_t first, int64_t last, int64_t max_tokens) const {
  const std::vector<Sentence>& sentences = documents_[static_cast<size_t>(document)];
  Segment out{sentences[static_cast<size_t>(first)].ids, document, first + 1};
  if (std::ssize(out.ids) > max_tokens) out.ids.resize(static_cast<size_t>(max_tokens));
  for (; out.end < last; ++out.end) {
    const std::vector<int32_t>& more = sentences[static_cast<size_t>(out.end)].ids;
    if (std::ssize(out.ids) + std::ssize(more) > max_tokens) break;
    out.ids.insert(out.ids.end(), more.begin(), more.end());
  }
  return out;
}

// A first segment that leaves at least one sentence for the second.
PretrainData::Segment PretrainData::first_segment(const Window& window, Draws& draws) const {
  const int64_t last = std::ssize(documents_[static_cast<size_t>(window.document)]) - 1;
  const int64_t first = std::min(window.first + draws.below(window.count), last - 1);
  return fill(window.document, first, last, pair_tokens() / 2);
}

void PretrainData::make_next(PretrainSample& sample, const Window& window, Draws& draws) const {
  const Segment first = first_segment(window, draws);
  Segment before = first;  // the segment before the second one
  sample.pair_label = draws.coin() ? 0 : 1;
  if (sample.pair_label == 1) {
    // Drawn like a right second segment, so that only its content differs.
    const Window* other = &window;
    while (other->document == window.document) other = &windows_[static_cast<size_t>(draws.below(count()))];
    before = first_segment(*other, draws);
  }
  const int64_t last = std::ssize(documents_[static_cast<size_t>(before.document)]);
  const Segment second = fill(before.document, before.end, last, pair_tokens() - pair_tokens() / 2);
  sample.first_document = first.document;
  sample.second_document = second.document;
  join(sample, first.ids, second.ids);
}

// The second segment is the first with its words reversed, shuffled, or unchanged.
void PretrainData::make_inversion(PretrainSample& sample, const Window& window, Draws& draws) const {
  sample.first_document = sample.second_document = window.document;
  const auto place = static_cast<size_t>(window.first + draws.below(window.count));
  const Sentence& sentence = documents_[static_cast<size_t>(window.document)][place];
  const auto most = static_cast<size_t>(pair_tokens() / 2);
  std::vector<std::span<const int32_t>> words;  // that fit
  for (size_t w = 0; w < sentence.words.size(); ++w) {
    const size_t begin = sentence.words[w], end = w + 1 < sentence.words.size() ? sentence.words[w + 1] : sentence.ids.size();
    if (end <= most || w == 0) words.push_back(std::span(sentence.ids).subspan(begin, std::min(end, most) - begin));
  }
  const auto joined = [](const std::vector<std::span<const int32_t>>& order) {
    std::vector<int32_t> ids;
    for (const std::span<const int32_t> word : order) ids.insert(ids.end(), word.begin(), word.end());
    return ids;
  };
  const std::vector<int32_t> first = joined(words), inverted = joined({words.rbegin(), words.rend()});
  std::vector<int32_t> second = inverted;
  if (draws.coin()) {
    if (draws.coin()) shuffle(words, words.size(), draws);
    second = joined(words);
  }
  sample.pair_label = second == inverted ? 0 : 1;  // a shuffle of one or two words may equal the reversed order
  join(sample, first, second);
}

void PretrainData::make_inference(PretrainSample& sample, Draws& draws) const {
  const auto place = static_cast<size_t>(draws.below(std::ssize(pairs_)));
  const auto& [premise, conclusion] = pairs_[place];
  const auto most = static_cast<size_t>(pair_tokens());
  const std::span second = std::span(conclusion.ids).first(std::min(conclusion.ids.size(), most / 2));
  const std::span first = std::span(premise.ids).first(std::min(premise.ids.size(), most - second.size()));
  sample.pair_label = follows_[place] ? 0 : 1;
  join(sample, first, second);
}

void PretrainData::join(PretrainSample& sample, std::span<const int32_t> first, std::span<const int32_t> second) const {
  const auto add = [&](std::span<const int32_t> ids, int64_t type) {
    sample.ids.insert(sample.ids.end(), ids.begin(), ids.end());
    sample.ids.push_back(sep_);
    sample.types.resize(sample.ids.size(), type);
  };
  sample.ids.push_back(cls_);
  add(first, 0);
  if (sample.task != PairTask::none) add(second, 1);
  sample.labels.assign(sample.ids.size(), -100);
}

// BERT masking: of the chosen tokens, 80% become [MASK], 10% a random token, 10% stay.
void PretrainData::mask(PretrainSample& sample, Draws draws) const {
  std::vector<size_t> places;
  for (size_t i = 0; i < sample.ids.size(); ++i)
    if (!tokenizer_.is_special(sample.ids[i])) places.push_back(i);
  // Random rounding meets the fraction on average; at least one token, as a sample without one has no loss.
  const double share = static_cast<double>(options_.masked_share) * static_cast<double>(places.size());
  const size_t masked = std::min(places.size(), std::max<size_t>(1, static_cast<size_t>(std::floor(share + draws.unit()))));
  shuffle(places, masked, draws);
  for (size_t k = 0; k < masked; ++k) {
    int64_t& id = sample.ids[places[k]];
    sample.labels[places[k]] = id;
    const int64_t what = draws.below(10);
    if (what < 8) id = mask_;
    if (what == 8) id = plain_tokens_[static_cast<size_t>(draws.below(std::ssize(plain_tokens_)))];
  }
}

PretrainSample PretrainData::sample(RandomKey key, int64_t i) const {
  const Window& window = windows_[static_cast<size_t>(i)];
  Draws draws(key);
  PretrainSample out;
  if (!tasks_.empty()) out.task = tasks_[static_cast<size_t>(draws.below(std::ssize(tasks_)))];
  switch (out.task) {
    case PairTask::next: make_next(out, window, draws); break;
    case PairTask::inversion: make_inversion(out, window, draws); break;
    case PairTask::inference: make_inference(out, draws); break;
    case PairTask::none: {
      const int64_t last = std::ssize(documents_[static_cast<size_t>(window.document)]);
      out.first_document = window.document;
      join(out, fill(window.document, window.first + draws.below(window.count), last, options_.max_length - 2).ids, {});
    }
  }
  if (options_.masked) mask(out, Draws(key, 1));
  return out;
}

Batch PretrainData::batch(uint64_t seed, int64_t epoch, std::span<const int64_t> which) const {
  std::vector<std::vector<int64_t>> ids, types, masks, labels;
  std::vector<int64_t> pair_labels, rows;
  Batch out{.samples = std::ssize(which)};
  for (const int64_t i : which) {
    PretrainSample made = sample(sample_key(seed, epoch, i), i);
    masks.emplace_back(made.ids.size(), 1);
    ids.push_back(std::move(made.ids));
    types.push_back(std::move(made.types));
    labels.push_back(std::move(made.labels));
    pair_labels.push_back(made.pair_label);
    out.extra.push_back(static_cast<double>(made.task));
    rows.push_back(std::ssize(rows));
  }
  out.inputs = {{"input_ids", padded_rows(ids, rows, tokenizer_.padding_id().value_or(0))},
                {"token_type_ids", padded_rows(types, rows, 0)},
                {"attention_mask", padded_rows(masks, rows, 0)}};
  if (options_.masked) out.inputs["labels"] = padded_rows(labels, rows, -100);
  if (!tasks_.empty()) out.inputs["next_sentence_label"] = Tensor::from(pair_labels, {out.samples}, kCpu);
  return out;
}

std::vector<SentencePair> inference_pairs(const std::vector<LabelledText>& texts, const std::string& source) {
  std::vector<SentencePair> out;
  std::set<std::string> labels;
  bool any = false;
  for (const LabelledText& text : texts) {
    check<FileError>(text.pair.has_value(), source, ": found single sentences, expected pairs of them for inference_data");
    labels.insert(text.label);
    any = any || says_follows(text.label);
    out.push_back({text.text, *text.pair, says_follows(text.label)});
  }
  std::string list;
  for (const std::string& label : labels)
    if (list.size() < 200) list += (list.empty() ? "" : ", ") + label;
  check<FileError>(any, source, ": found the labels ", list, ", expected one of follows, entailment, yes and true");
  return out;
}

Json fingerprint_of_texts(std::span<const std::vector<std::string>> documents, std::span<const SentencePair> pairs) {
  Json out = fingerprint_of(documents);
  DataFingerprint fingerprint;
  for (const SentencePair& pair : pairs) {
    for (const std::string& text : {pair.first, pair.second, std::string(pair.follows ? "follows" : "")}) fingerprint.add(text);
    fingerprint.next();
  }
  if (!pairs.empty()) out["pairs"] = fingerprint.json()["items"], out["pairs_checksum"] = fingerprint.json()["checksum"];
  return out;
}

}  // namespace heed
