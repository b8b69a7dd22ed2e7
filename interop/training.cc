// heed_interop_training KIND FOLDER, for interop/training.py: makes a small model (vit, bert, marian, marian_pad) and 100 batches, writes
// both into the folder, trains as heed train does, and writes the losses and the hyperparameters.
#include <iostream>

#include "heed/io/safetensors.h"
#include "heed/train/optimizer_step.h"

namespace {

using namespace heed;

constexpr int64_t kSteps = 100, kVocabulary = 500, kFirstToken = 5, kMask = 4, kStart = 2, kEnd = 1, kPad = 0, kClasses = 10;

Json config_of(const std::string& kind) {
  if (kind == "vit")
    return {{"architectures", {"ViTForImageClassification"}},
            {"model_type", "vit"},
            {"hidden_size", 64},
            {"num_hidden_layers", 2},
            {"num_attention_heads", 4},
            {"intermediate_size", 128},
            {"image_size", 32},
            {"patch_size", 8},
            {"num_labels", kClasses},
            {"hidden_dropout_prob", 0.0},
            {"attention_probs_dropout_prob", 0.0}};
  if (kind == "bert")
    return {{"architectures", {"BertForPreTraining"}},
            {"model_type", "bert"},
            {"vocab_size", kVocabulary},
            {"hidden_size", 64},
            {"num_hidden_layers", 2},
            {"num_attention_heads", 4},
            {"intermediate_size", 128},
            {"max_position_embeddings", 32},
            {"hidden_dropout_prob", 0.0},
            {"attention_probs_dropout_prob", 0.0}};
  check<UsageError>(kind == "marian" || kind == "marian_pad", "training: found ", kind, ", expected vit, bert, marian or marian_pad");
  return {{"architectures", {"MarianMTModel"}},
          {"model_type", "marian"},
          {"is_encoder_decoder", true},
          {"vocab_size", kVocabulary},
          {"decoder_vocab_size", kVocabulary},
          {"d_model", 64},
          {"encoder_layers", 2},
          {"decoder_layers", 2},
          {"encoder_attention_heads", 4},
          {"decoder_attention_heads", 4},
          {"encoder_ffn_dim", 128},
          {"decoder_ffn_dim", 128},
          {"max_position_embeddings", 32},
          {"activation_function", "swish"},
          {"scale_embedding", true},
          {"dropout", 0.0},
          {"attention_dropout", 0.0},
          {"activation_dropout", 0.0},
          {"pad_token_id", kPad},
          {"eos_token_id", kEnd},
          {"decoder_start_token_id", kind == "marian" ? kStart : kPad}};
}

int64_t draw(Rng& rng, int64_t bound) { return static_cast<int64_t>(rng.below(static_cast<uint64_t>(bound))); }
int64_t token_id(int64_t number) { return kFirstToken + number % (kVocabulary - kFirstToken); }

// Noise with a brighter row of pixels per class.
TensorMap images(Rng& rng) {
  constexpr int64_t B = 16, side = 32;
  std::vector<float> pixels = random_normal({B, 3, side, side}, 0, 1, rng, kCpu).to_vector<float>();
  std::vector<int64_t> labels;
  for (int64_t b = 0; b < B; ++b) {
    labels.push_back(draw(rng, kClasses));
    for (int64_t x = 0; x < side; ++x) pixels[static_cast<size_t>((b * 3 * side + 3 * labels.back()) * side + x)] += 3;
  }
  return {{"pixel_values", Tensor::from(pixels, {B, 3, side, side}, kCpu)}, {"labels", Tensor::from(labels, {B}, kCpu)}};
}

// Sentences count upwards; the second one continues the first, or starts elsewhere. About every sixth token is a label, masked or
// unchanged.
TensorMap masked_pairs(Rng& rng) {
  constexpr int64_t B = 8, N = 32;
  std::vector<int64_t> ids, types, mask, labels, next;
  for (int64_t b = 0; b < B; ++b) {
    const int64_t length = N - draw(rng, 9), starts = 20, first = draw(rng, starts);
    next.push_back(draw(rng, 2));
    const int64_t second = next.back() == 0 ? first : draw(rng, starts);
    for (int64_t i = 0; i < N; ++i) {
      const bool is_token = i < length, chosen = is_token && draw(rng, 6) == 0;
      const int64_t own = token_id((i < N / 2 ? first : second) + i);
      ids.push_back(!is_token ? kPad : chosen && draw(rng, 5) > 0 ? kMask : own);
      labels.push_back(chosen ? own : -100);
      types.push_back(is_token && i >= N / 2);
      mask.push_back(is_token);
    }
  }
  return {{"input_ids", Tensor::from(ids, {B, N}, kCpu)},
          {"token_type_ids", Tensor::from(types, {B, N}, kCpu)},
          {"attention_mask", Tensor::from(mask, {B, N}, kCpu)},
          {"labels", Tensor::from(labels, {B, N}, kCpu)},
          {"next_sentence_label", Tensor::from(next, {B}, kCpu)}};
}

// Every token is translated to the next one.
TensorMap translations(Rng& rng) {
  constexpr int64_t B = 8, N = 16;
  std::vector<int64_t> ids, mask, labels;
  for (int64_t b = 0; b < B; ++b) {
    const int64_t length = N - draw(rng, 6), range = 40;
    for (int64_t i = 0; i < N; ++i) {
      const int64_t own = draw(rng, range);
      ids.push_back(i < length ? token_id(own) : kPad);
      mask.push_back(i < length);
      labels.push_back(i < length ? token_id(own + 1) : i == length ? kEnd : -100);
    }
  }
  return {{"input_ids", Tensor::from(ids, {B, N}, kCpu)},
          {"attention_mask", Tensor::from(mask, {B, N}, kCpu)},
          {"labels", Tensor::from(labels, {B, N}, kCpu)}};
}

void train(const std::string& kind, const Path& folder) {
  const Model model = make_model(config_of(kind), {.seed = 3});
  save(model, folder / "model");
  Rng rng(11), chance(1);
  const TrainOptions options{.steps = kSteps, .rate = 2e-3f, .warmup = 10, .clip = 1, .label_smoothing = kind == "bert" ? 0.0f : 0.1f};
  OptimizerStep optimizer_step(model, options);
  NamedTensors batches;
  Json losses = Json::array(), decays = Json::object();
  for (int64_t step = 0; step < kSteps; ++step) {
    const TensorMap batch = kind == "vit" ? images(rng) : kind == "bert" ? masked_pairs(rng) : translations(rng);
    for (const auto& [name, tensor] : batch) batches.emplace_back(std::to_string(step) + '.' + name, tensor);
    optimizer_step.zero_grad();
    const ForwardOptions forward_options{
        .mode = training_with(chance), .loss_only = kind != "vit", .label_smoothing = options.label_smoothing};
    const Tensor loss = model(batch, forward_options).at("loss");
    losses.push_back(loss.item());
    backward(loss);
    optimizer_step.step(static_cast<float>(rate_at(options, step, kSteps)));
  }
  for (const Parameter& parameter : model.params().all())
    if (parameter.options.learned) decays[parameter.name] = parameter.options.decays;
  write_safetensors(folder / "batches.safetensors", batches);
  write_json(folder / "learned.json", {{"losses", losses},
                                       {"decays", decays},
                                       {"rate", options.rate},
                                       {"warmup", options.warmup},
                                       {"betas", {options.beta1, options.beta2}},
                                       {"weight_decay", options.weight_decay},
                                       {"clip", options.clip},
                                       {"label_smoothing", options.label_smoothing}});
}

}  // namespace

int main(int count, char** arguments) {
  try {
    check<UsageError>(count == 3, "training: found ", count - 1, " arguments, expected a kind of model and a folder");
    train(arguments[1], arguments[2]);
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
}
