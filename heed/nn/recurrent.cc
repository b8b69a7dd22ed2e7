#include "heed/nn/recurrent.h"

#include <cmath>

#include "heed/ops/ops.h"

namespace heed {

RecurrentState Recurrent::start(int64_t B) const {
  const Tensor zero = Tensor::zeros({B, width()}, DType::f32, hidden.device());
  return {zero, kind == RecurrentKind::lstm ? zero : Tensor()};
}

RecurrentState Recurrent::step(const Tensor& projected, const RecurrentState& before) const {
  const int64_t D = width();
  const Tensor from_state = hidden(before.h);
  if (kind == RecurrentKind::lstm) {
    const Tensors gates = split(projected + from_state, std::vector<int64_t>{D, D, D, D}, 1);
    const Tensor c = sigmoid(gates[1]) * before.c + sigmoid(gates[0]) * tanh(gates[2]);
    return {sigmoid(gates[3]) * tanh(c), c};
  }
  const std::vector<int64_t> sizes{D, D, D};
  const Tensors x = split(projected, sizes, 1), h = split(from_state, sizes, 1);
  const Tensor z = sigmoid(x[1] + h[1]), n = tanh(x[2] + sigmoid(x[0] + h[0]) * h[2]);
  return {n + z * (before.h - n)};
}

std::pair<Tensor, RecurrentState> Recurrent::operator()(const Tensor& x, const Tensor& keep, const RecurrentState& first,
                                                        bool reverse) const {
  check(x.rank() == 3, "recurrent: x has shape ", x.shape(), ", expected (B, N, D)");
  const int64_t B = x.size(0), N = x.size(1);
  const Tensor projected = input(x);  // of all tokens in one product
  const int64_t G = projected.size(2);
  RecurrentState state = first;
  Tensors outputs(static_cast<size_t>(N));
  for (int64_t i = 0; i < N; ++i) {
    const int64_t t = reverse ? N - 1 - i : i;
    RecurrentState next = step(reshape(slice(projected, 1, t, t + 1), {B, G}), state);
    if (keep.defined()) {
      const Tensor kept = slice(keep, 1, t, t + 1), rest = scale(kept, -1, 1);  // (B, 1); exact for 0 and 1
      next.h = kept * next.h + rest * state.h;
      if (next.c.defined()) next.c = kept * next.c + rest * state.c;
    }
    state = next;
    outputs[static_cast<size_t>(t)] = state.h;
  }
  return {N == 0 ? Tensor::zeros({B, 0, width()}, DType::f32, x.device()) : stack(outputs, 1), state};
}

Recurrent make_recurrent(const Scope& scope, RecurrentKind kind, int64_t I, int64_t D) {
  check(I >= 1 && D >= 1, "recurrent: widths ", I, " and ", D, ", expected 1 or more");
  const int64_t gates = kind == RecurrentKind::lstm ? 4 : 3;
  const Initializer weight = initializer::uniform(1 / std::sqrt(static_cast<float>(D)));
  return {.kind = kind,
          .input = Linear(scope / "input", I, gates * D, {.weight = weight}),
          .hidden = Linear(scope / "hidden", D, gates * D, {.weight = weight})};
}

std::pair<Tensor, Tensor> AdditiveAttention::operator()(const Tensor& query_states, const Tensor& keys, const Tensor& memory,
                                                        const Tensor& visible) const {
  const int64_t B = query_states.size(0), N = query_states.size(1), M = keys.size(1), A = keys.size(2);
  const Tensor sums = tanh(reshape(query(query_states), {B, N, 1, A}) + reshape(keys, {B, 1, M, A}));
  Tensor scores = reshape(score(sums), {B, N, M});
  if (visible.defined()) {
    constexpr float hidden_score = -1e30f;
    scores = where(reshape(visible, {B, 1, M}), scores, Tensor::full({1, 1, 1}, hidden_score, scores.device()));
  }
  const Tensor map = softmax(scores);
  return {matmul(map, memory), reshape(map, {B, 1, N, M})};
}

}  // namespace heed
