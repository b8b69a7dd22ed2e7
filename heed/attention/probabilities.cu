// The attention map on GPUs, for chosen heads and rows: a block per row.
#include "heed/attention/score_tile.cuh"
#include "heed/cuda/block_reduce.cuh"
#include "heed/cuda/launch.cuh"

namespace heed::cuda {
namespace {

constexpr int kThreads = 256;

// Every term on one score.
__noinline__ __device__ float scored(const TermSequence& terms, float s, const ScoreRow& row, int64_t j) {
  for (const TermArgs& term : terms) s = scalar::term_score(term, s, row, j);
  return s;
}

__global__ void __launch_bounds__(kThreads) probabilities_kernel(const __grid_constant__ AttentionProbabilities w) {
  __shared__ float scratch[32];
  const ScoreArgs& a = w.scores;
  const AttentionSizes& z = a.sizes;
  const int64_t place = blockIdx.x, row = place % w.row_count, head = place / w.row_count % w.head_count,
                b = place / w.row_count / w.head_count;
  const int64_t h = w.heads[head], i = w.rows[row];
  const float* q = w.q + ((b * z.H + h) * z.N + i) * z.D;
  const ScoreRow at{b, h, z.first_query + i, z.first_query};
  float* out = w.out + place * z.M;
  const int lane = threadIdx.x % 32;

  float highest = -HUGE_VALF;
  for (int64_t j = threadIdx.x / 32; j < z.M; j += kThreads / 32) {  // a warp per key
    float s = 0;
    if (a.beta != 0) {
      const float* k = w.k.at(b, h / (z.H / z.G), j);
      for (int64_t d = lane; d < z.D; d += 32) s = fmaf(q[d], k[d], s);
      s = warp_sum(s) * a.beta;
    }
    if (lane == 0) {
      s = scored(a.terms, s, at, j);
      out[j] = s;
      highest = fmaxf(highest, s);
    }
  }
  highest = block_reduce(highest, scratch, Max(), -HUGE_VALF);  // its barriers also make the scores visible
  float sum = 0;
  for (int64_t j = threadIdx.x; j < z.M; j += kThreads) {
    const float s = out[j], weight = highest == -HUGE_VALF ? 0.0f : a.hard ? (s == highest ? 1.0f : 0.0f) : expf(s - highest);
    out[j] = weight;
    sum += weight;
  }
  sum = block_sum(sum, scratch);
  const float share = sum > 0 ? 1 / sum : 0.0f;
  for (int64_t j = threadIdx.x; j < z.M; j += kThreads) out[j] *= share;
}

}  // namespace

void attention_probabilities_forward(const AttentionProbabilities& args) {
  const int64_t rows = args.scores.sizes.B * args.head_count * args.row_count;
  if (rows * args.scores.sizes.M == 0) return;
  start(probabilities_kernel, static_cast<unsigned>(rows), kThreads, 0, args);
}

}  // namespace heed::cuda
