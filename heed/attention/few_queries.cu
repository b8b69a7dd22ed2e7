// Attention on GPUs, forward, of few queries against many keys, as in decoding: bound by reading keys and values, once each. Blocks take
// chunks of the keys; another kernel joins their sums in order (Dao et al., Flash-Decoding, 2023).
#include "heed/attention/few_queries_split.h"
#include "heed/attention/score_tile.cuh"
#include "heed/cuda/block_reduce.cuh"
#include "heed/cuda/launch.cuh"

namespace heed::cuda {
namespace {

constexpr int kLanes = 16;                          // that share a key
constexpr int kKeyGroups = kBlockThreads / kLanes;  // keys at a time
constexpr int kBatch = 4;                           // keys of a lane in flight
constexpr int kVectorThreads = kBlockThreads;       // vectors of a row of values that a block can take
static_assert(kTile % (kKeyGroups * kBatch) == 0);

struct FewQueriesPlan {
  FewQueriesForward args;
  CudaFewQueriesSplit split;
  int padded_d;  // floats of a query in shared memory
  bool aligned_k, aligned_v;
};

// 16 bytes of elements, of which `count` are there.
template <class T>
__device__ Pack<T> load_some(const T* from, int count, bool aligned) {
  if (aligned && count >= Pack<T>::kCount) return load_pack(from);
  Pack<T> x;
#pragma unroll
  for (int i = 0; i < Pack<T>::kCount; ++i) x.values[i] = i < count ? load(from + i) : 0.0f;
  return x;
}

__device__ inline float keep_factor(const ScoreArgs& a, int64_t index, int64_t j) {
  const auto words = philox(a.dropout_key, static_cast<uint64_t>((index * ((a.sizes.M + 63) / 64) + j / 64) * 16 + j % 16));
  const uint32_t limit = static_cast<uint32_t>(static_cast<double>(a.dropout) * 0x1p32);
  return words[j % 64 / 16] >= limit ? 1 / (1 - a.dropout) : 0.0f;
}

// R rows (queries of heads that share a key head) against a chunk of keys.
template <class T, int R>
__global__ void __launch_bounds__(kBlockThreads, R == 8 ? 2 : 3) few_queries_kernel(const __grid_constant__ FewQueriesPlan plan) {
  constexpr int vector = Pack<T>::kCount;
  extern __shared__ __align__(16) float queries[];  // (R, padded_d)
  __shared__ float scores[R][kTile], row_max[R], row_sum[R], rescale[R], joined[kVectorThreads * vector];
  const FewQueriesForward& w = plan.args;
  const ScoreArgs& a = w.scores;
  const AttentionSizes& z = a.sizes;
  const CudaFewQueriesSplit& split = plan.split;
  const int64_t chunk = blockIdx.x % split.chunks, row_tile = blockIdx.x / split.chunks % split.row_tiles,
                head = blockIdx.x / split.chunks / split.row_tiles, b = head / z.G, g = head % z.G, group = z.H / z.G;
  const int64_t first_row = row_tile * R, first_at = (b * z.H + g * group) * z.N + first_row;  // of (B, H, N)
  const int rows = static_cast<int>(min(int64_t{R}, split.rows - first_row));
  const int D = static_cast<int>(z.D), thread = threadIdx.x, lane = thread % kLanes, key_group = thread / kLanes;
  const bool content = a.beta != 0;

  for (int at = thread; at < R * plan.padded_d; at += kBlockThreads) {
    const int r = at / plan.padded_d, d = at % plan.padded_d;
    queries[at] = r < rows && d < D ? load(static_cast<const T*>(w.q) + (first_at + r) * D + d) : 0.0f;
  }
  if (thread < R) {
    row_max[thread] = -HUGE_VALF;
    row_sum[thread] = 0;
  }

  // Values: a thread has `vector` columns, and some threads share them.
  const int64_t first_column = int64_t{blockIdx.y} * kVectorThreads * vector;
  const int columns = static_cast<int>(min(z.E - first_column, int64_t{kVectorThreads} * vector)),
            vectors = (columns + vector - 1) / vector;
  const int sharers = vectors > 0 ? kBlockThreads / vectors : 0, sharer = vectors > 0 ? thread / vectors : 0,
            column = vectors > 0 ? thread % vectors * vector : 0;
  float sums[R][vector];
#pragma unroll
  for (int r = 0; r < R; ++r)
#pragma unroll
    for (int i = 0; i < vector; ++i) sums[r][i] = 0;

  // Calls visit(first row, ScoreBlock) for the rows of each head.
  const auto for_heads = [&](int64_t j0, int64_t j1, const auto& visit) {
    for (int r = 0; r < rows;) {
      const int64_t row = first_row + r, i = row % z.N, count = min(z.N - i, int64_t{rows - r});
      visit(r, a.block(b, g * group + row / z.N, i, i + count, j0, j1));
      r += static_cast<int>(count);
    }
  };

  const int64_t end = min(z.M, (chunk + 1) * split.chunk);
  for (int64_t j0 = chunk * split.chunk; j0 < end; j0 += kTile) {
    const int keys = static_cast<int>(min(end - j0, int64_t{kTile}));
    bool visible = false;
    for_heads(j0, j0 + keys, [&](int, const ScoreBlock& x) { visible = visible || is_visible(a.terms, x); });
    if (!visible) continue;
    __syncthreads();  // the last tile's weights, the queries
    for (int first = key_group; first < kTile; first += kKeyGroups * kBatch) {
      float dots[R][kBatch];
#pragma unroll
      for (int r = 0; r < R; ++r)
#pragma unroll
        for (int u = 0; u < kBatch; ++u) dots[r][u] = 0;
      for (int d = lane * vector; content && d < plan.padded_d; d += kLanes * vector) {
        Pack<T> key[kBatch];
#pragma unroll
        for (int u = 0; u < kBatch; ++u) {
          const int at = first + u * kKeyGroups;
          key[u] = load_some(w.k.at<T>(b, g, j0 + at) + d, at < keys ? min(D - d, vector) : 0, plan.aligned_k);
        }
#pragma unroll
        for (int r = 0; r < R; ++r)
#pragma unroll
          for (int i = 0; i < vector; ++i) {
            const float x = queries[r * plan.padded_d + d + i];
#pragma unroll
            for (int u = 0; u < kBatch; ++u) dots[r][u] = fmaf(x, key[u].values[i], dots[r][u]);
          }
      }
#pragma unroll
      for (int r = 0; r < R; ++r)
#pragma unroll
        for (int u = 0; u < kBatch; ++u) {
#pragma unroll
          for (int step = kLanes / 2; step > 0; step /= 2) dots[r][u] += __shfl_xor_sync(0xffffffffu, dots[r][u], step);
          if (lane == u) scores[r][first + u * kKeyGroups] = __fmul_rn(dots[r][u], a.beta);
        }
    }
    __syncthreads();
    if (!a.terms.empty()) {
      for_heads(j0, j0 + keys, [&](int r, const ScoreBlock& x) {
        if (!all_idle(a.terms, x)) apply_terms(a.terms, x, {scores[r], kTile, 1});
      });
      __syncthreads();
    }
    for (int r = thread / 32; r < rows; r += kBlockThreads / 32) {
      const int first = thread % 32;
      float s[2];
#pragma unroll
      for (int half = 0; half < 2; ++half) s[half] = first + 32 * half < keys ? scores[r][first + 32 * half] : -HUGE_VALF;
      const float before = row_max[r], highest = fmaxf(before, warp_max(fmaxf(s[0], s[1])));
      const bool nothing = highest == -HUGE_VALF;
#pragma unroll
      for (float& x : s) x = nothing ? 0.0f : a.hard ? (x == highest ? 1.0f : 0.0f) : weight_of<T>(x - highest);
      const float factor = highest == before ? 1.0f : a.hard ? 0.0f : weight_of<T>(before - highest), sum = warp_sum(s[0] + s[1]);
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int key = first + 32 * half;
        scores[r][key] = s[half] * (a.dropout > 0 && key < keys ? keep_factor(a, first_at + r, j0 + key) : 1.0f);
      }
      __syncwarp();
      if (first == 0) {
        row_max[r] = highest;
        row_sum[r] = row_sum[r] * factor + sum;
        rescale[r] = factor;
      }
    }
    __syncthreads();
    if (sharer < sharers) {
#pragma unroll
      for (int r = 0; r < R; ++r)
#pragma unroll
        for (int i = 0; i < vector; ++i) sums[r][i] *= r < rows ? rescale[r] : 1.0f;
      const T* values = w.v.at<T>(b, g, j0) + first_column + column;
#pragma unroll 4
      for (int key = sharer; key < keys; key += sharers) {
        const Pack<T> v = load_some(values + key * w.v.token, columns - column, plan.aligned_v);
#pragma unroll
        for (int r = 0; r < R; ++r) {
          const float weight = r < rows ? scores[r][key] : 0.0f;
#pragma unroll
          for (int i = 0; i < vector; ++i) sums[r][i] = fmaf(weight, v.values[i], sums[r][i]);
        }
      }
    }
  }

