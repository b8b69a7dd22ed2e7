// Layer norm (Ba et al. 2016), with a residual added on the way, and rms norm (Zhang and Sennrich 2019). A row of whole 16-byte packs stays
// in the registers of a warp, or of a block if it is wide; other rows are read again from a cache. Gradients of weight and bias are summed
// over the rows of each block, then over the blocks.
#include "heed/cuda/row.cuh"
#include "heed/ops/norm.h"

namespace heed::cuda {
namespace {

constexpr int64_t kWarpRow = NormBackward::kWarpRow, kBlockRow = 8192;  // the widest rows in registers of a warp, of a block
constexpr int kMostThreads = 512;                                       // of a block that shares a row

// One formula wherever y is computed: computed again, it has the same bits.
template <bool centred>
__device__ float scaled(float x, float mean, float rstd, float weight, float bias) {
  const float normal = __fmul_rn(__fsub_rn(x, mean), rstd);
  return centred ? fmaf(normal, weight, bias) : __fmul_rn(normal, weight);
}

// A pack as it is in memory, half as many registers as its values take if they are bf16.
template <class T>
struct RawPack {
  uint32_t words[4];

  __device__ float operator[](int i) const {
    if constexpr (sizeof(T) == 4) return __uint_as_float(words[i]);
    return __uint_as_float(i % 2 == 0 ? words[i / 2] << 16 : words[i / 2] & 0xffff0000u);
  }
};
template <class T>
__device__ RawPack<T> load_raw(const T* from) {
  const uint4 x = *reinterpret_cast<const uint4*>(from);
  return {{x.x, x.y, x.z, x.w}};
}

// `values`: elements of a row that one thread holds.
template <class T, bool centred, class Group, int values>
__global__ void __launch_bounds__(std::is_same_v<Group, WarpGroup> ? 128 : kMostThreads) norm_rows(NormForward n) {
  constexpr int size = Pack<T>::kCount, packs = values / size;
  __shared__ float scratch[32];
  const Group group(scratch);
  const int D = static_cast<int>(n.D);
  const auto place = [&](int p) { return (p * group.threads + group.thread) * size; };
  for (int64_t row = group.first_row(); row < n.rows; row += group.row_step()) {
    Floats<size> x[packs];
#pragma unroll
    for (int p = 0; p < packs; ++p) {
      x[p] = {};
      if (place(p) < D) x[p] = load_some<size>(static_cast<const T*>(n.x) + row * n.D + place(p));
    }
    float mean = 0, rstd = 0;
    if (n.known) {
      if constexpr (centred) mean = n.mean[row];
      rstd = n.rstd[row];
    } else {
      if (n.residual) {
#pragma unroll
        for (int p = 0; p < packs; ++p) {
          if (place(p) >= D) continue;
          const auto residual = load_some<size>(static_cast<const T*>(n.residual) + row * n.D + place(p));
#pragma unroll
          for (int k = 0; k < size; ++k) x[p].values[k] = rounded_to(x[p].values[k] + residual.values[k], T());
          store_some(static_cast<T*>(n.sum) + row * n.D + place(p), x[p]);
        }
      }
      if constexpr (centred) {
        float total = 0;
#pragma unroll
        for (int p = 0; p < packs; ++p)
#pragma unroll
          for (float v : x[p].values) total += v;
        mean = group.sum(total) / static_cast<float>(D);
      }
      float squares = 0;
#pragma unroll
      for (int p = 0; p < packs; ++p) {
        if (place(p) >= D) continue;
#pragma unroll
        for (float v : x[p].values) squares = fmaf(v - mean, v - mean, squares);
      }
      rstd = 1 / sqrtf(group.sum(squares) / static_cast<float>(D) + n.eps);
      if (group.thread == 0) {
        if constexpr (centred) n.mean[row] = mean;
        n.rstd[row] = rstd;
      }
    }
#pragma unroll
    for (int p = 0; p < packs; ++p) {
      const int i = place(p);
      if (i >= D) continue;
      const auto weight = load_some<size>(n.weight + i);
      Floats<size> bias{};
      if constexpr (centred) bias = load_some<size>(n.bias + i);
#pragma unroll
      for (int k = 0; k < size; ++k) x[p].values[k] = scaled<centred>(x[p].values[k], mean, rstd, weight.values[k], bias.values[k]);
      store_some(static_cast<T*>(n.y) + row * n.D + i, x[p]);
    }
  }
}

// The same for any width and any addresses.
template <class T, bool centred, class Group>
__global__ void norm_any_rows(NormForward n) {
  __shared__ float scratch[32];
  const Group group(scratch);
  const int64_t D = n.D;
  const bool add = n.residual && !n.known;
  for (int64_t row = group.first_row(); row < n.rows; row += group.row_step()) {
    const T *const given = static_cast<const T*>(n.x) + row * D, *const residual =
                                                                     add ? static_cast<const T*>(n.residual) + row * D : nullptr;
    T *const sum = add ? static_cast<T*>(n.sum) + row * D : nullptr, *const y = static_cast<T*>(n.y) + row * D;
    const T* const x = add ? sum : given;  // of sum, a thread reads what it wrote itself
    const int64_t head = unaligned_head(D, given, residual, static_cast<const T*>(sum), static_cast<const T*>(y));
    const auto each = [&](const auto& body) { for_elements<T>(D, head, group.thread, group.threads, body); };
    if (add)
      each([&](int64_t i, auto count) {
        auto a = load_some<count.value>(given + i);
        const auto b = load_some<count.value>(residual + i);
#pragma unroll
        for (int k = 0; k < count.value; ++k) a.values[k] += b.values[k];
        store_some(sum + i, a);
      });
    float mean = 0, rstd = 0;
    if (n.known) {
      if constexpr (centred) mean = n.mean[row];
      rstd = n.rstd[row];
    } else {
      if constexpr (centred) {
        float total = 0;
        each([&](int64_t i, auto count) {
          for (float v : load_some<count.value>(x + i).values) total += v;
        });
        mean = group.sum(total) / static_cast<float>(D);
      }
      float squares = 0;
      each([&](int64_t i, auto count) {
        for (float v : load_some<count.value>(x + i).values) squares = fmaf(v - mean, v - mean, squares);
      });
      rstd = 1 / sqrtf(group.sum(squares) / static_cast<float>(D) + n.eps);
      if (group.thread == 0) {
        if constexpr (centred) n.mean[row] = mean;
        n.rstd[row] = rstd;
      }
    }
    each([&](int64_t i, auto count) {
      auto value = load_some<count.value>(x + i);
#pragma unroll
      for (int k = 0; k < count.value; ++k)
        value.values[k] = scaled<centred>(value.values[k], mean, rstd, n.weight[i + k], centred ? n.bias[i + k] : 0.0f);
      store_some(y + i, value);
    });
  }
}

// How many blocks share a multiprocessor: as many as there are registers for.
template <class T, class Group, int values>
constexpr int blocks_at_a_time() {
  if (std::is_same_v<Group, BlockGroup>) return values <= 8 ? 2 : 1;
  if (values <= 16) return values <= 8 ? 4 : 3;
  return values == 32 && sizeof(T) == 4 ? 1 : 2;
}

// With z = (x - mean) rstd and h = g w:  dx = rstd (h - mean(h) - z mean(h z));  dw = sum g z;  db = sum g.
// parts: (blocks, 2, D), the sums for dw and db over the rows of a block.
template <class T, bool centred, class Group, int values>
__global__ void __launch_bounds__(std::is_same_v<Group, WarpGroup> ? 256 : kMostThreads, blocks_at_a_time<T, Group, values>())
    norm_gradients(NormBackward n, float* parts) {
  constexpr int size = Pack<T>::kCount, packs = values / size;
  __shared__ float scratch[32];
  extern __shared__ float sums[];  // (2, D), where warps have rows
  const Group group(scratch);
  const int D = static_cast<int>(n.D);
  const auto place = [&](int p) { return (p * group.threads + group.thread) * size; };
  float dw[values] = {}, db[centred ? values : 1] = {};
  for (int64_t row = group.first_row(); row < n.rows; row += group.row_step()) {
    const int64_t begin = row * n.D;
    RawPack<T> x[packs], g[packs];
#pragma unroll
    for (int p = 0; p < packs; ++p) {
      x[p] = g[p] = {};
      if (place(p) >= D) continue;
      x[p] = load_raw(static_cast<const T*>(n.x) + begin + place(p));
      g[p] = load_raw(static_cast<const T*>(n.g) + begin + place(p));
    }
    const float mean = centred ? n.mean[row] : 0.0f, rstd = n.rstd[row];
    float sum_h = 0, sum_hz = 0;
#pragma unroll
    for (int p = 0; p < packs; ++p) {
      if (place(p) >= D) continue;
      const auto weight = load_some<size>(n.weight + place(p));
#pragma unroll
      for (int k = 0; k < size; ++k) {
        const float gradient = g[p][k], z = (x[p][k] - mean) * rstd, h = gradient * weight.values[k];
        dw[p * size + k] = fmaf(gradient, z, dw[p * size + k]);
        if constexpr (centred) db[p * size + k] += gradient;
        sum_h += h;
        sum_hz = fmaf(h, z, sum_hz);
      }
    }
    const float mean_hz = group.sum(sum_hz) / static_cast<float>(D), mean_h = centred ? group.sum(sum_h) / static_cast<float>(D) : 0.0f;
#pragma unroll
    for (int p = 0; p < packs; ++p) {
      if (place(p) >= D) continue;
      const auto weight = load_some<size>(n.weight + place(p));
      Floats<size> dx{};
      if (n.g_sum) dx = load_some<size>(static_cast<const T*>(n.g_sum) + begin + place(p));
#pragma unroll
      for (int k = 0; k < size; ++k) dx.values[k] += rstd * (g[p][k] * weight.values[k] - mean_h - (x[p][k] - mean) * rstd * mean_hz);
      store_some(static_cast<T*>(n.dx) + begin + place(p), dx);
    }
  }

  float* const to = parts + int64_t{blockIdx.x} * 2 * n.D;
  const auto write = [&](float* first, bool add) {  // adds to, or begins, (2, D)
#pragma unroll
    for (int p = 0; p < packs; ++p) {
      if (place(p) >= D) continue;
#pragma unroll
      for (int k = 0; k < size; ++k) {
        const int i = place(p) + k;
        first[i] = (add ? first[i] : 0.0f) + dw[p * size + k];
        if constexpr (centred) first[D + i] = (add ? first[D + i] : 0.0f) + db[p * size + k];
      }
    }
  };
  if constexpr (std::is_same_v<Group, BlockGroup>) {
    write(to, false);
  } else {
    const int warp = threadIdx.x / 32, warps = blockDim.x / 32;
    for (int w = 0; w < warps; ++w) {  // from the first warp to the last
      if (w == warp) write(sums, w > 0);
      __syncthreads();
    }
    for (int i = threadIdx.x; i < (centred ? 2 : 1) * D; i += blockDim.x) to[i] = sums[i];
  }
}

// dx for any width and any addresses.
template <class T, bool centred, class Group>
__global__ void norm_any_gradients(NormBackward n) {
  __shared__ float scratch[32];
  const Group group(scratch);
  const int64_t D = n.D;
  for (int64_t row = group.first_row(); row < n.rows; row += group.row_step()) {
    const T *const x = static_cast<const T*>(n.x) + row * D, *const g = static_cast<const T*>(n.g) + row * D;
    const T* const g_sum = n.g_sum ? static_cast<const T*>(n.g_sum) + row * D : nullptr;
    T* const dx = static_cast<T*>(n.dx) + row * D;
    const float mean = centred ? n.mean[row] : 0.0f, rstd = n.rstd[row];
    const int64_t head = unaligned_head(D, x, g, g_sum, static_cast<const T*>(dx));
    const auto each = [&](const auto& body) { for_elements<T>(D, head, group.thread, group.threads, body); };
    float sum_h = 0, sum_hz = 0;
    each([&](int64_t i, auto count) {
      const auto value = load_some<count.value>(x + i), gradient = load_some<count.value>(g + i);
#pragma unroll
      for (int k = 0; k < count.value; ++k) {
        const float h = gradient.values[k] * n.weight[i + k];
        sum_h += h;
        sum_hz = fmaf(h, (value.values[k] - mean) * rstd, sum_hz);
      }
    });
    const float mean_hz = group.sum(sum_hz) / static_cast<float>(D), mean_h = centred ? group.sum(sum_h) / static_cast<float>(D) : 0.0f;
    each([&](int64_t i, auto count) {
      const auto value = load_some<count.value>(x + i), gradient = load_some<count.value>(g + i);
      Floats<count.value> d{};
      if (g_sum) d = load_some<count.value>(g_sum + i);
#pragma unroll
      for (int k = 0; k < count.value; ++k)
        d.values[k] += rstd * (gradient.values[k] * n.weight[i + k] - mean_h - (value.values[k] - mean) * rstd * mean_hz);
      store_some(dx + i, d);
    });
  }
}

// The sums over `per_block` rows for dw and db, of 32 columns by 8 warps. parts: (blocks = gridDim.y, 2, D)
template <class T, bool centred>
__global__ void norm_any_parts(NormBackward n, int64_t per_block, float* parts) {
  __shared__ float found[2][8][32];
  const int64_t column = int64_t{blockIdx.x} * 32 + threadIdx.x, first = blockIdx.y * per_block;
  const int64_t end = first + per_block < n.rows ? first + per_block : n.rows;
  float dw = 0, db = 0;
  if (column < n.D)
    for (int64_t row = first + threadIdx.y; row < end; row += 8) {
      const int64_t i = row * n.D + column;
      const float gradient = load(static_cast<const T*>(n.g) + i), mean = centred ? n.mean[row] : 0.0f;
      dw = fmaf(gradient, (load(static_cast<const T*>(n.x) + i) - mean) * n.rstd[row], dw);
      db += gradient;
    }
  found[0][threadIdx.y][threadIdx.x] = dw;
  found[1][threadIdx.y][threadIdx.x] = db;
  __syncthreads();
  if (threadIdx.y >= 2 || column >= n.D) return;
  float total = 0;
  for (int warp = 0; warp < 8; ++warp) total += found[threadIdx.y][warp][threadIdx.x];
  parts[(int64_t{blockIdx.y} * 2 + threadIdx.y) * n.D + column] = total;
}

// dw (blockIdx.y = 0) and db: 32 columns by 32 warps, which take every 32nd block. parts: (blocks, 2, D)
__global__ void __launch_bounds__(1024) join_parts(const float* parts, int64_t blocks, int64_t D, float* dw, float* db) {
  __shared__ float found[32][33];
  const int64_t first = int64_t{blockIdx.x} * 32, column = first + threadIdx.x;
  const float* const from = parts + blockIdx.y * D + column;
  float mine = 0;
  if (column < D)
    for (int64_t block = threadIdx.y; block < blocks; block += 32) mine += from[block * 2 * D];
  found[threadIdx.y][threadIdx.x] = mine;
  __syncthreads();
  const float total = warp_sum(found[threadIdx.x][threadIdx.y]);
  if (threadIdx.x == 0 && first + threadIdx.y < D) (blockIdx.y == 0 ? dw : db)[first + threadIdx.y] = total;
}

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

}  // namespace

void norm_forward(const NormForward& n) {
  if (n.rows == 0 || n.D == 0) return;
  with_norm(n, [&]<class T, class Centred>(T, Centred) {
    if (fits_registers<T>(n.D, n.x, n.residual, n.weight, n.bias, n.sum, n.y))
      return with_registers(n.D, [&]<class Group, int values>(std::type_identity<Group>, Count<values>, unsigned threads) {
        constexpr bool warp = std::is_same_v<Group, WarpGroup>;
        start(norm_rows<T, Centred::value, Group, values>, warp ? block_count(n.rows, 4, 64) : block_count(n.rows, 1, 32),
              warp ? 128 : threads, 0, n);
      });
    with_group(n.rows, n.D, [&]<class Group>(std::type_identity<Group>, unsigned blocks, unsigned threads) {
      start(norm_any_rows<T, Centred::value, Group>, blocks, threads, 0, n);
    });
  });
}

void norm_backward(const NormBackward& n) {
  if (n.D == 0) return;
  float* const parts = static_cast<float*>(n.workspace);
  int64_t blocks = n.rows > 0 ? n.cuda_blocks() : 0;
  if (n.rows > 0)
    with_norm(n, [&]<class T, class Centred>(T, Centred) {
      if (fits_registers<T>(n.D, n.x, n.g, n.g_sum, n.weight, n.dx))
        return with_registers(n.D, [&]<class Group, int values>(std::type_identity<Group>, Count<values>, unsigned threads) {
          constexpr bool warp = std::is_same_v<Group, WarpGroup>;
          start(norm_gradients<T, Centred::value, Group, values>, static_cast<unsigned>(blocks), warp ? 256 : threads,
                warp ? 2 * static_cast<size_t>(n.D) * sizeof(float) : 0, n, parts);
        });
      with_group(n.rows, n.D, [&]<class Group>(std::type_identity<Group>, unsigned row_blocks, unsigned threads) {
        start(norm_any_gradients<T, Centred::value, Group>, row_blocks, threads, 0, n);
      });
      const int64_t per_block = divide_up(n.rows, blocks);
      blocks = divide_up(n.rows, per_block);
      start(norm_any_parts<T, Centred::value>, dim3(static_cast<unsigned>(divide_up<int64_t>(n.D, 32)), static_cast<unsigned>(blocks)),
            dim3(32, 8), 0, n, per_block, parts);
    });
  start(join_parts, dim3(static_cast<unsigned>(divide_up<int64_t>(n.D, 32)), n.db ? 2 : 1), dim3(32, 32), 0, parts, blocks, n.D, n.dw,
        n.db);
}

}  // namespace heed::cuda
