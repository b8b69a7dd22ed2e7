// Descriptions of tensors for the copy engine (TMA).
#pragma once

#include <cuda.h>

#include <cstdint>

namespace heed::cuda {

// bf16 (items, heads, tokens, width); strides in elements, multiples of 8 except where the size is 1.
struct MappedTensor {
  const void* data;
  int64_t items, heads, tokens, width;
  int64_t item, head, token;  // strides
};
// Boxes of `rows` tokens with 64 numbers each, in shared memory with 128-byte swizzle; zeros where the tensor has no more numbers or
// tokens.
CUtensorMap tile_map(const MappedTensor& x, int rows);
// Boxes of `rows` tokens with 16 numbers each, with 32-byte swizzle.
CUtensorMap narrow_map(const MappedTensor& x, int rows);

}  // namespace heed::cuda
