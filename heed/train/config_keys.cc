#include "heed/train/config_keys.h"

namespace heed {

std::vector<std::string> ConfigKeys::keys() const {
  Names out{"heed", "initializer_range", "id2label", "label2id", "num_labels", "problem_type", "tie_word_embeddings"};
  for (const Names* names : {&layers, &heads, &width, &feed_forward, &activation, &dropout, &more})
    out.insert(out.end(), names->begin(), names->end());
  return out;
}

std::vector<std::string> ConfigKeys::supported(const Choices& list) const {
  Names out;
  for (const Choice& each : list.all) {
    const bool image = reads == Reads::image, own = each.name != "learned" || default_position == "learned";
    if (own && (image || (!each.needs_grid && each.takes_masks)) && (reads != Reads::written_text || !each.needs_all_tokens))
      out.push_back(each.name);
  }
  return out;
}

const std::vector<ConfigKeys>& all_config_keys() {
  using Reads = ConfigKeys::Reads;
  static const std::vector<ConfigKeys> all{
      {"ViT",
       {"num_hidden_layers"},
       {"num_attention_heads"},
       {"hidden_size"},
       {"intermediate_size"},
       {"hidden_act"},
       {"hidden_dropout_prob"},
       "learned",
       Reads::image,
       {"head_dim", "attention_probs_dropout_prob", "layer_norm_eps", "image_size", "patch_size", "num_channels", "qkv_bias"}},
      {.prefix = "ResNet",
       .activation = {"hidden_act"},
       .more = {"image_size", "num_channels", "embedding_size", "hidden_sizes", "depths", "layer_type", "downsample_in_first_stage",
                "downsample_in_bottleneck"}},
      {"Bert",
       {"num_hidden_layers"},
       {"num_attention_heads"},
       {"hidden_size"},
       {"intermediate_size"},
       {"hidden_act"},
       {"hidden_dropout_prob", "attention_probs_dropout_prob"},
       "learned",
       Reads::text,
       {"vocab_size", "max_position_embeddings", "type_vocab_size", "layer_norm_eps", "is_decoder", "classifier_dropout", "pad_token_id"},
       "after"},
      {"GPT2",
       {"n_layer"},
       {"n_head"},
       {"n_embd"},
       {"n_inner"},
       {"activation_function"},
       {"resid_pdrop", "embd_pdrop", "attn_pdrop"},
       "learned",
       Reads::written_text,
       {"vocab_size", "n_positions", "layer_norm_epsilon", "scale_attn_weights", "scale_attn_by_inverse_layer_idx", "bos_token_id",
        "eos_token_id", "pad_token_id"}},
      {"Llama",
       {"num_hidden_layers"},
       {"num_attention_heads", "num_key_value_heads"},
       {"hidden_size"},
       {"intermediate_size"},
       {"hidden_act"},
       {"attention_dropout"},
       "rotary",
       Reads::written_text,
       {"vocab_size", "head_dim", "max_position_embeddings", "rms_norm_eps", "attention_bias", "mlp_bias", "rope_theta", "rope_scaling",
        "bos_token_id", "eos_token_id", "pad_token_id"}},
      {"Marian",
       {"encoder_layers", "decoder_layers"},
       {"encoder_attention_heads", "decoder_attention_heads"},
       {"d_model"},
       {"encoder_ffn_dim", "decoder_ffn_dim"},
       {"activation_function"},
       {"dropout"},
       "sinusoidal",
       Reads::written_text,
       {"vocab_size", "decoder_vocab_size", "share_encoder_decoder_embeddings", "max_position_embeddings", "scale_embedding", "init_std",
        "attention_dropout", "activation_dropout", "pad_token_id", "decoder_start_token_id", "bos_token_id", "eos_token_id"},
       "after"}};
  return all;
}

const ConfigKeys& config_keys_of(const Json& config) {
  const std::string name = config.at("architectures").at(0).get<std::string>();
  for (const ConfigKeys& each : all_config_keys())
    if (name.starts_with(each.prefix)) return each;
  fail("model: unsupported architecture ", name);
}

}  // namespace heed
