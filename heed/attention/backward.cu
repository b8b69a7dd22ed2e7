// Attention on GPUs, backward: scores are computed again, tile by tile. One kernel owns tiles of queries: gradients of queries and of
// terms; the other owns tiles of keys: gradients of keys and values. Neither needs atomics.
#include "heed/attention/hopper_attention.h"
#include "heed/attention/score_tile.cuh"
#include "heed/attention/term_gradients.cuh"
#include "heed/attention/tile_memory.cuh"
#include "heed/cuda/launch.cuh"

namespace heed::cuda {
namespace {

struct BackwardPlan {
  AttentionBackward args;
  OperandPlan q{}, k{}, v{}, g{};
  int tile_at = 0, raw_at = 0, kept_at = 0, rows_at = 0,
      scratch_at = 0;                       // bytes: scores, scores before the terms, dropout, QueryNumbers, TermScratch
  bool nonlinear = false, learned = false;  // terms
  bool aligned_dq = false, aligned_dk = false, aligned_dv = false;
};

// What backward reads of a query: log_sum, delta, peak and share.
struct QueryNumbers {
  float log_sum = HUGE_VALF, delta = 0, peak = 0, share = 0;  // no weight: as for rows after the last one

  QueryNumbers() = default;
  __device__ QueryNumbers(const AttentionBackward& w, int64_t at) {
    if (w.delta) {
      log_sum = w.log_sum[at];
      delta = w.delta[at];
    } else if (!w.scores.hard) {
      log_sum = w.log_sum[at];
    }
    if (w.scores.hard) {
      peak = w.peak[2 * at];
      share = w.peak[2 * at + 1];
    }
  }
};

template <int count>
__device__ void clear(float (&x)[2][count]) {
#pragma unroll
  for (int r = 0; r < 2; ++r)
#pragma unroll
    for (int n = 0; n < count; ++n) x[r][n] = 0;
}

template <int count>
__device__ void scale(float (&x)[2][count], float factor) {
#pragma unroll
  for (int r = 0; r < 2; ++r)
#pragma unroll
    for (int n = 0; n < count; ++n) x[r][n] = __fmul_rn(x[r][n], factor);
}

// Scores after the terms; before them, `raw` gets those where a term is not linear.
template <class T>
__device__ void finish_scores(float (&s)[2][16], const ScoreArgs& a, const ScoreBlock& x, ScoreTile tile, float* raw) {
  scale(s, a.beta);
  if (all_idle(a.terms, x)) return;
  if (raw) store_scores<T>(s, raw);
  store_scores<T>(s, tile.data);
  __syncthreads();
  apply_terms(a.terms, x, tile);
  __syncthreads();
  load_scores<T>(s, tile.data);
}

// A score becomes a weight, the gradient of a weight that of a score. factor: of dropout.
template <class T>
__device__ void weight_score(float& s, float& d, const QueryNumbers& query, bool hard, float factor) {
  const float soft = weight_of<T>(s - query.log_sum);
  s = factor * (hard ? (s == query.peak ? query.share : 0.0f) : soft);
  d = soft * (factor * d - query.delta);
}

template <class T, int W>
__global__ void __launch_bounds__(kBlockThreads, 2) query_gradient_kernel(const __grid_constant__ BackwardPlan plan) {
  extern __shared__ __align__(16) char memory[];
  const AttentionBackward& w = plan.args;
  const ScoreArgs& a = w.scores;
  const AttentionSizes& z = a.sizes;
  const int64_t head = blockIdx.x / w.query_parts, part = blockIdx.x % w.query_parts;
  const int64_t b = head / z.H, h = head % z.H, key_head = h / (z.H / z.G);
  const int first_column = blockIdx.y * W, D = static_cast<int>(z.D), E = static_cast<int>(z.E);
  const ScoreTile tile{reinterpret_cast<float*>(memory + plan.tile_at), kScoreStride, 1},
      raw{reinterpret_cast<float*>(memory + plan.raw_at), kScoreStride, 1};
  uint64_t* kept = reinterpret_cast<uint64_t*>(memory + plan.kept_at);
  TermScratch& scratch = *reinterpret_cast<TermScratch*>(memory + plan.scratch_at);
  Operand<T> q = plan.q.operand<T>(memory, w.q, D), k = plan.k.operand<T>(memory, w.k, D), v = plan.v.operand<T>(memory, w.v, E),
             g = plan.g.operand<T>(memory, w.g, E);
  const bool content = a.beta != 0, learned = plan.learned && blockIdx.y == 0;
  const float keep_factor = 1 / (1 - a.dropout);

  for (int64_t i0 = part * kTile; i0 < z.N; i0 += w.query_parts * kTile) {
    const int64_t i1 = min(z.N, i0 + kTile);
    const int rows = static_cast<int>(i1 - i0);
    __syncthreads();
    q.take(w.q.at<T>(b, h, i0), rows);
    g.take(w.g.at<T>(b, h, i0), rows);
    if (content) q.start();
    g.start();
    QueryNumbers query[2];
#pragma unroll
    for (int r = 0; r < 2; ++r)
      if (tile_row(r) < rows) query[r] = QueryNumbers(w, head * z.N + i0 + tile_row(r));
    float dq[2][W / 4];
    clear(dq);
    const KeyRange range = visible_keys(a.terms, a.block(b, h, i0, i1, 0, z.M));
    for (int64_t j0 = range.first / kTile * kTile; j0 < range.end; j0 += kTile) {
      const ScoreBlock x = a.block(b, h, i0, i1, j0, min(z.M, j0 + kTile));
      if (!is_visible(a.terms, x)) continue;
      const int keys = static_cast<int>(x.keys());
      k.take(w.k.at<T>(b, key_head, j0), keys);
      v.take(w.v.at<T>(b, key_head, j0), keys);
      if (content) k.start();
      v.start();
      end_group();
      if (a.dropout > 0) draw_dropout(a, b, h, i0, j0, kept);
      wait_for_copies();
      __syncthreads();
      float s[2][16], d[2][16];
      clear(s);
      if (content) multiply_operands(s, q, k);
      finish_scores<T>(s, a, x, tile, plan.nonlinear ? raw.data : nullptr);
      multiply_operands(d, g, v);
#pragma unroll
      for (int r = 0; r < 2; ++r)
#pragma unroll
        for (int n = 0; n < 16; ++n) {
          const int key = score_column<T>(n);
          const float factor = a.dropout > 0 ? dropout_factor(kept, tile_row(r), key, keep_factor) : 1.0f;
          if (key >= keys) s[r][n] = -HUGE_VALF;
          weight_score<T>(s[r][n], d[r][n], query[r], a.hard, factor);
        }
      if (plan.nonlinear || learned) {
        __syncthreads();
        store_scores<T>(d, tile.data);
        __syncthreads();
        unapply_terms(w, x, part, raw, tile, scratch);
        __syncthreads();
        load_scores<T>(d, tile.data);
      }
      if (content) {
        scale(d, a.beta);
        store_weights<T>(d, tile.data);
        multiply_operand<W>(dq, d, tile.data, k, first_column);
      }
      __syncthreads();
    }
    wait_for_copies();
    const float one[2] = {1, 1};
    if (content) store_rows<W>(dq, one, w.dq.at<T>(b, h, i0), w.dq.token, rows, first_column, D, plan.aligned_dq);
  }
}

template <class T, int W>
__global__ void __launch_bounds__(kBlockThreads, 2) key_gradient_kernel(const __grid_constant__ BackwardPlan plan) {
  extern __shared__ __align__(16) char memory[];
  const AttentionBackward& w = plan.args;
  const ScoreArgs& a = w.scores;
  const AttentionSizes& z = a.sizes;
  const int64_t tiles = (z.M + kTile - 1) / kTile, head = blockIdx.x / tiles, j0 = blockIdx.x % tiles * kTile, j1 = min(z.M, j0 + kTile);
  const int64_t b = head / z.G, key_head = head % z.G, group = z.H / z.G;
  const int first_column = blockIdx.y * W, D = static_cast<int>(z.D), E = static_cast<int>(z.E), keys = static_cast<int>(j1 - j0);
  const ScoreTile tile{reinterpret_cast<float*>(memory + plan.tile_at), 1, kScoreStride},
      raw{reinterpret_cast<float*>(memory + plan.raw_at), 1, kScoreStride};
  uint64_t* kept = reinterpret_cast<uint64_t*>(memory + plan.kept_at);
  QueryNumbers* queries = reinterpret_cast<QueryNumbers*>(memory + plan.rows_at);
  Operand<T> q = plan.q.operand<T>(memory, w.q, D), k = plan.k.operand<T>(memory, w.k, D), v = plan.v.operand<T>(memory, w.v, E),
             g = plan.g.operand<T>(memory, w.g, E);
  const bool content = a.beta != 0;
  const float keep_factor = 1 / (1 - a.dropout);

  k.take(w.k.at<T>(b, key_head, j0), keys);
  v.take(w.v.at<T>(b, key_head, j0), keys);
  if (content) k.start();
  if (w.delta) v.start();
  float dk[2][W / 4], dv[2][W / 4];
  clear(dk);
  clear(dv);
  for (int64_t h = key_head * group; h < (key_head + 1) * group; ++h)
    for (int64_t i0 = 0; i0 < z.N; i0 += kTile) {
      const int64_t i1 = min(z.N, i0 + kTile);
      const ScoreBlock x = a.block(b, h, i0, i1, j0, j1);
      if (!is_visible(a.terms, x)) continue;
      const int rows = static_cast<int>(i1 - i0);
      __syncthreads();
      q.take(w.q.at<T>(b, h, i0), rows);
      g.take(w.g.at<T>(b, h, i0), rows);
      if (content) q.start();
      g.start();
      end_group();
      if (a.dropout > 0) draw_dropout(a, b, h, i0, j0, kept);
      if (const int row = threadIdx.x; row < kTile)
        queries[row] = row < rows ? QueryNumbers(w, (b * z.H + h) * z.N + i0 + row) : QueryNumbers();
      wait_for_copies();
      __syncthreads();
      float s[2][16], d[2][16];  // (keys, queries)
      clear(s);
      clear(d);
      if (content) multiply_operands(s, k, q);
      finish_scores<T>(s, a, x, tile, plan.nonlinear ? raw.data : nullptr);
      if (w.delta) multiply_operands(d, v, g);
#pragma unroll
      for (int n = 0; n < 16; ++n) {
        const int row = score_column<T>(n);
        const QueryNumbers query = queries[row];
#pragma unroll
        for (int r = 0; r < 2; ++r) {
          const float factor = a.dropout > 0 ? dropout_factor(kept, row, tile_row(r), keep_factor) : 1.0f;
          weight_score<T>(s[r][n], d[r][n], query, a.hard, factor);
        }
      }
      store_weights<T>(s, tile.data);
      multiply_operand<W>(dv, s, tile.data, g, first_column);
      if (!w.delta || !content) continue;
      if (plan.nonlinear) {
        __syncthreads();
        store_scores<T>(d, tile.data);
        __syncthreads();
        for (int index = 0; index < a.terms.count; ++index) multiply_slopes(a.terms, index, x, raw, tile);
        __syncthreads();
        load_scores<T>(d, tile.data);
      }
      scale(d, a.beta);
      store_weights<T>(d, tile.data);
      multiply_operand<W>(dk, d, tile.data, q, first_column);
    }
  wait_for_copies();
  const float one[2] = {1, 1};
  store_rows<W>(dk, one, w.dk.at<T>(b, key_head, j0), w.dk.token, keys, first_column, D, plan.aligned_dk);
  store_rows<W>(dv, one, w.dv.at<T>(b, key_head, j0), w.dv.token, keys, first_column, E, plan.aligned_dv);
}

template <class T>
struct BackwardLaunch {
  BackwardPlan plan;
  TileMemory<T> memory{};

