// Loss and accuracy of encoder-decoder models with teacher forcing: each token is predicted from the true tokens before it.
#pragma once

#include "heed/train/batch_order.h"
#include "heed/train/task.h"

namespace heed {

inline constexpr int64_t kNoLabel = -100;  // of padding: left out of the loss

// Loss, perplexity and accuracy of tokens, over batches that all processes share. inputs(samples) -> inputs of the model with labels: (B,
// N)
Evaluation evaluate_next_tokens(const Model& model, const Batches& batches,
                                const std::function<TensorMap(std::span<const int64_t> samples)>& inputs);

}  // namespace heed
