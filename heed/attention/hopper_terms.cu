// What the Hopper attention kernels need computed before them, and the sums of their parts after them: features of Gaussian2d, spread
// tables, rows of log_sum and delta, gradients of terms.
#include "heed/attention/hopper_call.cuh"
#include "heed/cuda/element.cuh"

namespace heed::cuda {
namespace {

constexpr int kThreads = 256;

struct Split {
  float high, middle, low;  // bf16, but for the last, which is rounded when it is stored
};
__device__ Split split(float x) {
  const float high = rounded_to(x, Bf16()), middle = rounded_to(x - high, Bf16());
  return {high, middle, x - high - middle};
}
__device__ void store_features(Bf16* to, const float (&features)[hopper::kFeatures]) {
#pragma unroll
  for (int part = 0; part < 2; ++part) {
    Pack<Bf16> pack;
#pragma unroll
    for (int n = 0; n < 8; ++n) pack.values[n] = features[8 * part + n];
    store_pack(to + 8 * part, pack);
  }
}

// Divided by beta, with which the product is multiplied. See hopper_features.cuh.
__global__ void gaussian_features(HopperGaussian t, float over_beta, int64_t queries, int N, int M, Bf16* query_features,
                                  Bf16* key_features) {
  const int64_t at = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (at < queries) {
    const auto h = static_cast<int>(at / N);
    const GridPoint r = query_point(t, h, static_cast<int>(at % N));
    const float alpha = t.args.alpha[h] * over_beta;
    const Split row = split(2 * alpha * r.row), column = split(2 * alpha * r.column), square = split(-alpha);
    const Split own = split(-alpha * r.square());
    store_features(query_features + at * hopper::kFeatures,
                   {row.high, column.high, square.high, square.high, own.high, row.middle, column.middle, row.low, column.low,
                    square.middle, square.middle, square.low, own.middle, own.low, 0, 0});
  } else if (at < queries + M) {
    const GridPoint c = grid_point(t, static_cast<int>(at - queries));
    const float square = c.square(), high = rounded_to(square, Bf16()), low = square - high;
    store_features(key_features + (at - queries) * hopper::kFeatures,
                   {c.row, c.column, high, low, 1, c.row, c.column, c.row, c.column, high, low, high, 1, 1, 0, 0});
  }
}

// The entry of a table at distance spread(j) - spread(i) = distance; of a row's or column's offset that no pair has, 0.
__device__ float entry_at(const RelativeBiasArgs& t, int h, int64_t distance) {
  return t.table[h * table_size(t) + table_entry(t, 0, distance)];
}
__device__ float entry_at(const RelativeBias2dArgs& t, int h, int64_t distance) {
  const int64_t W = t.width, half = W * (int64_t{1} << 32);  // a multiple of 2 W
  const int64_t down = (distance + W + half) / (2 * W) - half / (2 * W), along = distance - down * 2 * W;
  if (along == -W) return 0;
  const int64_t i = (down < 0 ? -down * W : 0) + (along < 0 ? -along : 0), j = (down > 0 ? down * W : 0) + (along > 0 ? along : 0);
  return t.table[h * table_size(t) + table_entry(t, i, j)];
}

// to: (H, 4, 2 reach), divided by beta: by distance of the key from the query; the same from one entry later; by distance of the query
// from the key; the same from one entry later.
template <class Args>
__global__ void spread_table(Args t, float* to, int reach, float over_beta) {
  const int h = blockIdx.y, at = blockIdx.x * kThreads + threadIdx.x;
  if (at >= 8 * reach) return;
  const int line = at / (2 * reach), distance = at % (2 * reach) + line % 2 - reach;
  to[static_cast<int64_t>(h) * 8 * reach + at] = entry_at(t, h, line < 2 ? distance : -distance) * over_beta;
}

__global__ void row_statistics(const float* log_sum, const float* delta, float* to_log_sum, float* to_delta, int N, int stride,
                               int64_t count) {
  for (int64_t at = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; at < count; at += int64_t{gridDim.x} * kThreads) {
    const int64_t head = at / stride, i = at - head * stride, from = head * N + i;
    to_log_sum[at] = i < N ? log_sum[from] * kLog2E : INFINITY;
    to_delta[at] = i < N ? delta[from] : 0.0f;
  }
}

// parts: (B, H, per_head, 3). A block for each sum of each head.
__global__ void gaussian_sums(HopperGaussian t, const float* parts, float* alpha, float* center, int B, int H, int per_head,
                              int64_t alpha_step, int64_t center_step) {
  __shared__ float scratch[32];
  const int h = blockIdx.x, n = blockIdx.y;
  float sum = 0;
  for (int64_t at = threadIdx.x; at < int64_t{B} * per_head; at += kThreads) {
    const int64_t b = at / per_head;
    sum += parts[((b * H + h) * per_head + at - b * per_head) * kGaussianSums + n];
  }
  sum = block_sum(sum, scratch);
  if (threadIdx.x > 0) return;
  if (n == 0) {
    if (alpha) alpha[h * alpha_step] = sum;
  } else if (center) {
    center[h * center_step + n - 1] = 2 * t.args.alpha[h] * sum;
  }
}

// parts: (B, each), summed over B into the first.
__global__ void sum_items(float4* parts, int B, int64_t each) {
  const int64_t at = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (at >= each) return;
  float4 sum{0, 0, 0, 0};
#pragma unroll 8
  for (int b = 0; b < B; ++b) {
    const float4 x = __ldcs(parts + b * each + at);
    sum.x += x.x;
    sum.y += x.y;
    sum.z += x.z;
    sum.w += x.w;
  }
  parts[at] = sum;
}

// parts: (H, groups of 64 queries, count) -> to: (H, rows, columns) with a step between heads: sums of dS by offset of the key from the
// query
template <int kWidth>
__global__ void sum_groups(const float* parts, float* to, HopperDistances d, int groups, int count, int64_t step) {
  using Sums = Diagonals<kWidth>;
  const int h = blockIdx.y, at = blockIdx.x * kThreads + threadIdx.x;
  if (at >= d.rows() * d.columns()) return;
  const int down = d.first_row + at / d.columns(), along = d.first_column + at % d.columns(), distance = down * 2 * kWidth + along;
  float sum = 0;
#pragma unroll 8
  for (int group = 0; group < groups; ++group) {
    const int place = kTableStep<kWidth> * 64 * group + Sums::kOrigin + distance;
    sum += place >= 0 && place < count ? parts[(static_cast<int64_t>(h) * groups + group) * count + place] : 0.0f;
  }
  to[h * step + at] = sum;
}

// Offsets that a table of 2 half + 1 entries has in one: the first and the last have all beyond them too.
struct Offsets {
  int first, last;
};
__device__ Offsets offsets_of(int entry, int half, int first, int last) {
  return {entry == 0 ? first : max(entry - half, first), entry == 2 * half ? last : min(entry - half, last)};
}
// diagonals: (H, rows, columns) of d -> to: (H, table_rows, table_columns) with a step between heads. A warp for each entry.
__global__ void sum_to_table(const float* diagonals, float* to, HopperDistances d, int table_rows, int table_columns, int64_t step) {
  const int h = blockIdx.y, entry = (blockIdx.x * kThreads + threadIdx.x) / 32, lane = threadIdx.x % 32;
  if (entry >= table_rows * table_columns) return;
  const Offsets down = offsets_of(entry / table_columns, table_rows / 2, d.first_row, d.last_row);
  const Offsets along = offsets_of(entry % table_columns, table_columns / 2, d.first_column, d.last_column);
  float sum = 0;
  for (int y = down.first; y <= down.last; ++y)
    for (int x = along.first + lane; x <= along.last; x += 32)
      sum += diagonals[(static_cast<int64_t>(h) * d.rows() + y - d.first_row) * d.columns() + x - d.first_column];
  sum = warp_sum(sum);
  if (lane == 0) to[h * step + entry] = sum;
}

}  // namespace

void start_gaussian_features(const HopperCall& call) {
  const HopperSizes& z = call.sizes;
  const int64_t queries = int64_t{z.H} * z.N;
  start(gaussian_features, static_cast<unsigned>(divide_up<int64_t>(queries + z.M, kThreads)), kThreads, 0, call.gaussian, 1 / z.beta,
        queries, z.N, z.M, call.query_features, call.key_features);
}

void start_spread_table(const HopperCall& call, const TermArgs& term) {
  const dim3 grid(static_cast<unsigned>(divide_up(8 * call.reach, kThreads)), static_cast<unsigned>(call.sizes.H));
  if (term.kind == TermKind::relative_bias) {
    start(spread_table<RelativeBiasArgs>, grid, kThreads, 0, term.relative_bias, call.spread, call.reach, 1 / call.sizes.beta);
  } else {
    start(spread_table<RelativeBias2dArgs>, grid, kThreads, 0, term.relative_bias_2d, call.spread, call.reach, 1 / call.sizes.beta);
  }
}

void start_row_statistics(const HopperCall& call, const AttentionBackward& args, float* log_sum, float* delta, int stride) {
  const int64_t count = int64_t{call.sizes.B} * call.sizes.H * stride;
  start(row_statistics, block_count(count, kThreads), kThreads, 0, args.log_sum, args.delta, log_sum, delta, call.sizes.N, stride, count);
}

// The sinks of the first item get the sums of all; the others stay zero.
void start_gaussian_sums(const HopperCall& call, const float* parts, const GradientSink (&sinks)[2]) {
  const HopperSizes& z = call.sizes;
  if (!sinks[0].data && !sinks[1].data) return;
  const int per_head = divide_up(z.N, static_cast<int>(hopper::kQueryTile)) * 8;
  start(gaussian_sums, dim3(static_cast<unsigned>(z.H), kGaussianSums), kThreads, 0, call.gaussian, parts, sinks[0].data, sinks[1].data,
        z.B, z.H, per_head, sinks[0].per_head, sinks[1].per_head);
}

void start_table_sums(const HopperCall& call, const TermArgs& term, float* parts, float* diagonals, const GradientSink& sink) {
  const HopperSizes& z = call.sizes;
  if (!sink.data) return;
  const int width = call.which.table_width, groups = divide_up(z.N, static_cast<int>(hopper::kQueryTile)) * 2;
  const auto count = static_cast<int>(hopper::diagonal_count(z.M, width));
  const int64_t each = int64_t{z.H} * groups * count / 4;
  start(sum_items, static_cast<unsigned>(divide_up<int64_t>(each, kThreads)), kThreads, 0, reinterpret_cast<float4*>(parts), z.B, each);

  const bool lined = term.kind == TermKind::relative_bias;
  const auto table_rows = static_cast<int>(lined ? 1 : term.relative_bias_2d.rows);
  const auto table_columns = static_cast<int>(lined ? term.relative_bias.width : term.relative_bias_2d.columns);
  const HopperDistances d = hopper_distances(call.full_sizes, width);
  const int distances = d.rows() * d.columns();
  // A table with one entry for every offset is what sum_groups writes.
  const bool whole =
      d.last_row == -d.first_row && d.last_column == -d.first_column && d.rows() == table_rows && d.columns() == table_columns;
  const dim3 grid(static_cast<unsigned>(divide_up(distances, kThreads)), static_cast<unsigned>(z.H));
  call.with_term([&]<class Term>(const Term&) {
    if constexpr (Term::kTable)
      start(sum_groups<Term::kWidth>, grid, kThreads, 0, parts, whole ? sink.data : diagonals, d, groups, count,
            whole ? sink.per_head : int64_t{distances});
  });
  if (whole) return;
  const dim3 entries(static_cast<unsigned>(divide_up(32 * table_rows * table_columns, kThreads)), static_cast<unsigned>(z.H));
  start(sum_to_table, entries, kThreads, 0, diagonals, sink.data, d, table_rows, table_columns, sink.per_head);
}

}  // namespace heed::cuda
