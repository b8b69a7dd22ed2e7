// A warp has a row of a map, a block a head.
#include "heed/attention/gaussian_maps_kernels.h"

#include "heed/cuda/block_reduce.cuh"
#include "heed/cuda/launch.cuh"

namespace heed::cuda {
namespace {

constexpr int kMapThreads = 256;

// Of a head: calls visit(axis, i, at) with each of the warp's rows, which begins at number `at` of the map of the axis.
template <class Visit>
__device__ void for_rows(const GaussianMapSizes& z, int64_t h, const Visit& visit) {
  for (int64_t row = threadIdx.x / 32; row < z.Y + z.X; row += kMapThreads / 32) {
    const int axis = row < z.Y ? 0 : 1;
    const int64_t i = axis == 0 ? row : row - z.Y;
    visit(axis, i, axis == 0 ? (h * z.Y + i) * z.R : (h * z.X + i) * z.C);
  }
}

__global__ void __launch_bounds__(kMapThreads) gaussian_maps_kernel(const GaussianMapsForward w) {
  const int64_t h = blockIdx.x;
  const int lane = threadIdx.x % 32;
  const float alpha = w.alpha[h];
  for_rows(w.sizes, h, [&](int axis, int64_t i, int64_t at) {
    const int64_t keys = axis == 0 ? w.sizes.R : w.sizes.C;
    const float center = w.center[2 * h + axis];
    float* const map = (axis == 0 ? w.rows : w.columns) + at;
    const auto score = [&](int64_t j) {
      const float away = static_cast<float>(i - j) - center;
      return -alpha * away * away;
    };
    float most = -INFINITY, total = 0;
    for (int64_t j = lane; j < keys; j += 32) most = fmaxf(most, score(j));
    most = warp_max(most);
    for (int64_t j = lane; j < keys; j += 32) total += expf(score(j) - most);
    total = warp_sum(total);
    for (int64_t j = lane; j < keys; j += 32) map[j] = expf(score(j) - most) / total;
  });
}

__global__ void __launch_bounds__(kMapThreads) gaussian_maps_gradient_kernel(const GaussianMapsBackward w) {
  __shared__ float scratch[32];
  const int64_t h = blockIdx.x;
  const int lane = threadIdx.x % 32;
  const float alpha = w.alpha[h];
  float dalpha = 0, dcenter[2] = {};
  for_rows(w.sizes, h, [&](int axis, int64_t i, int64_t at) {
    const int64_t keys = axis == 0 ? w.sizes.R : w.sizes.C;
    const float center = w.center[2 * h + axis];
    const float *const map = (axis == 0 ? w.rows : w.columns) + at, *const dmap = (axis == 0 ? w.drows : w.dcolumns) + at;
    float mean = 0;
    for (int64_t j = lane; j < keys; j += 32) mean = fmaf(map[j], dmap[j], mean);
    mean = warp_sum(mean);
    float along = 0;
    for (int64_t j = lane; j < keys; j += 32) {
      const float away = static_cast<float>(i - j) - center, dscore = map[j] * (dmap[j] - mean);
      dalpha -= away * away * dscore;
      along += 2 * alpha * away * dscore;
    }
    (axis == 0 ? dcenter[0] : dcenter[1]) += along;
  });
  dalpha = block_sum(dalpha, scratch);
  const float down = block_sum(dcenter[0], scratch), along = block_sum(dcenter[1], scratch);
  if (threadIdx.x > 0) return;
  w.dalpha[h] = dalpha;
  w.dcenter[2 * h] = down;
  w.dcenter[2 * h + 1] = along;
}

}  // namespace

void gaussian_maps_forward(const GaussianMapsForward& w) {
  if (w.sizes.H > 0) start(gaussian_maps_kernel, static_cast<unsigned>(w.sizes.H), kMapThreads, 0, w);
}

void gaussian_maps_backward(const GaussianMapsBackward& w) {
  if (w.sizes.H > 0) start(gaussian_maps_gradient_kernel, static_cast<unsigned>(w.sizes.H), kMapThreads, 0, w);
}

}  // namespace heed::cuda
