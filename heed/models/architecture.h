// The list of architectures, and their traits: the only interface between an architecture and the rest of heed. A new architecture is a
// file and a line in architectures.cc.
#pragma once

#include <memory>

#include "heed/core/api.h"
#include "heed/models/choices.h"
#include "heed/models/config.h"
#include "heed/models/config_keys.h"
#include "heed/models/model.h"
#include "heed/nn/patches.h"

namespace HEED_API heed {

// What the outputs of a model are for.
enum class ModelTask {
  features,                 // states of tokens or of an image, without a head: "last_hidden_state"
  image_classification,     // "logits" (B, labels)
  sequence_classification,  // "logits" (B, labels)
  token_classification,     // "logits" (B, N, labels)
  question_answering,       // "start_logits" and "end_logits" (B, N)
  masked_lm,                // "logits" (B, N, V)
  pretraining,              // masked tokens and next sentences: "prediction_logits" (B, N, V), "seq_relationship_logits" (B, 2)
  next_sentence,            // "logits" (B, 2)
  causal_lm,                // the next token: "logits" (B, N, V), and a decoder that generates text
  seq2seq_lm,               // the same with an encoder, for example translation
  image_text_matching,      // images and texts compared: "logits_per_image" (images, texts)
  image_captioning,         // "logits" (B, N, V) of a text about an image, and a decoder that generates it
};

// The traits that all architectures of a model type share.
struct Family {
  std::string model_type = {};          // in config.json
  std::string base = {};                // name prefix of the inner model's parameters, absent in its own checkpoints; empty: none
  bool pixels = false, tokens = false;  // inputs: pixel_values, input_ids
  bool segments = false;                // of a pair of sentences, the second has token_type_ids of 1
  bool causal = false;                  // a token sees only earlier ones, of the decoder if there is an encoder
  bool encoder_decoder = false;         // reads one text and writes another
  std::function<std::array<int64_t, 3>(const Config& config)> image = {};  // channels, height, width; empty: num_channels and image_size
  std::function<int64_t(const Config& config)> positions = {};  // tokens per sequence, at most; of images: per image. Empty: any number
  std::vector<std::string> word_tables = {};                    // names of the word embeddings below the base; the first that exists
  std::string position_table = {};                              // name of learned positions below the base
  std::optional<GridFilter> other_sizes = {};                   // interpolates positions for images of another size; unset: refuses them
  std::string default_position = {};                            // the position encoding it has by default: a choice of "positions"
  std::string norm = "before";                                  // placement of norms by default: a choice of "norm"
  std::string extra_token = "distillation";                     // label in attention maps of tokens between class token and patches
  std::string image_processor = "ViT";                          // the one assumed if preprocessor_config.json names none
  std::string image_keys = {};  // the object of config.json with image_size, patch_size and num_channels; empty: config.json itself
  int64_t usual_patch = 16;     // patch_size if config.json has none
  ConfigKeys keys = {};
  std::vector<std::string> ignored = {};     // name fragments of tensors in old checkpoints that are not used
  std::vector<std::string> task_parts = {};  // name fragments of parameters below the base that belong to a task, for example a pooler
};

// A network of transformers with its task: how it is built, and the traits of its family.
struct Architecture {
  std::string name = {};  // as in config.json's "architectures"
  ModelTask task = ModelTask::features;
  std::function<Network(const Scope& scope, const Config& config)> make = {};
  std::shared_ptr<const Family> family = {};

  bool bare() const { return task == ModelTask::features; }  // parameter names have no prefix
};
using Architectures = std::vector<Architecture>;              // of a family, or all
Architectures of_family(Family family, Architectures heads);  // sets the family of each

// All architectures, and the one of that name; if there is none, an error that names `source`.
const Architectures& architectures();
const Architecture& architecture_named(const std::string& source, const std::string& name);
// The one that config.json names in "architectures", otherwise the first of its "model_type". An error if it has neither key.
const Architecture& architecture_of(const Config& config);
// The architecture of the same family for another task; null: there is none.
const Architecture* for_task(const Architecture& architecture, ModelTask task);

// What a model reads.
enum class InputKind { image, text, translation };
// From the model's traits. A model that takes images and texts: image.
InputKind input_kind(const Model& model);

// More than any sequence has.
inline constexpr int64_t kAnyTokens = int64_t{1} << 40;
// The longest sequence that the model can read; kAnyTokens if its positions are not limited.
int64_t max_tokens(const Architecture& architecture, const Config& config);
int64_t max_tokens(const Model& model);
// The part of config.json that describes images: image_size, patch_size, num_channels.
Config image_config(const Architecture& architecture, const Config& config);
// Height and width of the model's patches.
std::array<int64_t, 2> patch_sides(const Model& model);
// Channels, height and width of the model's images.
std::array<int64_t, 3> image_shape(const Model& model);
// The word embeddings (V, D) of a text model; undefined if it has none.
Tensor word_table(const Model& model);
// The learned positions, (P, D) or (1, P, D); undefined if it has none.
Tensor position_table(const Model& model);
// Whether a parameter belongs to a head, not to the inner model.
bool is_of_head(const Architecture& architecture, std::string_view parameter);
// The choices for a key of "heed" that the family supports.
std::vector<std::string> supported_choices(const Family& family, const Choices& list);

// The families, one file each.
Architectures bert_architectures();
Architectures clip_architectures();
Architectures dinov2_architectures();
Architectures distilbert_architectures();
Architectures gaussian_attention_architectures();
Architectures gpt2_architectures();
Architectures llama_architectures();
Architectures marian_architectures();
Architectures modernbert_architectures();
Architectures recurrent_architectures();
Architectures resnet_architectures();
Architectures t5_architectures();
Architectures vision_encoder_decoder_architectures();
Architectures vit_architectures();

}  // namespace heed
