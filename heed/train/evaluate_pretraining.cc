// Evaluation of masked words and next sentences, masked and paired by a seed.
#include <algorithm>
#include <array>

#include "heed/data/synthetic_documents.h"
#include "heed/dist/split_work.h"
#include "heed/models/architecture.h"
#include "heed/train/batch_order.h"
#include "heed/train/evaluate.h"
#include "heed/train/labels.h"
#include "heed/train/pretrain_data.h"

namespace heed {
namespace {

Tensor logits_in(const TensorMap& out, const std::string& name) { return out.at(out.contains(name) ? name : "logits"); }

}  // namespace

void PretrainScores::add(const std::string& name, const Tensor& logits, const Tensor& labels) {
  const auto count = static_cast<double>(labels.count());
  means_[name + "_loss"].add({static_cast<double>(cross_entropy(logits, labels.to(logits.device())).item()) * count, count});
  means_[name + "_accuracy"].add(accuracy_of(logits, labels).value());
}

void PretrainScores::add(const Batch& batch) {
  TensorMap inputs = batch.inputs;
  inputs.erase("labels");
  inputs.erase("next_sentence_label");
  if (!model_.family().segments) inputs.erase("token_type_ids");
  const TensorMap out = model_(inputs);
  if (batch.inputs.contains("labels")) {
    const Tensor words = logits_in(out, "prediction_logits");  // (B, N, V)
    const std::vector<int64_t> labels = batch.inputs.at("labels").to_vector<int64_t>();
    std::vector<int64_t> places, targets;
    for (int64_t i = 0; i < std::ssize(labels); ++i)
      if (labels[static_cast<size_t>(i)] != -100) places.push_back(i), targets.push_back(labels[static_cast<size_t>(i)]);
    const Tensor rows = reshape(words, {words.size(0) * words.size(1), words.size(2)});
    if (!places.empty())
      add("masked", index_select(rows, 0, Tensor::from(places, {std::ssize(places)}, rows.device())),
          Tensor::from(targets, {std::ssize(targets)}, kCpu));
  }
  if (!batch.inputs.contains("next_sentence_label")) return;
  const Tensor logits = logits_in(out, "seq_relationship_logits"), labels = batch.inputs.at("next_sentence_label");
  add(by_task_ ? "pair" : "next", logits, labels);
  if (!by_task_) return;
  const std::vector<int64_t> guesses = argmax(logits).to_vector<int64_t>(), truth = labels.to_vector<int64_t>();
  constexpr std::array names{"", "next_accuracy", "inversion_accuracy", "inference_accuracy"};
  for (size_t b = 0; b < truth.size(); ++b) means_[names[static_cast<size_t>(batch.extra[b])]].add({guesses[b] == truth[b] ? 1.0 : 0.0, 1});
}

void PretrainScores::add_all(int64_t count, const std::function<Batch(int64_t i)>& batch, const Done& done) {
  const auto scored = [&](int64_t i) {
    PretrainScores one(model_, by_task_);
    const Batch made = batch(i);
    one.add(made);
    Json means = Json::object();
    for (const auto& [name, mean] : one.means_) means[name] = {mean.sum, mean.count};
    const std::vector<uint8_t> bytes = Json::to_cbor({{"samples", made.samples}, {"means", means}});
    return std::string(bytes.begin(), bytes.end());
  };
  split_work(world(), count, scored, [&](int64_t, const std::string& bytes) {
    const Json one = Json::from_cbor(bytes);
    for (const auto& [name, mean] : one.at("means").items()) means_[name].add({mean.at(0).get<double>(), mean.at(1).get<double>()});
    if (done) done(one.at("samples").get<int64_t>());
  });
}

Evaluation PretrainScores::evaluation() const {
  Evaluation out{.figures = {{"loss", 0}}};
  for (const auto& [name, mean] : means_) {
    out.figures.emplace_back(name, mean.sum / mean.count);
    if (name.ends_with("_loss")) out.figures[0].second += mean.sum / mean.count;
  }
  return out;
}

std::vector<std::vector<std::string>> read_evaluation_documents(const std::string& where) {
  constexpr int64_t count = 1000;
  return where == "opinions" ? synthetic_documents(count, 1, DataPart::test) : read_documents(where);
}

Evaluation evaluate_pretraining(const TextModel& model, const std::vector<std::vector<std::string>>& documents, const std::string& source,
                                int64_t length, uint64_t seed, const Done& done) {
  const NoGrad no_grad;
  const ModelTask task = model.model.traits().task;
  const bool words = task != ModelTask::next_sentence, pairs = task != ModelTask::masked_lm;
  check<UsageError>(length >= 8 && length <= model.max_tokens, "evaluate: samples of ", length, " tokens, expected 8 to ", model.max_tokens,
                    ", the model's limit");
  const PretrainData data(model.tokenizer, {.masked = words, .next = pairs, .max_length = length}, documents, {}, source);
  PretrainScores scores(model.model, false);
  const Batches batches = batches_in_order(data.count(), data.samples_per_evaluation());
  scores.add_all(
      std::ssize(batches), [&](int64_t i) { return data.batch(seed, 0, batches[static_cast<size_t>(i)]); }, done);
  Evaluation out = scores.evaluation();
  out.detail = {{"samples", data.count()}, {"length", length}, {"seed", seed}};
  return out;
}

}  // namespace heed
