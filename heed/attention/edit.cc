#include "heed/attention/edit.h"

#include "heed/ops/ops.h"

namespace heed {

AttentionEdit::AttentionEdit(Changes changes) : changes_(std::move(changes)), outer_(newest_) { newest_ = this; }
AttentionEdit::~AttentionEdit() { newest_ = outer_; }

Tensor AttentionEdit::call(const Tensor& q, const Tensor& k, const Tensor& v, AttentionOptions options) {
  const int64_t call = changes_.period > 0 ? calls_++ % changes_.period : calls_++, H = q.size(1), M = k.size(2);
  if (changes_.beta != 1) {
    if (options.beta.tensor.defined())
      options.beta.tensor = scale(options.beta.tensor, changes_.beta);
    else
      options.beta = options.beta.number_for(q.size(3)) * changes_.beta;
  }
  if (!changes_.hidden.empty() && (changes_.hidden_calls.empty() || changes_.hidden_calls.contains(call))) {
    std::vector<uint8_t> keep(static_cast<size_t>(M), 1);
    for (const int64_t key : changes_.hidden)
      if (key >= 0 && key < M) keep[static_cast<size_t>(key)] = 0;
    options.terms.emplace_back(Mask{converted(Tensor::from(keep, {1, 1, 1, M}, q.device()), DType::boolean)});
  }
  Tensor out;
  {
    struct Pause {  // the call itself is not changed again
      AttentionEdit* const edit = std::exchange(newest_, nullptr);
      ~Pause() { newest_ = edit; }
    } const pause;
    out = attention(q, k, v, options);
  }
  if (const auto gate = changes_.gates.find(call); gate != changes_.gates.end()) {
    check(gate->second.shape() == Shape{H}, "attention: gates of shape ", gate->second.shape(), " for ", H, " heads");
    out = out * reshape(gate->second, {1, H, 1, 1});
  }
  std::vector<float> factors(static_cast<size_t>(H), 1.0f);
  bool any = false;
  for (int64_t h = 0; h < H; ++h)
    if (changes_.off.contains({call, h})) factors[static_cast<size_t>(h)] = 0, any = true;
  return any ? out * Tensor::from(factors, {1, H, 1, 1}, q.device()) : out;
}

}  // namespace heed