  explicit BackwardLaunch(const AttentionBackward& args) : plan{.args = args} {
    const ScoreArgs& a = args.scores;
    plan.nonlinear = nonlinear_terms(a.terms) > 0;
    for (const auto& sinks : args.sinks) plan.learned = plan.learned || sinks[0].data;
    plan.aligned_dq = is_aligned<T>(args.dq);
    plan.aligned_dk = is_aligned<T>(args.dk);
    plan.aligned_dv = is_aligned<T>(args.dv);
    plan.tile_at = memory.take(sizeof(T) == 4 || !a.terms.empty() ? kTile * kScoreStride * sizeof(float) : 0);
    plan.raw_at = memory.take(plan.nonlinear ? kTile * kScoreStride * sizeof(float) : 0);
    plan.kept_at = memory.take(a.dropout > 0 ? kTile * sizeof(uint64_t) : 0);
  }

  template <int W>
  void query_gradient() {
    const AttentionBackward& w = plan.args;
    const AttentionSizes& z = w.scores.sizes;
    plan.scratch_at = memory.take(plan.nonlinear || plan.learned ? sizeof(TermScratch) : 0);
    memory.place({{plan.k, w.k, z.D, 1}, {plan.v, w.v, z.E, 1}, {plan.q, w.q, z.D, 0}, {plan.g, w.g, z.E, 0}});
    const int64_t column_blocks = w.scores.beta == 0 ? 1 : std::max<int64_t>(1, divide_up<int64_t>(z.D, W));
    start(query_gradient_kernel<T, W>, dim3(static_cast<unsigned>(z.B * z.H * w.query_parts), static_cast<unsigned>(column_blocks)),
          kBlockThreads, memory.bytes(), plan);
  }
  template <int W>
  void key_gradient() {
    const AttentionBackward& w = plan.args;
    const AttentionSizes& z = w.scores.sizes;
    plan.rows_at = memory.take(kTile * sizeof(QueryNumbers));
    memory.place({{plan.q, w.q, z.D, 1}, {plan.g, w.g, z.E, 1}, {plan.k, w.k, z.D, 0}, {plan.v, w.v, z.E, 0}});
    const int64_t column_blocks = std::max<int64_t>(1, divide_up<int64_t>(std::max(z.D, z.E), W));
    start(key_gradient_kernel<T, W>,
          dim3(static_cast<unsigned>(z.B * z.G * divide_up<int64_t>(z.M, kTile)), static_cast<unsigned>(column_blocks)), kBlockThreads,
          memory.bytes(), plan);
  }
};

}  // namespace

void attention_backward(const AttentionBackward& args) {
  const AttentionSizes& z = args.scores.sizes;
  if (z.B * z.M == 0) return;
  if (!args.scores.hard && hopper_attention_backward(args)) return;
  with_storage(args.dtype, [&](auto type) {
    using T = decltype(type);
    BackwardLaunch<T> of_keys(args);
    std::max(z.D, z.E) <= 64 ? of_keys.template key_gradient<64>() : of_keys.template key_gradient<128>();
    BackwardLaunch<T> of_queries(args);
    if (z.H * z.N == 0 || !args.delta || (args.scores.beta == 0 && !of_queries.plan.learned)) return;
    z.D <= 64 ? of_queries.template query_gradient<64>() : of_queries.template query_gradient<128>();
  });
}

}  // namespace heed::cuda
