// Hopper (sm_90a) in thin wrappers of PTX: barriers in shared memory, copies by the tensor memory accelerator (TMA), products of
// warpgroups, barriers of some warps, registers handed from one warpgroup to another.
#pragma once

#include <cuda.h>
#include <cuda_runtime.h>

#include "heed/core/dtype.h"
#include "heed/cuda/wgmma.cuh"

namespace heed::cuda {

__device__ __forceinline__ uint32_t shared_address(const void* p) { return static_cast<uint32_t>(__cvta_generic_to_shared(p)); }

// A barrier in shared memory: a phase ends when all arrivals and all bytes that were announced have come.
struct Barrier {
  uint64_t state;

  __device__ __forceinline__ void init(int arrivals) {
    asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(shared_address(this)), "r"(arrivals));
  }
  __device__ __forceinline__ void arrive() { asm volatile("mbarrier.arrive.shared.b64 _, [%0];" ::"r"(shared_address(this)) : "memory"); }
  // Arrives and announces bytes that copies will bring.
  __device__ __forceinline__ void expect(int bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(shared_address(this)), "r"(bytes) : "memory");
  }
  // Predicated, not branched: a branch between two products makes ptxas serialize them.
  __device__ __forceinline__ void arrive_if(bool condition) {
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %1, 0;\n@p mbarrier.arrive.shared.b64 _, [%0];\n}" ::"r"(shared_address(this)),
                 "r"(static_cast<int>(condition))
                 : "memory");
  }
  // Until the phase with this parity is over; the one before the first counts as over, with parity 1.
  __device__ __forceinline__ void wait(int parity) {
    asm volatile("{\n.reg .pred p;\nAGAIN: mbarrier.try_wait.parity.shared.b64 p, [%0], %1;\n@p bra DONE;\nbra AGAIN;\nDONE:\n}" ::"r"(
                     shared_address(this)),
                 "r"(parity)
                 : "memory");
  }
};
__device__ __forceinline__ void publish_barriers() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }

// A place in a ring of buffers; the parity of its barriers flips at each round.
template <int kStages>
struct RingPlace {
  int index = 0, parity = 0;
  __device__ __forceinline__ void advance() {
    if (++index == kStages) {
      index = 0;
      parity ^= 1;
    }
  }
};

__device__ __forceinline__ void store_if(float* to, float x, bool condition) {  // predicated, as above
  asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %2, 0;\n@p st.shared.f32 [%0], %1;\n}" ::"r"(shared_address(to)), "f"(x),
               "r"(static_cast<int>(condition))
               : "memory");
}

// The box of a (items, heads, tokens, width) tensor that begins at column d; `done` gets its bytes. What is outside the tensor is zero.
__device__ __forceinline__ void load_box(void* to, const CUtensorMap& map, Barrier& done, int d, int token, int head, int item) {
  asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5, %6}], [%2];" ::"r"(
                   shared_address(to)),
               "l"(reinterpret_cast<uint64_t>(&map)), "r"(shared_address(&done)), "r"(d), "r"(token), "r"(head), "r"(item)
               : "memory");
}
// Addresses and the number of bytes are multiples of 16.
__device__ __forceinline__ void load_bytes(void* to, const void* from, int bytes, Barrier& done) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(shared_address(to)),
               "l"(from), "r"(bytes), "r"(shared_address(&done))
               : "memory");
}

__device__ __forceinline__ void fence_products() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ __forceinline__ void commit_products() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <int kPending>
__device__ __forceinline__ void wait_products() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kPending) : "memory");
}
// Keeps the compiler from moving accesses to registers of a product over a fence or a wait.
template <int count>
__device__ __forceinline__ void pin(float (&x)[count]) {
#pragma unroll
  for (int i = 0; i < count; ++i) asm volatile("" : "+f"(x[i])::"memory");
}
template <int count>
__device__ __forceinline__ void pin(uint32_t (&x)[count]) {
#pragma unroll
  for (int i = 0; i < count; ++i) asm volatile("" : "+r"(x[i])::"memory");
}

// Descriptors. A tile has rows of 64 bf16 = 128 bytes with 128-byte swizzle; wider ones are slabs of 64 columns.
// Along: the depth runs along the rows, 16 of it are 32 bytes. Across: rows are the depth, 16 of it are 2048 bytes.
__device__ __forceinline__ uint64_t tile_along(uint32_t address) {
  return (uint64_t{1} << 62) | (uint64_t{1024 >> 4} << 32) | (uint64_t{1} << 16) | ((address & 0x3ffff) >> 4);
}
__device__ __forceinline__ uint64_t tile_across(uint32_t address, uint32_t slab_bytes) {
  return (uint64_t{1} << 62) | (uint64_t{1024 >> 4} << 32) | (uint64_t{slab_bytes >> 4} << 16) | ((address & 0x3ffff) >> 4);
}
// A tile with rows of 16 bf16 = 32 bytes and 32-byte swizzle, along or across: 16 rows are 512 bytes.
__device__ __forceinline__ uint64_t narrow_tile(uint32_t address) {
  return (uint64_t{3} << 62) | (uint64_t{256 >> 4} << 32) | (uint64_t{1} << 16) | ((address & 0x3ffff) >> 4);
}

