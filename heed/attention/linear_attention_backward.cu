// Gradients of linear attention on GPUs: the chunks of linear_attention.cu in the other direction, with sums over the queries after each
// segment of keys.
#include "heed/attention/linear_attention_features.cuh"
#include "heed/attention/linear_attention_tile.cuh"

namespace heed::cuda {
namespace {

// The gradient of outputs as gradients of numerators and denominators: a warp per query.
__global__ void __launch_bounds__(kLinearThreads) output_gradient_kernel(const __grid_constant__ LinearPlan w) {
  const LinearAttentionSizes& z = w.in.sizes;
  const int lane = threadIdx.x % 32;
  const int64_t row = int64_t{blockIdx.x} * (kLinearThreads / 32) + threadIdx.x / 32;
  if (row >= z.B * z.H * z.N) return;
  const float total = w.total[row], share = total >= kLeastTotal ? 1 / total : 0.0f;
  float delta = 0;
  for (int64_t e = lane; e < z.E; e += 32) {
    const float g = w.g[row * z.E + e] * share;
    w.gradient[row * z.E + e] = g;
    delta = fmaf(g, w.out[row * z.E + e], delta);
  }
  delta = warp_sum(delta);
  if (lane == 0) w.delta[row] = delta;
}

// Gradients of the features of queries.
__global__ void __launch_bounds__(kLinearThreads) query_features_gradient_kernel(const __grid_constant__ LinearPlan w) {
  __shared__ ProductTiles tiles;
  __shared__ ChunkWeights weights;
  const LinearAttentionSizes& z = w.in.sizes;
  const QueryPlace at(w, z.R);
  const Chunk& x = at.x;
  const int64_t row = x.h * z.N + x.first;
  const float *g = w.gradient + row * z.E, *delta = w.delta + row, *state = w.state_at(x.head, at.slot), *last = w.last_column(state);
  const float *c = w.c + (x.head * z.M + x.first) * z.R, *v = w.in.v + (x.head * z.M + x.first) * z.E;
  if (x.keys > 0)
    weigh_chunk(
        w, x, g, v, z.E, [&](int i) { return delta[i]; }, tiles, weights);
  const int columns = static_cast<int>(min(int64_t{kSide}, z.R - at.column));
  TileSums sums = {};
  add_product<Order::by_depth, Order::by_depth>(
      sums, tiles, x.rows, columns, z.E, [&](int m, int64_t k) { return g[m * z.E + k]; },
      [&](int64_t k, int n) { return state[(at.column + n) * w.in.layout.width_e + k]; });
  for_own(sums, x.rows, columns, [&](int m, int n, float& value) {
    value = (value - delta[m] * last[at.column + n]) * w.rescale(at.before - w.query_top(x.head, x.first + m));
  });
  add_product<Order::by_side, Order::by_side>(
      sums, tiles, x.rows, columns, x.keys, [&](int m, int64_t k) { return weights.values[m][k]; },
      [&](int64_t k, int n) { return c[k * z.R + at.column + n]; });
  for_own(sums, x.rows, columns, [&](int m, int n, float value) { w.da[(row + m) * z.R + at.column + n] = value; });
}

// What keys need of the queries that see them: sums over the queries of a segment, of all heads that share the key head.
__global__ void __launch_bounds__(kLinearThreads) query_sums_kernel(const __grid_constant__ LinearPlan w) {
  __shared__ ProductTiles tiles;
  const LinearAttentionSizes& z = w.in.sizes;
  FlatPlace place(blockIdx.x);
  const int64_t e0 = place.take(tiles_of(z.E)) * kSide, r0 = place.take(tiles_of(z.R)) * kSide,
                segment = place.take(w.in.layout.queries.segments), head = place.rest;
  const int64_t begin = segment * w.in.layout.queries.segment_tokens, rows = min(z.N - begin, w.in.layout.queries.segment_tokens);
  const float to = w.query_top(head, begin);
  const auto row = [&](int64_t k) { return (head * w.group() + k / rows) * z.N + begin + k % rows; };
  sum_rows(
      w, w.sum_at(head, segment), r0, e0, w.group() * rows, [&](int64_t k) { return w.a + row(k) * z.R; },
      [&](int64_t k) { return w.gradient + row(k) * z.E; }, [&](int64_t k) { return w.rescale(to - w.query_top(head, begin + k % rows)); },
      [&](int64_t k) { return w.delta[row(k)]; }, tiles);
}

// Sums over the queries from each segment on; after the last there are none.
__global__ void __launch_bounds__(kLinearThreads) join_query_sums_kernel(const __grid_constant__ LinearPlan w, int64_t blocks) {
  const int64_t head = blockIdx.x / blocks, i = blockIdx.x % blocks * kLinearThreads + threadIdx.x,
                tokens = w.in.layout.queries.segment_tokens, segments = w.in.layout.queries.segments;
  if (i >= w.in.layout.width_r * (w.in.layout.width_e + 1)) return;
  float later = 0;
  w.sum_at(head, segments)[i] = 0;
  for (int64_t s = segments - 1; s >= 0; --s) {
    const float share = w.rescale(w.query_top(head, s * tokens) - w.query_top(head, (s + 1) * tokens));
    float* own = w.sum_at(head, s) + i;
    *own = later = fmaf(later, share, *own);
  }
}

// Gradients of the features of keys, or of values: what later queries give by their sums, and those of the chunk one by one.
template <bool of_values>
__global__ void __launch_bounds__(kLinearThreads) key_gradient_kernel(const __grid_constant__ LinearPlan w) {
  __shared__ ProductTiles tiles;
  __shared__ ChunkWeights weights;
  const LinearAttentionSizes& z = w.in.sizes;
  const int64_t width = of_values ? z.E : z.R, W = w.in.layout.width_e;
  FlatPlace place(blockIdx.x);
  const int64_t column = place.take(tiles_of(width)) * kSide, first = place.take((z.M + kSide - 1) / kSide) * kSide, head = place.rest;
  Chunk x{head, 0, first, static_cast<int>(min(int64_t{kSide}, z.M - first)), 0};
  x.keys = static_cast<int>(max(int64_t{0}, min(w.keys_of(head) - first, int64_t{x.rows})));
  const int columns = static_cast<int>(min(int64_t{kSide}, width - column));
  const int64_t at = head * z.M + first;
  const float *c = w.c + at * z.R, *v = w.in.v + at * z.E, *state = w.sum_at(head, z.causal ? first / kSide + 1 : 0),
              *last = w.last_column(state), next = w.query_top(head, first + x.rows);
  TileSums sums = {};
  if constexpr (of_values) {
    add_product<Order::by_depth, Order::by_side>(
        sums, tiles, x.keys, columns, z.R, [&](int m, int64_t k) { return c[m * z.R + k]; },
        [&](int64_t k, int n) { return state[k * W + column + n]; });
  } else {
    add_product<Order::by_depth, Order::by_depth>(
        sums, tiles, x.keys, columns, z.E, [&](int m, int64_t k) { return v[m * z.E + k]; },
        [&](int64_t k, int n) { return state[(column + n) * W + k]; });
  }
  for_own(sums, x.keys, columns, [&](int m, int n, float& value) {
    value = (of_values ? value : value - last[column + n]) * w.rescale(w.gain(head, first + m) - next);
  });
  for (x.h = head * w.group(); z.causal && x.h < (head + 1) * w.group(); ++x.h) {
    const int64_t row = x.h * z.N + first;
    const float *a = w.a + row * z.R, *g = w.gradient + row * z.E, *delta = w.delta + row;
    if constexpr (of_values) {
      weigh_chunk(
          w, x, a, c, z.R, [](int) { return 0.0f; }, tiles, weights);
    } else {
      weigh_chunk(
          w, x, g, v, z.E, [&](int i) { return delta[i]; }, tiles, weights);
    }
    const float* from = of_values ? g : a;
    add_product<Order::by_side, Order::by_side>(
        sums, tiles, x.keys, columns, x.rows, [&](int m, int64_t k) { return weights.values[k][m]; },
        [&](int64_t k, int n) { return from[k * width + column + n]; });
  }
  float* to = of_values ? w.dv : w.dc;
  for_own(sums, x.rows, columns, [&](int m, int n, float value) { to[(at + m) * width + column + n] = m < x.keys ? value : 0.0f; });
}

}  // namespace

void linear_attention_backward(const LinearAttentionBackward& args) {
  const LinearAttentionArgs& in = args.in;
  const LinearAttentionSizes& z = in.sizes;
  const LinearAttentionLayout& layout = in.layout;
  const int64_t heads = z.B * z.G, queries = z.B * z.H * z.N, keys = heads * z.M;
  float* next = static_cast<float*>(args.workspace);
  const auto take = [&](int64_t count) {
    float* const at = next;
    next += count;
    return at;
  };
  LinearPlan w{.in = in};
  w.sums = take(heads * (layout.queries.segments + 1) * layout.state());
  w.a = take(queries * z.R);
  w.c = take(keys * z.R);
  w.da = take(queries * z.R);
  w.dc = take(keys * z.R);
  w.gradient = take(queries * z.E);
  w.delta = take(queries);
  w.shares = take(keys);
  w.g = args.g;
  w.out = args.out;
  w.total = args.total;
  w.dv = args.dv;
  compute_features(in, {in.k, w.c, nullptr, keys});
  compute_features(in, {in.q, w.a, nullptr, queries});
  start_tasks(output_gradient_kernel, divide_up<int64_t>(queries, kLinearThreads / 32), w);
  start_tasks(query_features_gradient_kernel, z.B * z.H * divide_up<int64_t>(z.N, kSide) * tiles_of(z.R), w);
  compute_features_gradient(in, {in.q, w.a, w.da, args.dq, nullptr, queries});
  start_tasks(query_sums_kernel, heads * layout.queries.segments * tiles_of(z.R) * tiles_of(z.E), w);
  const int64_t blocks = divide_up<int64_t>(layout.state(), kLinearThreads), key_chunks = heads * divide_up<int64_t>(z.M, kSide);
  start_tasks(join_query_sums_kernel, heads * blocks, w, blocks);
  start_tasks(key_gradient_kernel<false>, key_chunks * tiles_of(z.R), w);
  start_tasks(key_gradient_kernel<true>, key_chunks * tiles_of(z.E), w);
  compute_features_gradient(in, {in.k, w.c, w.dc, args.dk, z.map == FeatureMap::random ? w.shares : nullptr, keys});
}

}  // namespace heed::cuda
