// Linear attention on GPUs, in chunks of 64 tokens as on the CPU (linear_attention_cpu.cc has the formulas): features of all tokens first,
// then sums over segments of keys, sums of everything before each segment, and chunks of queries, which all run in parallel.
#include "heed/attention/linear_attention_features.cuh"
#include "heed/attention/linear_attention_tile.cuh"

namespace heed::cuda {
namespace {

// The largest gain so far; without a mask, all queries see the largest of all. A block per key head.
__global__ void __launch_bounds__(kLinearThreads) largest_gain_kernel(const __grid_constant__ LinearPlan w) {
  __shared__ float of_warps[kLinearThreads / 32];
  const int64_t head = blockIdx.x, M = w.in.sizes.M, keys = w.keys_of(head);
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  float* tops = w.in.largest_gain + head * (M + 1);
  float before = tops[0];
  for (int64_t j0 = 0; j0 < M; j0 += kLinearThreads) {
    const int64_t j = j0 + threadIdx.x;
    float top = j < keys ? w.in.gains[head * M + j] : -HUGE_VALF;
#pragma unroll
    for (int step = 1; step < 32; step *= 2) {
      const float other = __shfl_up_sync(kFullWarp, top, step);
      if (lane >= step) top = fmaxf(top, other);
    }
    if (lane == 31) of_warps[warp] = top;
    __syncthreads();
    for (int other = 0; other < kLinearThreads / 32; ++other) {
      if (other < warp) top = fmaxf(top, of_warps[other]);
    }
    top = fmaxf(top, before);
    if (j < M) tops[j + 1] = top;
    for (int other = 0; other < kLinearThreads / 32; ++other) before = fmaxf(before, of_warps[other]);
    __syncthreads();
  }
  if (!w.in.sizes.causal)
    for (int64_t j = threadIdx.x; j < M; j += kLinearThreads) tops[j + 1] = before;
}

__global__ void __launch_bounds__(kLinearThreads) key_sums_kernel(const __grid_constant__ LinearPlan w) {
  __shared__ ProductTiles tiles;
  const LinearAttentionSizes& z = w.in.sizes;
  FlatPlace place(blockIdx.x);
  const int64_t e0 = place.take(tiles_of(z.E)) * kSide, r0 = place.take(tiles_of(z.R)) * kSide,
                segment = place.take(w.in.layout.keys.segments), head = place.rest;
  const int64_t tokens = w.in.layout.keys.segment_tokens, begin = segment * tokens, end = min(z.M, begin + tokens);
  const int64_t depth = max(int64_t{0}, min(end, w.keys_of(head)) - begin), at = head * z.M + begin;
  const float top = w.top_after(head, end);
  sum_rows(
      w, w.state_at(head, segment + 1), r0, e0, depth, [&](int64_t k) { return w.c + (at + k) * z.R; },
      [&](int64_t k) { return w.in.v + (at + k) * z.E; }, [&](int64_t k) { return w.rescale(w.gain(head, begin + k) - top); },
      [](int64_t) { return 1.0f; }, tiles);
}

// Sums of everything before each segment of keys, the first being an input.
__global__ void __launch_bounds__(kLinearThreads) join_key_sums_kernel(const __grid_constant__ LinearPlan w, int64_t blocks) {
  const int64_t head = blockIdx.x / blocks, i = blockIdx.x % blocks * kLinearThreads + threadIdx.x,
                tokens = w.in.layout.keys.segment_tokens;
  if (i >= w.in.layout.width_r * (w.in.layout.width_e + 1)) return;
  float before = w.state_at(head, 0)[i];
  for (int64_t s = 0; s < w.in.layout.keys.segments; ++s) {
    const float share = w.rescale(w.top_after(head, s * tokens) - w.top_after(head, (s + 1) * tokens));
    float* after = w.state_at(head, s + 1) + i;
    *after = before = fmaf(before, share, *after);
  }
}

__global__ void __launch_bounds__(kLinearThreads) answer_kernel(const __grid_constant__ LinearPlan w) {
  __shared__ ProductTiles tiles;
  __shared__ ChunkWeights weights;
  __shared__ float totals[kSide], rescales[kSide];
  const LinearAttentionSizes& z = w.in.sizes;
  const QueryPlace at(w, z.E);
  const Chunk& x = at.x;
  const int64_t row = x.h * z.N + x.first;
  const float *a = w.a + row * z.R, *state = w.state_at(x.head, at.slot), *last = w.last_column(state);
  const float *c = w.c + (x.head * z.M + x.first) * z.R, *v = w.in.v + (x.head * z.M + x.first) * z.E;
  if (x.keys > 0)
    weigh_chunk(
        w, x, a, c, z.R, [](int) { return 0.0f; }, tiles, weights);
  {  // four threads per query
    const int i = threadIdx.x / 4, part = threadIdx.x % 4;
    const float rescale = i < x.rows ? w.rescale(at.before - w.query_top(x.head, x.first + i)) : 0.0f;
    float far = 0, near = 0;
    for (int64_t r = part; i < x.rows && r < z.R; r += 4) far = fmaf(a[i * z.R + r], last[r], far);
    for (int j = part; i < x.rows && j < x.keys; j += 4) near += weights.values[i][j];
    float total = fmaf(far, rescale, near);
    total += __shfl_xor_sync(kFullWarp, total, 1);
    total += __shfl_xor_sync(kFullWarp, total, 2);
    if (part == 0) {
      totals[i] = total;
      rescales[i] = rescale;
      if (at.column == 0 && i < x.rows) w.new_total[row + i] = total;
    }
  }
  __syncthreads();
  const int columns = static_cast<int>(min(int64_t{kSide}, z.E - at.column));
  TileSums sums = {};
  add_product<Order::by_depth, Order::by_side>(
      sums, tiles, x.rows, columns, z.R, [&](int m, int64_t k) { return a[m * z.R + k] * rescales[m]; },
      [&](int64_t k, int n) { return state[k * w.in.layout.width_e + at.column + n]; });
  add_product<Order::by_side, Order::by_side>(
      sums, tiles, x.rows, columns, x.keys, [&](int m, int64_t k) { return weights.values[m][k]; },
      [&](int64_t k, int n) { return v[k * z.E + at.column + n]; });
  for_own(sums, x.rows, columns, [&](int m, int n, float value) {
    w.new_out[(row + m) * z.E + at.column + n] = totals[m] >= kLeastTotal ? value / totals[m] : 0.0f;
  });
}
}  // namespace

void linear_attention_forward(const LinearAttentionForward& args) {
  const LinearAttentionArgs& in = args.in;
  const LinearAttentionSizes& z = in.sizes;
  const LinearAttentionLayout& layout = in.layout;
  const int64_t heads = z.B * z.G;
  float* const c = static_cast<float*>(args.workspace);
  LinearPlan w{.in = in};
  w.c = c;
  w.a = c + heads * z.M * z.R;
  w.new_out = args.out;
  w.new_total = args.total;
  compute_features(in, {in.k, w.c, in.gains, heads * z.M});
  if (in.gains) start_tasks(largest_gain_kernel, heads, w);
  start_tasks(key_sums_kernel, heads * layout.keys.segments * tiles_of(z.R) * tiles_of(z.E), w);
  const int64_t blocks = divide_up<int64_t>(layout.state(), kLinearThreads);
  start_tasks(join_key_sums_kernel, heads * blocks, w, blocks);
  if (!in.q) return;
  compute_features(in, {in.q, w.a, nullptr, z.B * z.H * z.N});
  start_tasks(answer_kernel, z.B * z.H * divide_up<int64_t>(z.N, kSide) * tiles_of(z.E), w);
}

}  // namespace heed::cuda
