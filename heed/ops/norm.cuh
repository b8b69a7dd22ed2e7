// What the CUDA kernels of norms share: which rows fit into registers, and of which threads.
#pragma once

#include "heed/cuda/early_launch.cuh"
#include "heed/cuda/row.cuh"
#include "heed/ops/norm.h"

namespace heed::cuda {

inline constexpr int64_t kWarpRow = NormBackward::kWarpRow, kBlockRow = 8192;  // the widest rows in registers of a warp, of a block
inline constexpr int kMostThreads = 512;                                       // of a block that shares a row

// Calls visit(T(), is layer norm).
template <class Args, class Visit>
void with_norm(const Args& n, const Visit& visit) {
  with_storage(n.dtype, [&]<class T>(T) { n.mean ? visit(T(), std::true_type()) : visit(T(), std::false_type()); });
}

// visit(group type, Count<values>(), threads that share a row) for rows that fit into registers.
template <class Visit>
void with_registers(int64_t D, const Visit& visit) {
  const std::type_identity<WarpGroup> warp;
  const std::type_identity<BlockGroup> block;
  const auto threads = [&](int64_t values) { return static_cast<unsigned>(divide_up<int64_t>(D, values * 32) * 32); };
  if (D <= 256) return visit(warp, Count<8>(), 32u);
  if (D <= 512) return visit(warp, Count<16>(), 32u);
  if (D <= 768) return visit(warp, Count<24>(), 32u);
  if (D <= kWarpRow) return visit(warp, Count<32>(), 32u);
  if (D <= 8 * kMostThreads / 2) return visit(block, Count<8>(), threads(8));
  return visit(block, Count<16>(), threads(16));
}

template <class T, class... Pointers>
bool fits_registers(int64_t D, Pointers... pointers) {
  return D <= kBlockRow && D % Pack<T>::kCount == 0 && (is_aligned(pointers) && ...);
}

}  // namespace heed::cuda
