#include "heed/serve/loaded_model.h"

namespace heed::serve {
namespace {

int64_t weight_bytes(const Model& model, Weights weights) { return model.params().count() * (weights == Weights::int8 ? 1 : 4); }

}  // namespace

LoadedModel::LoadedModel(const ModelInfo& info, Weights weights) : info_(info), weights_(weights) {
  const ModelOptions options{.weights = weights};
  if (info.image) {
    vision_.emplace(load(info.folder, options));
    images_.emplace(info.folder);
  } else {
    text_.emplace(load_text_model(info.folder, options));
  }
  if (info.task == ServedTask::classify) labels_.emplace(model(), (info.folder / "config.json").string());
  if (info.task == ServedTask::translate) target_.emplace(Tokenizer::open_target(info.folder));
  if (info.task == ServedTask::translate || info.task == ServedTask::generate) generation_ = generation_options(text_->model);
}

const TextModel& LoadedModel::embedder() {
  if (info_.task == ServedTask::embed && text_) return *text_;
  if (!embedder_) embedder_.emplace(load_embedder(info_.folder, weights_));
  return *embedder_;
}

int64_t LoadedModel::bytes() const { return weight_bytes(model(), weights_) + (embedder_ ? weight_bytes(embedder_->model, weights_) : 0); }

}  // namespace heed::serve
