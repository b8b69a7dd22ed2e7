// bf16 copies of f32 weights, so that products of bf16 activations need not round the weights every time. A copy is made when it is first
// needed. From then on it is always up to date, because whatever writes the weight writes the copy as well. Its address does not change, so
// that CUDA graphs may read it. It is freed with the memory of the weight.
#pragma once

#include <cstddef>
#include <cstdint>

#include "heed/core/api.h"
#include "heed/core/tensor.h"

namespace HEED_API heed {

// The copy of a dense f32 tensor or of a part of one, with the same shape. While a CUDA graph is recorded no copy is made, and the result
// is x itself if there is none.
Tensor bf16_copy(const Tensor& x);
Tensor kept_bf16_copy(const Tensor& x);  // undefined if there is none
// The same for a kernel that writes the copy together with x. If there is none while a CUDA graph is recorded, none is made later: that
// graph would not write it.
Tensor bf16_copy_to_write(const Tensor& x);

// The copies of these tensors, none of which has one yet, will be adjacent in memory, in this order.
void adjoin_bf16_copies(const Tensors& parts);
// Adjacent copies as one tensor. parts: (O_i, ...) -> (sum of O_i, ...); undefined if they are not adjacent
Tensor joined_bf16_copy(const Tensors& parts);

void refresh_bf16_copy(const Tensor& written);                   // after elements were written by other means than copy_into and accumulate
void forget_bf16_copies(const std::byte* begin, int64_t bytes);  // before that memory is freed; allocates nothing

}  // namespace heed