  float *all_sums = static_cast<float*>(w.workspace), *all_max = all_sums + z.B * z.H * z.N * split.chunks * z.E,
        *all_totals = all_max + z.B * z.H * z.N * split.chunks;
#pragma unroll
  for (int r = 0; r < R; ++r) {
    if (r >= rows) break;
    __syncthreads();
    if (sharer < sharers)
#pragma unroll
      for (int i = 0; i < vector; ++i) joined[(sharer * vectors * vector) + column + i] = sums[r][i];
    __syncthreads();
    const int64_t at = first_at + r;
    const float share = row_sum[r] > 0 ? 1 / row_sum[r] : 0.0f;
    for (int e = thread; e < columns; e += kBlockThreads) {
      float total = 0;
      for (int other = 0; other < sharers; ++other) total += joined[other * vectors * vector + e];
      if (split.chunks == 1)
        store(static_cast<T*>(w.out) + at * z.E + first_column + e, total * share);
      else
        all_sums[(at * split.chunks + chunk) * z.E + first_column + e] = total;
    }
    if (thread != 0 || blockIdx.y != 0) continue;
    if (split.chunks > 1) {
      all_max[at * split.chunks + chunk] = row_max[r];
      all_totals[at * split.chunks + chunk] = row_sum[r];
      continue;
    }
    if (w.log_sum) w.log_sum[at] = row_sum[r] > 0 ? row_max[r] + logf(row_sum[r]) : HUGE_VALF;
    if (w.peak) {
      w.peak[2 * at] = row_max[r];
      w.peak[2 * at + 1] = share;
    }
  }
}

// A block per query: its chunks, in order.
template <class T>
__global__ void __launch_bounds__(kBlockThreads) join_kernel(const __grid_constant__ FewQueriesPlan plan) {
  const FewQueriesForward& w = plan.args;
  const AttentionSizes& z = w.scores.sizes;
  const int64_t chunks = plan.split.chunks, at = blockIdx.x, rows = z.B * z.H * z.N;
  const float *sums = static_cast<const float*>(w.workspace) + at * chunks * z.E,
              *largest = static_cast<const float*>(w.workspace) + rows * chunks * z.E + at * chunks, *totals = largest + rows * chunks;
  float row_max = -HUGE_VALF, row_sum = 0;
  for (int64_t c = 0; c < chunks; ++c) row_max = fmaxf(row_max, largest[c]);
  const auto rescale = [&](int64_t c) { return largest[c] == row_max ? 1.0f : w.scores.hard ? 0.0f : weight_of<T>(largest[c] - row_max); };
  for (int64_t c = 0; c < chunks; ++c) row_sum = fmaf(totals[c], rescale(c), row_sum);
  const float share = row_sum > 0 ? 1 / row_sum : 0.0f;
  for (int64_t e = threadIdx.x; e < z.E; e += kBlockThreads) {
    float sum = 0;
    for (int64_t c = 0; c < chunks; ++c) sum = fmaf(sums[c * z.E + e], rescale(c), sum);
    store(static_cast<T*>(w.out) + at * z.E + e, sum * share);
  }
  if (threadIdx.x != 0) return;
  if (w.log_sum) w.log_sum[at] = row_sum > 0 ? row_max + logf(row_sum) : HUGE_VALF;
  if (w.peak) {
    w.peak[2 * at] = row_max;
    w.peak[2 * at + 1] = share;
  }
}

template <class T>
void few_queries_of(const FewQueriesForward& args) {
  const AttentionSizes& z = args.scores.sizes;
  constexpr int64_t vector = Pack<T>::kCount;
  const FewQueriesPlan plan{.args = args,
                            .split = CudaFewQueriesSplit(z),
                            .padded_d = static_cast<int>(divide_up(z.D, kLanes * vector) * kLanes * vector),
                            .aligned_k = is_aligned<T>(args.k),
                            .aligned_v = is_aligned<T>(args.v)};
  const dim3 grid(static_cast<unsigned>(z.B * z.G * plan.split.row_tiles * plan.split.chunks),
                  static_cast<unsigned>(std::max<int64_t>(1, divide_up<int64_t>(z.E, kVectorThreads * vector))));
  const size_t shared = static_cast<size_t>(plan.split.rows_at_once * plan.padded_d) * sizeof(float);
  switch (plan.split.rows_at_once) {
    case 1: start(few_queries_kernel<T, 1>, grid, kBlockThreads, shared, plan); break;
    case 2: start(few_queries_kernel<T, 2>, grid, kBlockThreads, shared, plan); break;
    case 4: start(few_queries_kernel<T, 4>, grid, kBlockThreads, shared, plan); break;
    default: start(few_queries_kernel<T, 8>, grid, kBlockThreads, shared, plan);
  }
  if (plan.split.chunks > 1) start(join_kernel<T>, static_cast<unsigned>(z.B * z.H * z.N), kBlockThreads, 0, plan);
}

}  // namespace

void few_queries_forward(const FewQueriesForward& args) {
  const AttentionSizes& z = args.scores.sizes;
  if (z.B * z.H * z.N == 0) return;
  with_storage(args.dtype, [&](auto type) { few_queries_of<decltype(type)>(args); });
}

}  // namespace heed::cuda
