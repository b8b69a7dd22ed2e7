// Attention on GPUs, forward: flash-style (Dao et al. 2022). A block owns 64 queries of a head and up to 128 columns of their outputs, and
// goes over the keys in tiles of 64; a running maximum and sum make the softmax exact.
#include "heed/attention/hopper_attention.h"
#include "heed/attention/score_tile.cuh"
#include "heed/attention/tile_memory.cuh"
#include "heed/cuda/launch.cuh"

namespace heed::cuda {
namespace {

struct ForwardPlan {
  AttentionForward args;
  OperandPlan q{}, k{}, v{};
  int tile_at = 0, kept_at = 0;  // bytes: scores, dropout
  bool aligned_out = false;
};

// A row of scores becomes weights, its sums are rescaled.
template <class T, int W>
__device__ void weight_rows(float (&s)[2][16], float (&row_max)[2], float (&row_sum)[2], float (&out)[2][W / 4], bool hard) {
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    float highest = row_max[r];
#pragma unroll
    for (int n = 0; n < 16; ++n) highest = fmaxf(highest, s[r][n]);
    highest = fmaxf(highest, __shfl_xor_sync(0xffffffffu, highest, 1));
    highest = fmaxf(highest, __shfl_xor_sync(0xffffffffu, highest, 2));
    const bool nothing = highest == -HUGE_VALF;  // every key so far is masked
    const float rescale = highest == row_max[r] ? 1.0f : hard ? 0.0f : weight_of<T>(row_max[r] - highest);
    float sum = 0;
#pragma unroll
    for (int n = 0; n < 16; ++n) {
      s[r][n] = nothing ? 0.0f : hard ? (s[r][n] == highest ? 1.0f : 0.0f) : weight_of<T>(s[r][n] - highest);
      sum += s[r][n];
    }
    row_sum[r] = row_sum[r] * rescale + sum;
    row_max[r] = highest;
#pragma unroll
    for (int n = 0; n < W / 4; ++n) out[r][n] *= rescale;
  }
}

template <class T, int W>
__global__ void __launch_bounds__(kBlockThreads, 2) forward_kernel(const __grid_constant__ ForwardPlan plan) {
  extern __shared__ __align__(16) char memory[];
  const AttentionForward& w = plan.args;
  const ScoreArgs& a = w.scores;
  const AttentionSizes& z = a.sizes;
  const int64_t tiles = (z.N + kTile - 1) / kTile, head = blockIdx.x / tiles, tile = tiles - 1 - blockIdx.x % tiles;  // long rows first
  const int64_t b = head / z.H, h = head % z.H, g = h / (z.H / z.G), i0 = tile * kTile, i1 = min(z.N, i0 + kTile);
  const int first_column = blockIdx.y * W, rows = static_cast<int>(i1 - i0);
  float* scores = reinterpret_cast<float*>(memory + plan.tile_at);
  uint64_t* kept = reinterpret_cast<uint64_t*>(memory + plan.kept_at);

  Operand<T> q = plan.q.operand<T>(memory, w.q, static_cast<int>(z.D)), k = plan.k.operand<T>(memory, w.k, static_cast<int>(z.D)),
             v = plan.v.operand<T>(memory, w.v, static_cast<int>(min(z.E - first_column, int64_t{W})));
  const bool content = a.beta != 0;
  const auto block = [&](int64_t j0) { return a.block(b, h, i0, i1, j0, min(z.M, j0 + kTile)); };
  const KeyRange range = visible_keys(a.terms, a.block(b, h, i0, i1, 0, z.M));
  const auto next_tile = [&](int64_t j0) {  // the first from j0 on that is not masked as a whole
    while (j0 < range.end && !is_visible(a.terms, block(j0))) j0 += kTile;
    return j0;
  };
  const auto start_keys = [&](int64_t j0) {
    if (j0 < range.end && content) {
      k.take(w.k.at<T>(b, g, j0), static_cast<int>(min(z.M - j0, int64_t{kTile})));
      k.start();
    }
    end_group();
  };
  const auto start_values = [&](int64_t j0) {
    if (j0 < range.end) {
      v.take(w.v.at<T>(b, g, j0) + first_column, static_cast<int>(min(z.M - j0, int64_t{kTile})));
      v.start();
    }
    end_group();
  };

  float out[2][W / 4], row_max[2] = {-HUGE_VALF, -HUGE_VALF}, row_sum[2] = {0, 0};
#pragma unroll
  for (int r = 0; r < 2; ++r)
#pragma unroll
    for (int n = 0; n < W / 4; ++n) out[r][n] = 0;

  int64_t j0 = next_tile(range.first / kTile * kTile);
  q.take(w.q.at<T>(b, h, i0), rows);
  if (content) q.start();
  start_keys(j0);  // one group with the queries
  start_values(j0);
  while (j0 < range.end) {
    const ScoreBlock x = block(j0);
    if (a.dropout > 0) draw_dropout(a, b, h, i0, j0, kept);
    wait_for_copies<1>();
    __syncthreads();
    float s[2][16] = {};
    if (content) multiply_operands(s, q, k);
#pragma unroll
    for (int r = 0; r < 2; ++r)
#pragma unroll
      for (int n = 0; n < 16; ++n) s[r][n] = __fmul_rn(s[r][n], a.beta);
    const int64_t next = next_tile(j0 + kTile);
    __syncthreads();
    start_keys(next);
    if (!all_idle(a.terms, x)) {
      store_scores<T>(s, scores);
      __syncthreads();
      apply_terms(a.terms, x, {scores, kScoreStride, 1});
      __syncthreads();
      load_scores<T>(s, scores);
    }
    if (x.keys() < kTile) {
#pragma unroll
      for (int n = 0; n < 16; ++n)
        if (score_column<T>(n) >= x.keys()) s[0][n] = s[1][n] = -HUGE_VALF;
    }
    weight_rows<T, W>(s, row_max, row_sum, out, a.hard);
    if (a.dropout > 0) {
      const float factor = 1 / (1 - a.dropout);
#pragma unroll
      for (int r = 0; r < 2; ++r)
#pragma unroll
        for (int n = 0; n < 16; ++n) s[r][n] *= dropout_factor(kept, tile_row(r), score_column<T>(n), factor);
    }
    store_weights<T>(s, scores);
    wait_for_copies<1>();
    __syncthreads();
    multiply_operand<W>(out, s, scores, v, 0);
    __syncthreads();
    start_values(next);
    j0 = next;
  }
  wait_for_copies();

  float share[2];
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    float total = row_sum[r];
    total += __shfl_xor_sync(0xffffffffu, total, 1);
    total += __shfl_xor_sync(0xffffffffu, total, 2);
    share[r] = total > 0 ? 1 / total : 0.0f;
    if (blockIdx.y == 0 && threadIdx.x % 4 == 0 && tile_row(r) < rows) {
      const int64_t at = head * z.N + i0 + tile_row(r);
      if (w.log_sum) w.log_sum[at] = total > 0 ? row_max[r] + logf(total) : HUGE_VALF;
      if (w.peak) {
        w.peak[2 * at] = row_max[r];
        w.peak[2 * at + 1] = share[r];
      }
    }
  }
  store_rows<W>(out, share, w.out.at<T>(b, h, i0), w.out.token, rows, first_column, static_cast<int>(z.E), plan.aligned_out);
}

