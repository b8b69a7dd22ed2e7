#include "heed/models/classify.h"

#include <algorithm>
#include <numeric>

#include "heed/models/architecture.h"
#include "heed/models/token_labels.h"
#include "heed/ops/ops.h"

namespace heed {
namespace {

std::vector<std::string> label_names(const Config& config) {
  std::vector<std::string> names;
  const Config id2label = config.below("id2label");
  for (int64_t id = 0; id < config.labels(); ++id) {
    const std::string key = std::to_string(id);
    check<FileError>(!config.has("id2label") || id2label.has(key), config.source(), ": id2label has ", config.labels(),
                     " names but none for ", id, ", expected one for every number from 0 to ", config.labels() - 1);
    names.push_back(id2label.string(key, "LABEL_" + key));
  }
  return names;
}

Labels::Kind kind_in(const Config& config, size_t labels) {
  const std::string problem = config.string("problem_type", labels == 1 ? "regression" : "single_label_classification");
  if (problem == "regression") return Labels::Kind::value;
  if (problem == "multi_label_classification") return Labels::Kind::each;
  if (problem != "single_label_classification")
    config.refuse("problem_type", "regression, single_label_classification or multi_label_classification");
  return Labels::Kind::one;
}

// The indices of the `top` largest numbers of a row; 0: all.
std::vector<size_t> best_of(std::span<const float> row, int64_t top) {
  std::vector<size_t> order(row.size());
  std::iota(order.begin(), order.end(), size_t{0});
  const size_t count = top > 0 ? std::min(order.size(), static_cast<size_t>(top)) : order.size();
  const auto better = [&](size_t a, size_t b) { return row[a] != row[b] ? row[a] > row[b] : a < b; };
  std::partial_sort(order.begin(), order.begin() + static_cast<int64_t>(count), order.end(), better);
  order.resize(count);
  return order;
}

std::span<const float> row_of(const std::vector<float>& values, size_t row, size_t width) {
  return std::span(values).subspan(row * width, width);
}

// Whether tokens inside a word are marked, "##ing" (WordPiece). Other tokenizers mark the first token of a word by the letter that
// replaces the space before it.
bool has_word_pieces(const Tokenizer& tokenizer) {
  for (char letter = 'a'; letter <= 'z'; ++letter)
    if (tokenizer.id(std::string("##") + letter)) return true;
  return !tokenizer.id("\u0120") && !tokenizer.id("\u2581");
}

Tensor logits_of(const TextModel& model, const TextBatch& batch, const char* pretraining_name) {
  const auto found = batch.out.find(batch.out.contains("logits") ? "logits" : pretraining_name);
  check(found != batch.out.end(), model.model.architecture(), ": has no output logits, expected a model with such a head");
  return found->second;
}

// The logits of a sentence's own tokens. logits: (B, N, C) -> (n, C)
Tensor tokens_of(const Tensor& logits, size_t place, const Encoding& encoding) {
  const auto b = static_cast<int64_t>(place);
  return reshape(slice(slice(logits, 0, b, b + 1), 1, 0, encoding.size()), {encoding.size(), logits.size(2)});
}

// score: of a token, as the word of a mask
Label mask_word(const TextModel& model, int64_t id, float score) {
  const auto narrow = static_cast<int32_t>(id);
  return {model.tokenizer.has(id) ? model.tokenizer.decode(std::span(&narrow, 1), false) : "", id, score};
}

}  // namespace

Labels::Labels(const Model& model, const std::string& source) {
  const Config config(model.config(), source);
  const ModelTask task = model.traits().task;
  if (task == ModelTask::next_sentence || task == ModelTask::pretraining) {
    names_ = {"is_next", "not_next"};
    kind_ = Kind::one;
    return;
  }
  names_ = label_names(config);
  kind_ = task == ModelTask::token_classification ? Kind::one : kind_in(config, names_.size());
}

std::vector<std::vector<Label>> Labels::operator()(const Tensor& logits, int64_t top) const {
  check(logits.rank() == 2 && logits.size(1) == std::ssize(names_), "labels: logits of shape ", logits.shape(), ", expected (B, ",
        names_.size(), ")");
  const Tensor scores = kind_ == Kind::one ? softmax(logits) : kind_ == Kind::each ? sigmoid(logits) : logits;
  const std::vector<float> values = scores.to_vector<float>();
  std::vector<std::vector<Label>> out(static_cast<size_t>(logits.size(0)));
  for (size_t i = 0; i < out.size(); ++i) {
    const std::span<const float> row = row_of(values, i, names_.size());
    std::vector<size_t> chosen = best_of(row, kind_ == Kind::value ? 0 : top);
    if (kind_ == Kind::value) std::sort(chosen.begin(), chosen.end());
    for (const size_t id : chosen) out[i].push_back({names_[id], static_cast<int64_t>(id), row[id]});
  }
  return out;
}

std::vector<std::vector<Label>> classify(const TextModel& model, std::span<const Encoding> encodings, int64_t top, const Done& done) {
  const Labels labels(model.model, (model.folder / "config.json").string());
  std::vector<std::vector<Label>> out(encodings.size());
  const auto reduce = [&](const TextBatch& batch) -> TensorMap { return {{"logits", logits_of(model, batch, "seq_relationship_logits")}}; };
  each_batch(model, encodings, reduce, [&](const TextBatch& batch) {
    std::vector<std::vector<Label>> answers = labels(batch.out.at("logits"), top);
    for (size_t i = 0; i < answers.size(); ++i) out[batch.places[i]] = std::move(answers[i]);
    if (done) done(std::ssize(answers));
  });
  return out;
}

std::vector<std::vector<Label>> classify(const TextModel& model, std::span<const Sentence> sentences, int64_t top) {
  return classify(model, encode_sentences(model, sentences).encodings, top);
}

std::vector<LabelledWord> words_of(const TextModel& model, const Encoding& encoding, const Tensor& logits) {
  const Labels labels(model.model, (model.folder / "config.json").string());
  const bool pieces = has_word_pieces(model.tokenizer);
  std::vector<std::vector<Label>> answers = labels(logits, 1);
  std::vector<LabelledWord> words;
  for (size_t i = 0; i < encoding.ids.size(); ++i) {
    if (encoding.special_mask[i]) continue;
    const std::string& token = model.tokenizer.token(encoding.ids[i]);
    const bool adjacent = !words.empty() && words.back().at.end == encoding.offsets[i].begin;
    const bool continues = pieces ? token.starts_with("##") : !token.starts_with("\u0120") && !token.starts_with("\u2581");
    if (adjacent && continues)
      words.back().at.end = encoding.offsets[i].end;
    else
      words.push_back({encoding.offsets[i], std::move(answers[i].front())});
  }
  return words;
}

std::vector<std::vector<LabelledWord>> label_words(const TextModel& model, std::span<const Encoding> encodings, const Done& done) {
  std::vector<std::vector<LabelledWord>> out(encodings.size());
  const auto reduce = [&](const TextBatch& batch) -> TensorMap { return {{"logits", logits_of(model, batch, "logits")}}; };
  each_batch(model, encodings, reduce, [&](const TextBatch& batch) {
    const Tensor& logits = batch.out.at("logits");
    for (size_t b = 0; b < batch.places.size(); ++b) {
      const Encoding& encoding = encodings[batch.places[b]];
      out[batch.places[b]] = words_of(model, encoding, tokens_of(logits, b, encoding));
    }
    if (done) done(std::ssize(batch.places));
  });
  return out;
}

std::vector<FilledMask> masks_of(const TextModel& model, const Encoding& encoding, const Tensor& logits, int64_t top) {
  const std::optional<int32_t> mask = model.tokenizer.mask_id();
  std::vector<int64_t> rows;
  for (size_t i = 0; i < encoding.ids.size(); ++i)
    if (encoding.ids[i] == mask) rows.push_back(static_cast<int64_t>(i));
  const Tensor masked = index_select(logits, 0, Tensor::from(rows, {std::ssize(rows)}, logits.device()));
  const std::vector<float> values = softmax(masked).to_vector<float>();
  std::vector<FilledMask> out;
  for (size_t r = 0; r < rows.size(); ++r) {
    const std::span<const float> row = row_of(values, r, static_cast<size_t>(logits.size(1)));
    FilledMask filled{.at = encoding.offsets[static_cast<size_t>(rows[r])], .words = {}};
    for (const size_t id : best_of(row, top)) filled.words.push_back(mask_word(model, static_cast<int64_t>(id), row[id]));
    out.push_back(std::move(filled));
  }
  return out;
}

std::vector<std::vector<FilledMask>> fill_masks(const TextModel& model, std::span<const Encoding> encodings, int64_t top,
                                                const Done& done) {
  const std::optional<int32_t> mask = model.tokenizer.mask_id();
  check<FileError>(mask.has_value(), model.folder.string(), ": the tokenizer has no token [MASK] or <mask>, expected one");
  for (size_t i = 0; i < encodings.size(); ++i) {
    const std::vector<int32_t>& ids = encodings[i].ids;
    check(std::find(ids.begin(), ids.end(), *mask) != ids.end(), "fill_masks: sentence ", i + 1, " has no ", model.tokenizer.token(*mask),
          " among its ", ids.size(), " tokens, expected at least one");
  }
  std::vector<std::vector<FilledMask>> out(encodings.size());
  // Ids and scores of the best words of each mask: (masks, words, 2). Logits are one per word of the vocabulary
  const auto reduce = [&](const TextBatch& batch) -> TensorMap {
    const Tensor logits = logits_of(model, batch, "prediction_logits");
    std::vector<float> numbers;
    int64_t masks = 0;
    for (size_t b = 0; b < batch.places.size(); ++b) {
      const Encoding& encoding = encodings[batch.places[b]];
      for (const FilledMask& each : masks_of(model, encoding, tokens_of(logits, b, encoding), top)) {
        ++masks;
        for (const Label& word : each.words) numbers.insert(numbers.end(), {static_cast<float>(word.id), word.score});
      }
    }
    return {{"words", Tensor::from(numbers, {masks, std::ssize(numbers) / masks / 2, 2}, kCpu)}};
  };
  each_batch(model, encodings, reduce, [&](const TextBatch& batch) {
    const std::vector<float> numbers = batch.out.at("words").to_vector<float>();
    const int64_t words = batch.out.at("words").size(1);
    auto next = numbers.begin();
    for (const size_t place : batch.places) {
      const Encoding& encoding = encodings[place];
      for (size_t i = 0; i < encoding.ids.size(); ++i) {
        if (encoding.ids[i] != mask) continue;
        FilledMask& filled = out[place].emplace_back(FilledMask{.at = encoding.offsets[i], .words = {}});
        for (int64_t w = 0; w < words; ++w, next += 2) filled.words.push_back(mask_word(model, static_cast<int64_t>(next[0]), next[1]));
      }
    }
    if (done) done(std::ssize(batch.places));
  });
  return out;
}

}  // namespace heed
