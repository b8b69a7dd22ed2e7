// The fast path of attention on Hopper GPUs (hopper_attention.cu), which attention.cu asks first.
#pragma once

#include "heed/attention/attention_kernels.h"

namespace heed::cuda {

// True if it took the case. Never asked for hard rows: backward must find the largest score of forward again, bit for bit, so both come
// from the same kernels.
bool hopper_attention_forward(const AttentionForward& args);
bool hopper_attention_backward(const AttentionBackward& args);

}  // namespace heed::cuda