template <class T, int W>
void forward_of(const AttentionForward& args) {
  const AttentionSizes& z = args.scores.sizes;
  ForwardPlan plan{.args = args};
  TileMemory<T> memory;
  // An f32 tile of weights is read as an operand, a tile of scores is needed by terms.
  plan.tile_at = memory.take(sizeof(T) == 4 || !args.scores.terms.empty() ? kTile * kScoreStride * sizeof(float) : 0);
  plan.kept_at = memory.take(args.scores.dropout > 0 ? kTile * sizeof(uint64_t) : 0);
  memory.place({{plan.v, args.v, std::min<int64_t>(z.E, W), 1}, {plan.k, args.k, z.D, 1}, {plan.q, args.q, z.D, 0}});
  plan.aligned_out = is_aligned<T>(args.out);
  const int64_t tiles = divide_up<int64_t>(z.N, kTile), column_blocks = std::max<int64_t>(1, divide_up<int64_t>(z.E, W));
  start(forward_kernel<T, W>, dim3(static_cast<unsigned>(z.B * z.H * tiles), static_cast<unsigned>(column_blocks)), kBlockThreads,
        memory.bytes(), plan);
}

}  // namespace

void attention_forward(const AttentionForward& args) {
  const AttentionSizes& z = args.scores.sizes;
  if (z.B * z.H * z.N == 0) return;
  if (!args.scores.hard && hopper_attention_forward(args)) return;
  with_storage(args.dtype, [&](auto type) {
    using T = decltype(type);
    z.E <= 64 ? forward_of<T, 64>(args) : forward_of<T, 128>(args);
  });
}

}  // namespace heed::cuda
