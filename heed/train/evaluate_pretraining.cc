// Evaluation of masked words and next sentences, masked and paired by a seed.
#include "heed/data/synthetic_documents.h"
#include "heed/train/batch_order.h"
#include "heed/train/evaluate.h"
#include "heed/train/labels.h"
#include "heed/train/pretrain_data.h"
#include "heed/train/translate_data.h"

namespace heed {
namespace {

constexpr int64_t kTokensPerBatch = 2048;  // tokens per batch; logits are (tokens, vocabulary)

Tensor logits_in(const TensorMap& out, const std::string& name) { return out.at(out.contains(name) ? name : "logits"); }

// The rows of logits (B, N, V) whose label (B, N) is not -100, and those labels.
std::pair<Tensor, Tensor> masked_rows(const Tensor& logits, const std::vector<int64_t>& labels) {
  std::vector<int64_t> places, words;
  for (size_t i = 0; i < labels.size(); ++i)
    if (labels[i] != -100) {
      places.push_back(static_cast<int64_t>(i));
      words.push_back(labels[i]);
    }
  const Tensor rows = reshape(logits, {logits.size(0) * logits.size(1), logits.size(2)});
  return {index_select(rows, 0, Tensor::from(places, {std::ssize(places)})), Tensor::from(words, {std::ssize(words)})};
}

}  // namespace

std::vector<std::vector<std::string>> read_evaluation_documents(const std::string& where) {
  constexpr int64_t count = 1000;
  return where == "opinions" ? synthetic_documents(count, 1, DataPart::test) : read_documents(where);
}

Evaluation evaluate_pretraining(const TextModel& model, const std::vector<std::vector<std::string>>& documents, const std::string& source,
                                int64_t length, uint64_t seed, const Done& done) {
  const NoGrad no_grad;
  const std::string& name = model.model.architecture();
  const bool words = !name.ends_with("ForNextSentencePrediction"), pairs = !name.ends_with("ForMaskedLM");
  check<UsageError>(length >= 8 && length <= model.max_tokens, "evaluate: samples of ", length, " tokens, expected 8 to ", model.max_tokens,
                    ", the model's limit");
  const PretrainData data(model.tokenizer, {.masked = words, .next = pairs, .max_length = length}, documents, {}, source);
  const std::vector<std::string>& inputs = model.model.inputs();
  const bool types = std::find(inputs.begin(), inputs.end(), "token_type_ids") != inputs.end();
  RunningMeans means;
  const auto add = [&](const std::string& what, const Tensor& logits, const Tensor& labels) {  // (K, C), (K)
    const auto count = static_cast<double>(labels.count());
    means[what + "_loss"].add({static_cast<double>(cross_entropy(logits, labels).item()) * count, count});
    means[what + "_accuracy"].add(accuracy_of(logits, labels));
  };
  for (const std::vector<int64_t>& which : batches_in_order(data.count(), std::max<int64_t>(kTokensPerBatch / length, 1))) {
    std::vector<std::vector<int64_t>> ids, kinds, masks, labels;
    std::vector<int64_t> follows, rows;
    for (const int64_t i : which) {
      PretrainSample sample = data.sample(sample_key(seed, 0, i), i);
      masks.emplace_back(sample.ids.size(), 1);
      ids.push_back(std::move(sample.ids));
      kinds.push_back(std::move(sample.types));
      labels.push_back(std::move(sample.labels));
      follows.push_back(sample.pair_label);
      rows.push_back(std::ssize(rows));
    }
    TensorMap batch{{"input_ids", padded_rows(ids, rows, model.tokenizer.padding_id().value_or(0))},
                    {"attention_mask", padded_rows(masks, rows, 0)}};
    if (types) batch["token_type_ids"] = padded_rows(kinds, rows, 0);
    const TensorMap out = model.model(batch);
    if (words) {
      const auto [logits, targets] = masked_rows(logits_in(out, "prediction_logits"), padded_rows(labels, rows, -100).to_vector<int64_t>());
      if (targets.count() > 0) add("masked", logits, targets);
    }
    if (pairs) add("next", logits_in(out, "seq_relationship_logits"), Tensor::from(follows, {std::ssize(follows)}));
    if (done) done(std::ssize(which));
  }
  Evaluation out{.figures = {{"loss", 0}}, .detail = {{"samples", data.count()}, {"length", length}, {"seed", seed}}};
  for (const auto& [what, mean] : means) {
    out.figures.emplace_back(what, mean.sum / mean.count);
    if (what.ends_with("_loss")) out.figures[0].second += mean.sum / mean.count;
  }
  return out;
}

}  // namespace heed
