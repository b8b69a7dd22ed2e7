// Hopper's asynchronous matrix product of a warpgroup (128 threads): 64 rows, some columns, 16 numbers deep, bf16 in, f32 out.
//   Wgmma<columns, kAcross>::from_shared(sum, a, b, add)      a and b: descriptors of tiles in shared memory (hopper.cuh)
//   Wgmma<columns, kAcross>::from_registers(sum, a, b, add)   a: 4 registers of 2 numbers
// sum (+)= A B^T; kAcross: B is stored with the depth as its rows. Of row r and r + 8 of a warp's 16 (r = lane / 4), a thread holds columns
// 8 n + 2 (lane % 4) + {0, 1} in sum[4 n + {0, 1}] and sum[4 n + {2, 3}].
#pragma once

#include <cstdint>

namespace heed::cuda {

template <int columns, bool kAcross>
struct Wgmma;

// The operands of an asm statement are numbered and written out: a template cannot do that.
#define HEED_SUM_8 "%0, %1, %2, %3, %4, %5, %6, %7"
#define HEED_SUM_16 HEED_SUM_8 ", %8, %9, %10, %11, %12, %13, %14, %15"
#define HEED_SUM_24 HEED_SUM_16 ", %16, %17, %18, %19, %20, %21, %22, %23"
#define HEED_SUM_32 HEED_SUM_24 ", %24, %25, %26, %27, %28, %29, %30, %31"
#define HEED_SUM_40 HEED_SUM_32 ", %32, %33, %34, %35, %36, %37, %38, %39"
#define HEED_SUM_48 HEED_SUM_40 ", %40, %41, %42, %43, %44, %45, %46, %47"
#define HEED_SUM_56 HEED_SUM_48 ", %48, %49, %50, %51, %52, %53, %54, %55"
#define HEED_SUM_64 HEED_SUM_56 ", %56, %57, %58, %59, %60, %61, %62, %63"
#define HEED_OUT_4(i) "+f"(sum[i]), "+f"(sum[i + 1]), "+f"(sum[i + 2]), "+f"(sum[i + 3])
#define HEED_OUT_8(i) HEED_OUT_4(i), HEED_OUT_4(i + 4)
#define HEED_OUT_16(i) HEED_OUT_8(i), HEED_OUT_8(i + 8)
#define HEED_OUT_24(i) HEED_OUT_16(i), HEED_OUT_8(i + 16)
#define HEED_OUT_32(i) HEED_OUT_16(i), HEED_OUT_16(i + 16)
#define HEED_OUT_40(i) HEED_OUT_32(i), HEED_OUT_8(i + 32)
#define HEED_OUT_64(i) HEED_OUT_32(i), HEED_OUT_32(i + 32)

// registers: columns / 2; i0 to i6: the numbers of the operands after them.
#define HEED_WGMMA(columns, registers, i0, i1, i2, i3, i4, i5, i6)                                                                    \
  template <bool kAcross>                                                                                                             \
  struct Wgmma<columns, kAcross> {                                                                                                    \
    static __device__ __forceinline__ void from_shared(float (&sum)[registers], uint64_t a, uint64_t b, bool add) {                   \
      asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %" #i2 ", 0;\nwgmma.mma_async.sync.aligned.m64n" #columns                        \
                   "k16.f32.bf16.bf16 {" HEED_SUM_##registers "}, %" #i0 ", %" #i1 ", p, 1, 1, 0, %" #i3 ";\n}"                       \
                   : HEED_OUT_##registers(0)                                                                                          \
                   : "l"(a), "l"(b), "r"(static_cast<int>(add)), "n"(kAcross ? 1 : 0));                                               \
    }                                                                                                                                 \
    static __device__ __forceinline__ void from_registers(float (&sum)[registers], const uint32_t* a, uint64_t b, bool add) {         \
      asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %" #i5 ", 0;\nwgmma.mma_async.sync.aligned.m64n" #columns                        \
                   "k16.f32.bf16.bf16 {" HEED_SUM_##registers "}, {%" #i0 ", %" #i1 ", %" #i2 ", %" #i3 "}, %" #i4 ", p, 1, 1, %" #i6 \
                                                              ";\n}"                                                                  \
                   : HEED_OUT_##registers(0)                                                                                          \
                   : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(static_cast<int>(add)), "n"(kAcross ? 1 : 0));           \
    }                                                                                                                                 \
  };
HEED_WGMMA(16, 8, 8, 9, 10, 11, 12, 13, 14)
HEED_WGMMA(32, 16, 16, 17, 18, 19, 20, 21, 22)
HEED_WGMMA(48, 24, 24, 25, 26, 27, 28, 29, 30)
HEED_WGMMA(64, 32, 32, 33, 34, 35, 36, 37, 38)
HEED_WGMMA(80, 40, 40, 41, 42, 43, 44, 45, 46)
HEED_WGMMA(128, 64, 64, 65, 66, 67, 68, 69, 70)
#undef HEED_WGMMA
#undef HEED_SUM_8
#undef HEED_SUM_16
#undef HEED_SUM_24
#undef HEED_SUM_32
#undef HEED_SUM_40
#undef HEED_SUM_48
#undef HEED_SUM_56
#undef HEED_SUM_64
#undef HEED_OUT_4
#undef HEED_OUT_8
#undef HEED_OUT_16
#undef HEED_OUT_24
#undef HEED_OUT_32
#undef HEED_OUT_40
#undef HEED_OUT_64

}  // namespace heed::cuda
