#include "heed/attention/linear_attention_features.cuh"

#include "heed/attention/linear_attention_tile.cuh"

namespace heed::cuda {
namespace {

__device__ float feature(FeatureMap map, float t) {
  if (map == FeatureMap::elu) return t > 0 ? t + 1 : expf(t);
  return (t < 0 ? 0.0f : t) + kReluFloor;
}
__global__ void __launch_bounds__(kLinearThreads) plain_features_kernel(FeatureRows f, int64_t count, FeatureMap map, float scale) {
  for (int64_t at = int64_t{blockIdx.x} * kLinearThreads + threadIdx.x; at < count; at += int64_t{gridDim.x} * kLinearThreads)
    f.y[at] = feature(map, f.x[at] * scale);
}

// y = x projection^T; a warp per row then makes them features.
__global__ void __launch_bounds__(kLinearThreads) project_kernel(const __grid_constant__ LinearAttentionArgs in, FeatureRows f) {
  __shared__ ProductTiles tiles;
  const int64_t D = in.sizes.D, R = in.sizes.R;
  FlatPlace place(blockIdx.x);
  const int64_t n0 = place.take((R + kSide - 1) / kSide) * kSide, m0 = place.rest * kSide;
  const int rows = static_cast<int>(min(int64_t{kSide}, f.rows - m0)), columns = static_cast<int>(min(int64_t{kSide}, R - n0));
  TileSums sums = {};
  add_product<Order::by_depth, Order::by_side>(
      sums, tiles, rows, columns, D, [&](int m, int64_t k) { return f.x[(m0 + m) * D + k]; },
      [&](int64_t k, int n) { return in.projection_transposed[k * in.layout.width_r + n0 + n]; });
  for_own(sums, rows, columns, [&](int m, int n, float value) { f.y[(m0 + m) * R + n0 + n] = value; });
}
__global__ void __launch_bounds__(kLinearThreads) random_features_kernel(const __grid_constant__ LinearAttentionArgs in, FeatureRows f) {
  const int lane = threadIdx.x % 32;
  const int64_t row = int64_t{blockIdx.x} * (kLinearThreads / 32) + threadIdx.x / 32, D = in.sizes.D, R = in.sizes.R;
  if (row >= f.rows) return;
  float* y = f.y + row * R;
  float shift = -HUGE_VALF, squares = 0;
  for (int64_t r = lane; r < R; r += 32) shift = fmaxf(shift, y[r]);
  shift = warp_max(shift);
  for (int64_t r = lane; r < R; r += 32) y[r] = expf(y[r] - shift);
  if (!f.gains) return;
  for (int64_t d = lane; d < D; d += 32) {
    const float t = f.x[row * D + d] * in.sizes.scale;
    squares = fmaf(t, t, squares);
  }
  squares = warp_sum(squares);
  if (lane == 0) f.gains[row] = shift - 0.5f * squares;
}

__global__ void __launch_bounds__(kLinearThreads)
    plain_features_gradient_kernel(FeatureGradient f, int64_t count, FeatureMap map, float scale) {
  for (int64_t at = int64_t{blockIdx.x} * kLinearThreads + threadIdx.x; at < count; at += int64_t{gridDim.x} * kLinearThreads) {
    const float slope = map == FeatureMap::elu ? fminf(f.y[at], 1.0f) : f.y[at] > kReluFloor ? 1.0f : 0.0f;
    f.dx[at] = f.dy[at] * slope * scale;
  }
}
// dy becomes y dy: a warp per row.
__global__ void __launch_bounds__(kLinearThreads) exponent_gradient_kernel(FeatureGradient f, int64_t R) {
  const int lane = threadIdx.x % 32;
  const int64_t row = int64_t{blockIdx.x} * (kLinearThreads / 32) + threadIdx.x / 32;
  if (row >= f.rows) return;
  float sum = 0;
  for (int64_t r = lane; r < R; r += 32) sum += f.dy[row * R + r] *= f.y[row * R + r];
  sum = warp_sum(sum);
  if (f.shares && lane == 0) f.shares[row] = sum;
}
// A query's |x|^2 cancels between numerator and denominator.
__global__ void __launch_bounds__(kLinearThreads) project_back_kernel(const __grid_constant__ LinearAttentionArgs in, FeatureGradient f) {
  __shared__ ProductTiles tiles;
  const int64_t D = in.sizes.D, R = in.sizes.R;
  FlatPlace place(blockIdx.x);
  const int64_t n0 = place.take((D + kSide - 1) / kSide) * kSide, m0 = place.rest * kSide;
  const int rows = static_cast<int>(min(int64_t{kSide}, f.rows - m0)), columns = static_cast<int>(min(int64_t{kSide}, D - n0));
  TileSums sums = {};
  add_product<Order::by_depth, Order::by_side>(
      sums, tiles, rows, columns, R, [&](int m, int64_t k) { return f.dy[(m0 + m) * R + k]; },
      [&](int64_t k, int n) { return in.projection[k * in.layout.width_d + n0 + n]; });
  for_own(sums, rows, columns, [&](int m, int n, float value) {
    const int64_t at = (m0 + m) * D + n0 + n;
    f.dx[at] = f.shares ? value - f.shares[m0 + m] * in.sizes.scale * in.sizes.scale * f.x[at] : value;
  });
}

}  // namespace

void compute_features(const LinearAttentionArgs& in, const FeatureRows& f) {
  const LinearAttentionSizes& z = in.sizes;
  if (f.rows * z.R == 0) return;
  if (z.map != FeatureMap::random)
    return start(plain_features_kernel, block_count(f.rows * z.R, kLinearThreads), kLinearThreads, 0, f, f.rows * z.R, z.map, z.scale);
  start(project_kernel, static_cast<unsigned>(divide_up<int64_t>(z.R, kSide) * divide_up<int64_t>(f.rows, kSide)), kLinearThreads, 0, in,
        f);
  start(random_features_kernel, static_cast<unsigned>(divide_up<int64_t>(f.rows, kLinearThreads / 32)), kLinearThreads, 0, in, f);
}

void compute_features_gradient(const LinearAttentionArgs& in, const FeatureGradient& f) {
  const LinearAttentionSizes& z = in.sizes;
  if (f.rows * z.D == 0) return;
  if (z.map != FeatureMap::random)
    return start(plain_features_gradient_kernel, block_count(f.rows * z.R, kLinearThreads), kLinearThreads, 0, f, f.rows * z.R, z.map,
                 z.scale);
  start(exponent_gradient_kernel, static_cast<unsigned>(divide_up<int64_t>(f.rows, kLinearThreads / 32)), kLinearThreads, 0, f, z.R);
  start(project_back_kernel, static_cast<unsigned>(divide_up<int64_t>(z.D, kSide) * divide_up<int64_t>(f.rows, kSide)), kLinearThreads, 0,
        in, f);
}

}  // namespace heed::cuda
