// The fast path of attention on Hopper GPUs (hopper_attention.cu), which attention.cu tries first.
#pragma once

#include "heed/attention/attention_kernels.h"

namespace heed::cuda {

// True if it supports the case and ran it. Not called for hard attention: backward must find the largest score of forward bit for bit, so
// both use the same kernels.
bool hopper_attention_forward(const AttentionForward& args);
bool hopper_attention_backward(const AttentionBackward& args);

}  // namespace heed::cuda
