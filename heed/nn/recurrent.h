// Recurrent layers: LSTM (Hochreiter and Schmidhuber 1997) and GRU (Cho et al. 2014), and attention over the states of an encoder, additive
// (Bahdanau, Cho and Bengio 2015) or as a dot product (Luong, Pham and Manning 2015).
#pragma once

#include <utility>

#include "heed/attention/attention.h"
#include "heed/core/api.h"
#include "heed/nn/linear.h"

namespace HEED_API heed {

// The cell of a recurrent layer.
enum class RecurrentKind { lstm, gru };

// After a token: the output h, and for an LSTM the memory c. (B, D) each
struct RecurrentState {
  Tensor h, c = {};  // c is undefined for a GRU
};

// One layer. LSTM: i, f, o = sigmoid, g = tanh of W x + U h + b, c' = f c + i g, h' = o tanh(c'). GRU: r, z = sigmoid,
// n = tanh(W x + b + r (U h + b')), h' = (1 - z) n + z h. Gates in these orders (i, f, g, o and r, z, n), as in PyTorch.
struct Recurrent {
  RecurrentKind kind = RecurrentKind::lstm;
  Linear input = {}, hidden = {};  // (4 D, I), (4 D, D); of a GRU (3 D, ...)

  int64_t width() const { return hidden.inputs(); }  // of the state
  RecurrentState start(int64_t B) const;             // zeros
  // projected: input(x), (B, 4 D or 3 D)
  RecurrentState step(const Tensor& projected, const RecurrentState& before) const;
  // All tokens, the last one first with `reverse`. x: (B, N, I); keep: (B, N) f32 of 1 and 0, whose tokens of 0 leave the state as it is,
  // or undefined -> the outputs (B, N, D), and the state after the last token
  std::pair<Tensor, RecurrentState> operator()(const Tensor& x, const Tensor& keep, const RecurrentState& first,
                                               bool reverse = false) const;
};

// Parameters "input" and "hidden" with weight and bias, uniform within 1 / sqrt(D).
Recurrent make_recurrent(const Scope& scope, RecurrentKind kind, int64_t I, int64_t D);

// Scores v . tanh(W q + U m): of a query against the states of an encoder.
struct AdditiveAttention {
  Linear query = {}, key = {}, score = {};  // (A, D), (A, D), (1, A)

  // query_states: (B, N, D), keys: key(memory), (B, M, A), memory: (B, M, D), visible: (B, M) bool or undefined
  // -> context (B, N, D) and the map (B, 1, N, M)
  std::pair<Tensor, Tensor> operator()(const Tensor& query_states, const Tensor& keys, const Tensor& memory, const Tensor& visible) const;
};

}  // namespace heed
