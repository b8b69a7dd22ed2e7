// A block takes a sequence: it finds the limits of the filters digit by digit with histograms of integers, and the drawn token by a scan.
#include "heed/ops/sample_tokens.h"

#include "heed/cuda/block_reduce.cuh"
#include "heed/cuda/early_launch.cuh"

namespace heed::cuda {
namespace {

constexpr int kThreads = 1024, kDigits = 256;

// Exclusive sums over the threads of the block; `total` gets the sum of all. scratch: 32 elements
__device__ __forceinline__ uint64_t exclusive_sum(uint64_t mine, uint64_t* scratch, uint64_t& total) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  uint64_t sum = mine;
  for (int step = 1; step < 32; step *= 2) {
    const uint64_t other = __shfl_up_sync(kFullWarp, sum, step);
    if (lane >= step) sum += other;
  }
  if (lane == 31) scratch[warp] = sum;
  __syncthreads();
  uint64_t before = 0;
  total = 0;
  for (int w = 0; w < kThreads / 32; ++w) {
    if (w == warp) before = total;
    total += scratch[w];
  }
  __syncthreads();
  return before + sum - mine;
}

// The scores of one sequence.
struct ScoreRow {
  const float* logits;
  int V;
  float temperature, best;

  __device__ float score(int i) const { return logits[i] / temperature; }
  __device__ uint32_t key(int i) const { return AppendSampledTokens::key_of(__float_as_uint(score(i))); }
  __device__ uint64_t weight(int i) const { return AppendSampledTokens::weight_of(score(i) - best); }
};

// Among the tokens with keys from `least` on, ordered by key: the key where the running sum of amount(token) first exceeds `limit`, from
// the largest down or from the smallest up. limit becomes what is left of it before that key.
template <class Amount>
__device__ __forceinline__ uint32_t key_at(const ScoreRow& row, uint32_t least, uint64_t& limit, bool from_largest,
                                           unsigned long long* histogram, const Amount& amount) {
  __shared__ uint32_t chosen;
  __shared__ uint64_t left;
  uint32_t prefix = 0;
  for (int shift = 24; shift >= 0; shift -= 8) {
    for (int i = threadIdx.x; i < kDigits; i += kThreads) histogram[i] = 0;
    __syncthreads();
    for (int i = threadIdx.x; i < row.V; i += kThreads) {
      const uint32_t key = row.key(i);
      if (key >= least && (shift == 24 || key >> (shift + 8) == prefix)) atomicAdd(histogram + (key >> shift & (kDigits - 1)), amount(i));
    }
    __syncthreads();
    if (threadIdx.x == 0) {
      uint64_t before = 0;
      int digit = from_largest ? kDigits - 1 : 0;
      const int step = from_largest ? -1 : 1, end = from_largest ? 0 : kDigits - 1;
      while (digit != end && before + histogram[digit] <= limit) before += histogram[digit], digit += step;
      chosen = prefix << 8 | static_cast<uint32_t>(digit);
      left = limit - before;
    }
    __syncthreads();
    prefix = chosen;
    limit = left;
    __syncthreads();
  }
  return prefix;
}

__global__ void __launch_bounds__(kThreads, 1) append_sampled_kernel(const __grid_constant__ AppendSampledTokens p) {
  __shared__ unsigned long long histogram[kDigits];
  __shared__ uint64_t scratch[32];
  __shared__ float peaks[32];
  __shared__ int64_t drawn;
  wait_for_previous();
  const int64_t b = blockIdx.x;
  ScoreRow row{p.logits + b * p.V, static_cast<int>(p.V), p.temperature, 0};
  float best = -HUGE_VALF;
  bool finite = true;
  for (int i = threadIdx.x; i < row.V; i += kThreads) {
    finite = finite && isfinite(row.score(i));
    best = fmaxf(best, row.score(i));
  }
  finite = __syncthreads_and(finite);
  row.best = block_reduce(best, peaks, Max(), -HUGE_VALF);
  if (threadIdx.x == 0) drawn = -1;
  __syncthreads();

  if (finite) {
    uint32_t least = 0;    // key of the least token that is kept
    uint64_t skipped = 0;  // of the tokens with that key, the first ones are not
    if (p.top_k > 0 && p.top_k < p.V) {
      uint64_t limit = static_cast<uint64_t>(p.top_k - 1);
      least = key_at(row, 0, limit, true, histogram, [](int) { return 1ull; });
    }
    const auto summed = [&](const auto& amount) {
      uint64_t sum = 0, total = 0;
      for (int i = threadIdx.x; i < row.V; i += kThreads) sum += amount(i);
      exclusive_sum(sum, scratch, total);
      return total;
    };
    if (p.top_p < 1) {
      const auto weight = [&](int i) { return static_cast<unsigned long long>(row.weight(i)); };
      uint64_t limit = p.dropped_weight(summed([&](int i) { return row.key(i) >= least ? row.weight(i) : 0; }));
      least = key_at(row, least, limit, false, histogram, weight);
      // `limit` is what may still be dropped of the tokens with this key, which weigh the same.
      const uint32_t bits = least & 0x80000000u ? least & 0x7fffffffu : ~least;
      const uint64_t each = AppendSampledTokens::weight_of(__uint_as_float(bits) - row.best);
      skipped = each > 0 ? limit / each : 0;
    }
    // Every thread takes tokens side by side, so that sums follow the ids.
    const int share = (row.V + kThreads - 1) / kThreads, begin = min(row.V, static_cast<int>(threadIdx.x) * share),
              end = min(row.V, begin + share);
    uint64_t equal = 0, all = 0;
    if (skipped > 0)
      for (int i = begin; i < end; ++i) equal += row.key(i) == least;
    uint64_t place = skipped > 0 ? exclusive_sum(equal, scratch, all) : 0;
    const auto kept_weight = [&](int i, uint64_t& at) -> uint64_t {
      const uint32_t key = row.key(i);
      if (key < least || (key == least && at++ < skipped)) return 0;
      return expf(row.score(i) - row.best) < p.min_p ? 0 : row.weight(i);
    };
    uint64_t sum = 0, at = place;
    for (int i = begin; i < end; ++i) sum += kept_weight(i, at);
    const uint64_t before = exclusive_sum(sum, scratch, all);
    const uint64_t target = __umul64hi(p.random_bits(b, p.lengths[b] + 1) << 11, all);
    if (target >= before && target - before < sum) {
      uint64_t left = target - before;
      at = place;
      for (int i = begin; i < end; ++i) {
        const uint64_t weight = kept_weight(i, at);
        if (left < weight) {
          drawn = i;
          break;
        }
        left -= weight;
      }
    }
  }
  __syncthreads();
  if (threadIdx.x > 0) return;
  const int64_t length = p.lengths[b] + 1;
  p.last[b] = drawn;
  p.lengths[b] = length;
  p.all[b * p.capacity + length] = drawn;
}

}  // namespace

void append_sampled(const AppendSampledTokens& p) {
  if (p.B == 0) return;
  start_early(append_sampled_kernel, static_cast<unsigned>(p.B), kThreads, 0, p);
}

}  // namespace heed::cuda
