// delta of every query, sum over E of g out, which the gradient of softmax takes away from that of each weight.
#include "heed/attention/attention_kernels.h"
#include "heed/cuda/early_launch.cuh"
#include "heed/cuda/row.cuh"
#include "heed/cuda/strides.cuh"

namespace heed::cuda {
namespace {

constexpr int kThreads = 256;

struct Delta {
  AttentionDelta args;
  Divider heads, queries;
  int64_t rows;
};

// `lanes` threads share a query and read n elements at a time. Heads of one token follow each other, as they do in memory.
template <class T, int n, int lanes>
__global__ void __launch_bounds__(kThreads) delta_kernel(const __grid_constant__ Delta d) {
  wait_for_previous();
  allow_next();
  const AttentionDelta& w = d.args;
  const int lane = static_cast<int>(threadIdx.x) % lanes;
  const int64_t row = int64_t{blockIdx.x} * (kThreads / lanes) + threadIdx.x / lanes;
  int64_t b = row < d.rows ? row : d.rows - 1;
  const int64_t h = d.heads.split(b), i = d.queries.split(b);
  const T *const left = w.g.at<T>(b, h, i), *const right = w.out.at<T>(b, h, i);
  float sum = 0;
#pragma unroll 2
  for (int64_t e = lane * n; e < w.sizes.E; e += lanes * n) {
    const auto x = load_some<n>(left + e), y = load_some<n>(right + e);
#pragma unroll
    for (int k = 0; k < n; ++k) sum = fmaf(x.values[k], y.values[k], sum);
  }
#pragma unroll
  for (int step = lanes / 2; step > 0; step /= 2) sum += __shfl_xor_sync(kFullWarp, sum, step);
  if (lane == 0 && row < d.rows) w.delta[(b * w.sizes.H + h) * w.sizes.N + i] = sum;
}

template <class T, int n, int lanes>
void start_delta(const AttentionDelta& w) {
  const AttentionSizes& z = w.sizes;
  const int64_t rows = z.B * z.H * z.N;
  start_early(delta_kernel<T, n, lanes>, static_cast<unsigned>(divide_up<int64_t>(rows, kThreads / lanes)), kThreads, 0,
              Delta{.args = w, .heads = Divider(z.H), .queries = Divider(z.N), .rows = rows});
}

bool has_packs(const TokenRows& x, int64_t pack) {
  return is_aligned(x.data) && x.item % pack == 0 && x.head % pack == 0 && x.token % pack == 0;
}

}  // namespace

void attention_delta(const AttentionDelta& w) {
  if (w.sizes.B * w.sizes.H * w.sizes.N == 0) return;
  with_storage(w.dtype, [&]<class T>(T) {
    constexpr int n = Pack<T>::kCount;
    const int64_t packs = w.sizes.E / n;
    if (w.sizes.E % n != 0 || !has_packs(w.g, n) || !has_packs(w.out, n)) return start_delta<T, 1, 32>(w);
    if (packs <= 4) return start_delta<T, n, 4>(w);
    if (packs <= 8) return start_delta<T, n, 8>(w);
    start_delta<T, n, 16>(w);
  });
}

}  // namespace heed::cuda