// sum (64, columns) (+)= a (64, depth) b (columns, depth)^T, all in shared memory
template <int columns, int depth>
__device__ __forceinline__ void multiply_along(float (&sum)[columns / 2], uint32_t a, uint32_t a_slab, uint32_t b, uint32_t b_slab,
                                               bool add = false) {
#pragma unroll
  for (int k = 0; k < depth / 16; ++k)
    Wgmma<columns, false>::from_shared(sum, tile_along(a + k / 4 * a_slab + k % 4 * 32), tile_along(b + k / 4 * b_slab + k % 4 * 32),
                                       add || k > 0);
}
// The same with a in registers.
template <int columns, int depth>
__device__ __forceinline__ void multiply_along(float (&sum)[columns / 2], const uint32_t (&a)[depth / 4], uint32_t b, uint32_t b_slab,
                                               bool add = false) {
#pragma unroll
  for (int k = 0; k < depth / 16; ++k)
    Wgmma<columns, false>::from_registers(sum, a + 4 * k, tile_along(b + k / 4 * b_slab + k % 4 * 32), add || k > 0);
}
// sum (64, columns) (+)= a (64, depth), registers, b (depth, columns)
template <int columns, int depth>
__device__ __forceinline__ void multiply_across(float (&sum)[columns / 2], const uint32_t (&a)[depth / 4], uint32_t b, uint32_t b_slab,
                                                bool add) {
#pragma unroll
  for (int k = 0; k < depth / 16; ++k)
    Wgmma<columns, true>::from_registers(sum, a + 4 * k, tile_across(b + k * 2048, b_slab), add || k > 0);
}

__device__ __forceinline__ void load_matrices(uint32_t* to, uint32_t address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(address));
}
// A warpgroup's 64 rows of a tile as the left factor of products: registers of a.
template <int depth>
__device__ __forceinline__ void load_factor(uint32_t (&a)[depth / 4], uint32_t tile, uint32_t slab) {
  const int lane = threadIdx.x % 32, row = threadIdx.x % 128 / 32 * 16 + lane % 16;
#pragma unroll
  for (int k = 0; k < depth / 16; ++k)
    load_matrices(a + 4 * k, tile + k / 4 * slab + row * 128 + (((2 * (k % 4) + lane / 16) ^ (row % 8)) << 4));
}
__device__ __forceinline__ void load_narrow_factor(uint32_t (&a)[4], uint32_t tile) {
  const int lane = threadIdx.x % 32, row = threadIdx.x % 128 / 32 * 16 + lane % 16;
  load_matrices(a, tile + row * 32 + ((lane / 16 ^ (row / 4 & 1)) << 4));
}

// Registers of every thread of the warpgroup from here on.
template <int count>
__device__ __forceinline__ void raise_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(count));
}
template <int count>
__device__ __forceinline__ void lower_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(count));
}
// Barriers by number, of some of the block's warps: sync waits until `threads` have come to one of the two.
__device__ __forceinline__ void sync_threads(int barrier, int threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(barrier), "r"(threads) : "memory");
}
__device__ __forceinline__ void arrive_threads(int barrier, int threads) {
  asm volatile("bar.arrive %0, %1;" ::"r"(barrier), "r"(threads) : "memory");
}

__device__ __forceinline__ float exp2_fast(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
__device__ __forceinline__ uint32_t pack_bf16(float low, float high) {
  uint32_t pair;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
}
// Sums of one product become the left factor of the next: both lay their numbers out alike.
template <int count>
__device__ __forceinline__ void pack_factor(uint32_t (&to)[count / 2], const float (&from)[count]) {
#pragma unroll
  for (int i = 0; i < count / 2; ++i) to[i] = pack_bf16(from[2 * i], from[2 * i + 1]);
}

// Over the four lanes that share a row.
__device__ __forceinline__ float quad_max(float x) {
  x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, 1));
  return fmaxf(x, __shfl_xor_sync(0xffffffffu, x, 2));
}
__device__ __forceinline__ float quad_sum(float x) {
  x += __shfl_xor_sync(0xffffffffu, x, 1);
  return x + __shfl_xor_sync(0xffffffffu, x, 2);
}
__device__ __forceinline__ void quad_transpose(uint32_t (&x)[4], int lane) {
  const bool odd = lane & 1, high = lane & 2;
  uint32_t a = __shfl_xor_sync(0xffffffffu, odd ? x[0] : x[1], 1), b = __shfl_xor_sync(0xffffffffu, odd ? x[2] : x[3], 1);
  if (odd) {
    x[0] = a;
    x[2] = b;
  } else {
    x[1] = a;
    x[3] = b;
  }
  a = __shfl_xor_sync(0xffffffffu, high ? x[0] : x[2], 2);
  b = __shfl_xor_sync(0xffffffffu, high ? x[1] : x[3], 2);
  if (high) {
    x[0] = a;
    x[1] = b;
  } else {
    x[2] = a;
    x[3] = b;
  }
}

// Where row r (of r and r + 8) of a thread's sums goes: times `factor`, or as zeros; nowhere if it is not stored.
struct RowTarget {
  Bf16* data;
  float factor;
  bool stored, zero;
};
// As bf16, 16 bytes per lane.
template <int columns>
__device__ __forceinline__ void store_rows(const float (&sum)[columns / 2], const RowTarget (&rows)[2]) {
  const int lane = threadIdx.x % 4;
#pragma unroll
  for (int n = 0; n < columns / 8; n += 4)
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      uint32_t x[4];
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        const float* pair = sum + 4 * (n + k) + 2 * r;
        x[k] = rows[r].zero ? 0 : pack_bf16(pair[0] * rows[r].factor, pair[1] * rows[r].factor);
      }
      quad_transpose(x, lane);
      if (rows[r].stored) *reinterpret_cast<uint4*>(rows[r].data + 8 * (n + lane)) = make_uint4(x[0], x[1], x[2], x[3]);
    }
}

}  // namespace heed::cuda
