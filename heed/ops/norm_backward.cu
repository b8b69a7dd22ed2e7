// Gradients of layer norm and rms norm. Those of weight and bias are summed over the rows of each block, then over the blocks.
#include <cuda_pipeline_primitives.h>

#include "heed/cuda/raw_pack.cuh"
#include "heed/ops/norm.cuh"

namespace heed::cuda {
namespace {

// How many blocks share a multiprocessor: as many as there are registers for.
template <class T, class Group, int values>
constexpr int blocks_at_a_time() {
  if (std::is_same_v<Group, BlockGroup>) return values <= 8 ? 2 : 1;
  if (values <= 16) return values <= 8 ? 4 : 3;
  return values == 32 && sizeof(T) == 4 ? 1 : 2;
}

// Rows of bf16, each of a warp. The next row arrives in shared memory while the warp works on this one; a lane reads only what it has
// copied itself. Formulas as below.
inline constexpr int kWarps = 8, kStages = 2, kStaged = 3;  // x, g and g_sum
template <bool centred, int values>
__global__ void __launch_bounds__(kWarps * 32, blocks_at_a_time<Bf16, WarpGroup, values>())
    norm_staged_gradients(NormBackward n, float* parts) {
  wait_for_previous();
  allow_next();
  constexpr int size = Pack<Bf16>::kCount, packs = values / size;
  extern __shared__ uint4 staged[];  // (warps, stages, 3, packs, 32); at the end (warps, 2, D) floats
  const int D = static_cast<int>(n.D), warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  const auto place = [&](int p) { return (p * 32 + lane) * size; };
  const auto slot = [&](int stage, int tensor, int p) {
    return staged + (((warp * kStages + stage) * kStaged + tensor) * packs + p) * 32 + lane;
  };
  const int64_t step = int64_t{gridDim.x} * kWarps;
  const auto fetch = [&](int64_t row, int stage) {
    if (row < n.rows)
#pragma unroll
      for (int p = 0; p < packs; ++p) {
        if (place(p) >= D) continue;
        const int64_t at = row * n.D + place(p);
        __pipeline_memcpy_async(slot(stage, 0, p), static_cast<const Bf16*>(n.x) + at, 16);
        __pipeline_memcpy_async(slot(stage, 1, p), static_cast<const Bf16*>(n.g) + at, 16);
        if (n.g_sum) __pipeline_memcpy_async(slot(stage, 2, p), static_cast<const Bf16*>(n.g_sum) + at, 16);
      }
    __pipeline_commit();
  };
  const auto read = [&](int stage, int tensor, int p) { return load_raw(reinterpret_cast<const Bf16*>(slot(stage, tensor, p))); };

  float dw[values] = {}, db[centred ? values : 1] = {};
  int64_t row = int64_t{blockIdx.x} * kWarps + warp;
  int stage = 0;
  float mean = 0, rstd = 0;
  if (row < n.rows) {
    if constexpr (centred) mean = n.mean[row];
    rstd = n.rstd[row];
  }
  fetch(row, stage);
  for (; row < n.rows; row += step, stage = 1 - stage) {
    fetch(row + step, 1 - stage);
    float next_mean = 0, next_rstd = 0;
    if (row + step < n.rows) {
      if constexpr (centred) next_mean = n.mean[row + step];
      next_rstd = n.rstd[row + step];
    }
    __pipeline_wait_prior(1);
    float sum_h = 0, sum_hz = 0;
#pragma unroll
    for (int p = 0; p < packs; ++p) {
      if (place(p) >= D) continue;
      const RawPack<Bf16> x = read(stage, 0, p), g = read(stage, 1, p);
      const auto weight = load_some<size>(n.weight + place(p));
#pragma unroll
      for (int k = 0; k < size; ++k) {
        const float gradient = g[k], z = (x[k] - mean) * rstd, h = gradient * weight.values[k];
        dw[p * size + k] = fmaf(gradient, z, dw[p * size + k]);
        if constexpr (centred) db[p * size + k] += gradient;
        sum_h += h;
        sum_hz = fmaf(h, z, sum_hz);
      }
    }
    const float mean_hz = warp_sum(sum_hz) / static_cast<float>(D), mean_h = centred ? warp_sum(sum_h) / static_cast<float>(D) : 0.0f;
#pragma unroll
    for (int p = 0; p < packs; ++p) {
      if (place(p) >= D) continue;
      const RawPack<Bf16> x = read(stage, 0, p), g = read(stage, 1, p);
      RawPack<Bf16> other{};
      if (n.g_sum) other = read(stage, 2, p);
      const auto weight = load_some<size>(n.weight + place(p));
      Floats<size> dx;
#pragma unroll
      for (int k = 0; k < size; ++k) dx.values[k] = other[k] + rstd * (g[k] * weight.values[k] - mean_h - (x[k] - mean) * rstd * mean_hz);
      store_some(static_cast<Bf16*>(n.dx) + row * n.D + place(p), dx);
    }
    mean = next_mean, rstd = next_rstd;
  }

  __pipeline_wait_prior(0);
  __syncthreads();
  auto* const sums = reinterpret_cast<float*>(staged);
  const auto keep = [&](const float* found, float* to) {
#pragma unroll
    for (int p = 0; p < packs; ++p) {
      if (place(p) >= D) continue;
      Floats<size> all;
#pragma unroll
      for (int k = 0; k < size; ++k) all.values[k] = found[p * size + k];
      store_some(to + place(p), all);
    }
  };
  keep(dw, sums + warp * 2 * D);
  if constexpr (centred) keep(db, sums + (warp * 2 + 1) * D);
  __syncthreads();
  for (int i = static_cast<int>(threadIdx.x); i < (centred ? 2 : 1) * D; i += kWarps * 32) {
    float total = 0;
#pragma unroll
    for (int w = 0; w < kWarps; ++w) total += sums[w * 2 * D + i];
    parts[int64_t{blockIdx.x} * 2 * n.D + i] = total;
  }
}

// The same for other rows. With z = (x - mean) rstd and h = g w:  dx = rstd (h - mean(h) - z mean(h z));  dw = sum g z;  db = sum g.
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
  wait_for_previous();
  allow_next();
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

}  // namespace

void norm_backward(const NormBackward& n) {
  if (n.D == 0) return;
  float* const parts = static_cast<float*>(n.workspace);
  int64_t blocks = n.rows > 0 ? n.cuda_blocks() : 0;
  if (n.rows > 0)
    with_norm(n, [&]<class T, class Centred>(T, Centred) {
      if (fits_registers<T>(n.D, n.x, n.g, n.g_sum, n.weight, n.dx))
        return with_registers(n.D, [&]<class Group, int values>(std::type_identity<Group>, Count<values>, unsigned threads) {
          constexpr bool warp = std::is_same_v<Group, WarpGroup>;
          const auto grid = static_cast<unsigned>(blocks);
          if constexpr (warp && std::is_same_v<T, Bf16>) {
            constexpr size_t shared = kWarps * kStages * kStaged * values / 8 * 32 * sizeof(uint4);
            start_early(norm_staged_gradients<Centred::value, values>, grid, kWarps * 32, shared, n, parts);
          } else {
            start(norm_gradients<T, Centred::value, Group, values>, grid, warp ? 256 : threads,
                  warp ? 2 * static_cast<size_t>(n.D) * sizeof(float) : 0, n, parts);
          }
        });
      with_group(n.rows, n.D, [&]<class Group>(std::type_identity<Group>, unsigned row_blocks, unsigned threads) {
        start(norm_any_gradients<T, Centred::value, Group>, row_blocks, threads, 0, n);
      });
      const int64_t per_block = divide_up(n.rows, blocks);
      blocks = divide_up(n.rows, per_block);
      start(norm_any_parts<T, Centred::value>, dim3(static_cast<unsigned>(divide_up<int64_t>(n.D, 32)), static_cast<unsigned>(blocks)),
            dim3(32, 8), 0, n, per_block, parts);
    });
  start_early(join_parts, dim3(static_cast<unsigned>(divide_up<int64_t>(n.D, 32)), n.db ? 2 : 1), dim3(32, 32), 0, parts, blocks, n.D, n.dw,
              n.db);
}

}  // namespace heed::cuda
