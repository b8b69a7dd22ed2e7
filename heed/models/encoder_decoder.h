// Encoder-decoder models (Vaswani et al. 2017): the parts shared by Marian and T5.
#pragma once

#include "heed/models/parts.h"
#include "heed/nn/decoder.h"

namespace heed {

// Decoder inputs from labels: shifted right, after the start token; labels of -100 become padding. labels: (B, N)
Tensor shifted_right(const Tensor& labels, int64_t start, int64_t pad);

// Embeddings and final norm of the encoder or the decoder.
struct TextSide {
  Embedding word_embeddings = {};
  AddedPositions positions = {};
  Norm last = {};                        // final norm of pre-norm layers
  float scale = 1;                       // of word embeddings
  float dropout = 0, final_dropout = 0;  // of embeddings; after the final norm

  Tensor operator()(const Tensor& tokens, Mode mode, int64_t first = 0) const {  // (B, N) -> (B, N, D)
    return heed::dropout(positions(word_embeddings(tokens) * scale, {}, first), dropout, mode);
  }
  Tensor finish(const Tensor& x, Mode mode) const { return heed::dropout(last(x), final_dropout, mode); }  // (..., D) -> (..., D)
};

struct EncoderDecoder {
  TextSide source = {}, target = {};
  std::vector<EncoderLayer> encoder = {};
  std::vector<DecoderLayer> decoder = {};
  Linear head = {};            // (V, D)
  float head_scale = 1;        // of the states that the head reads
  int64_t pad = 0, start = 0;  // tokens

  // -> (B, M, D). prefix: of the names of states and maps in `out`
  Tensor encode(const TensorMap& inputs, const ForwardOptions& options, TensorMap& out, const std::string& prefix = "encoder_") const;
  TensorMap run(const TensorMap& inputs, const ForwardOptions& options) const;
  DecodeState start_decoding(const TensorMap& inputs) const;
  Tensor step(DecodeState& state, const Tensor& tokens) const;  // (B, n) -> (B, V)
};

// Inputs: input_ids, attention_mask, decoder_input_ids, decoder_attention_mask, labels.
Network encoder_decoder_network(EncoderDecoder model);

}  // namespace heed
