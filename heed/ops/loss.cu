// Losses. Cross-entropy reads a row once for its cost and once for its gradient. Sums over rows are made in double by one block or by
// blocks of fixed pieces, in a fixed order.
#include <limits>

#include "heed/cuda/exp_sum.cuh"
#include "heed/ops/loss.h"

namespace heed::cuda {
namespace {

constexpr unsigned kJoinThreads = 1024;  // of the one block that adds numbers of rows or pieces

// The sum of term(i) over [0, count) by one block; every thread gets it.
template <class Term>
__device__ double block_total(int64_t count, double* scratch, const Term& term) {
  double mine = 0;
#pragma unroll 4
  for (int64_t i = threadIdx.x; i < count; i += blockDim.x) mine += term(i);
  return block_sum(mine, scratch);
}

// Reporting an invalid target would make the host wait, so such a target makes the loss and its gradient NaN.
__global__ void __launch_bounds__(kJoinThreads) entropy_totals(EntropySums e) {
  __shared__ double scratch[32];
  const double counted = block_total(e.rows, scratch, [&](int64_t row) -> double {
    const int64_t target = e.targets[row];
    if (target == e.ignore_index) return 0;
    if (target < 0 || target >= e.C) return std::numeric_limits<double>::quiet_NaN();
    return e.weights ? e.weights[target] : 1.0f;
  });
  const double classes =
      e.weights ? block_total(e.C, scratch, [&](int64_t c) -> double { return e.weights[c]; }) : static_cast<double>(e.C);
  if (threadIdx.x == 0) *e.totals = {counted, classes};
}

template <class T, class Group>
__global__ void entropy_rows(EntropyForward e) {
  __shared__ float scratch[32];
  const Group group(scratch);
  for (int64_t row = group.first_row(); row < e.rows; row += group.row_step()) {
    const int64_t target = e.targets[row], C = e.C;
    const bool ignored = target == e.ignore_index, inside = target >= 0 && target < C;
    if (ignored || !inside) {
      if (group.thread == 0) e.costs[row] = ignored ? 0.0f : std::numeric_limits<float>::quiet_NaN();
      if (group.thread == 0 && !ignored) e.lse[row] = std::numeric_limits<float>::quiet_NaN();
      continue;
    }
    const T* const x = static_cast<const T*>(e.x) + row * C;
    const int64_t head = unaligned_head(C, x);
    const ExpSum sum = exp_sum(x, C, head, group);
    // A row of -inf has no softmax.
    const float lse = sum.row_sum == 0 ? std::numeric_limits<float>::quiet_NaN() : sum.row_max + logf(sum.row_sum);
    float cost = (1 - e.smoothing) * (e.weights ? e.weights[target] : 1.0f) * (lse - load(x + target));
    if (e.smoothing != 0) {
      float others = 0;
      for_elements<T>(C, head, group.thread, group.threads, [&](int64_t i, auto count) {
        const auto value = load_some<count.value>(x + i);
#pragma unroll
        for (int k = 0; k < count.value; ++k) others += (lse - value.values[k]) * (e.weights ? e.weights[i + k] : 1.0f);
      });
      cost += e.smoothing / static_cast<float>(C) * group.sum(others);
    }
    if (group.thread == 0) {
      e.lse[row] = lse;
      e.costs[row] = cost;
    }
  }
}

// dx = factor ((1 - s) w_t (p - 1[c = t]) + s / C (p sum(w) - w)). dx may be x: a thread reads an element before it writes it.
template <class T, class Group>
__global__ void entropy_gradients(EntropyBackward e) {
  __shared__ float scratch[32];
  const Group group(scratch);
  const float factor = static_cast<float>((e.g ? *e.g : 1.0f) / e.totals->counted), classes = static_cast<float>(e.totals->classes);
  const float even = factor * (e.smoothing / static_cast<float>(e.C));
  for (int64_t row = group.first_row(); row < e.rows; row += group.row_step()) {
    const int64_t target = e.targets[row], C = e.C;
    const T* const x = static_cast<const T*>(e.x) + row * C;
    T* const dx = static_cast<T*>(e.dx) + row * C;
    const int64_t head = unaligned_head(C, x, dx);
    if (target == e.ignore_index) {
      for_elements<T>(C, head, group.thread, group.threads, [&](int64_t i, auto count) { store_some(dx + i, Floats<count.value>{}); });
      continue;
    }
    const bool inside = target >= 0 && target < C;  // if not, the factor is NaN
    const float pull = factor * (1 - e.smoothing) * (e.weights && inside ? e.weights[target] : 1.0f);
    const float lse = e.lse[row], scale = pull + even * classes;
    for_elements<T>(C, head, group.thread, group.threads, [&](int64_t i, auto count) {
      auto value = load_some<count.value>(x + i);
#pragma unroll
      for (int k = 0; k < count.value; ++k) {
        float& v = value.values[k];
        v = expf(v - lse) * scale;
        if (e.smoothing != 0) v -= e.weights ? even * e.weights[i + k] : even;
        if (i + k == target) v -= pull;
      }
      store_some(dx + i, value);
    });
  }
}

__global__ void __launch_bounds__(kJoinThreads) mean_cost(EntropyMean e) {
  __shared__ double scratch[32];
  const double total = block_total(e.rows, scratch, [&](int64_t row) -> double { return e.costs[row]; });
  if (threadIdx.x == 0) *e.loss = static_cast<float>(total / e.totals->counted);
}

// One block for each piece; sums: (pieces)
template <class T>
__global__ void square_sums(const T* a, const T* b, int64_t count, double* sums) {
  __shared__ double scratch[32];
  const int64_t begin = int64_t{blockIdx.x} * SquaredErrorForward::kPiece;
  const int64_t here = count - begin < SquaredErrorForward::kPiece ? count - begin : SquaredErrorForward::kPiece;
  a += begin;
  b += begin;
  float mine = 0;
  for_elements<T>(here, unaligned_head(here, a, b), threadIdx.x, blockDim.x, [&](int64_t i, auto n) {
    const auto left = load_some<n.value>(a + i), right = load_some<n.value>(b + i);
#pragma unroll
    for (int k = 0; k < n.value; ++k) {
      const float difference = left.values[k] - right.values[k];
      mine = fmaf(difference, difference, mine);
    }
  });
  const double sum = block_sum(static_cast<double>(mine), scratch);
  if (threadIdx.x == 0) sums[blockIdx.x] = sum;
}

__global__ void __launch_bounds__(kJoinThreads) mean_square(const double* sums, int64_t pieces, int64_t count, float* loss) {
  __shared__ double scratch[32];
  const double total = block_total(pieces, scratch, [&](int64_t i) { return sums[i]; });
  if (threadIdx.x == 0) *loss = static_cast<float>(total / static_cast<double>(count));
}

template <class T>
__global__ void square_gradients(const T* a, const T* b, const float* g, T* da, int64_t count) {
  const float factor = static_cast<float>(2.0 * *g / static_cast<double>(count));
  for_grid_elements<T>(count, unaligned_head(count, a, b, da), [&](int64_t i, auto n) {
    auto left = load_some<n.value>(a + i);
    const auto right = load_some<n.value>(b + i);
#pragma unroll
    for (int k = 0; k < n.value; ++k) left.values[k] = (left.values[k] - right.values[k]) * factor;
    store_some(da + i, left);
  });
}

template <class T>
__global__ void scale_elements(T* x, const float* scale, int64_t count) {
  const float factor = *scale;
  if (factor == 1) return;
  for_grid_elements<T>(count, unaligned_head(count, x), [&](int64_t i, auto n) {
    auto value = load_some<n.value>(x + i);
#pragma unroll
    for (float& v : value.values) v *= factor;
    store_some(x + i, value);
  });
}

}  // namespace

void entropy_sums(const EntropySums& e) { start(entropy_totals, 1, kJoinThreads, 0, e); }

void entropy_forward(const EntropyForward& e) {
  if (e.rows == 0) return;
  with_storage(e.dtype, [&]<class T>(T) {
    with_group(e.rows, e.C, [&]<class Group>(std::type_identity<Group>, unsigned blocks, unsigned threads) {
      start(entropy_rows<T, Group>, blocks, threads, 0, e);
    });
  });
}

void entropy_mean(const EntropyMean& e) { start(mean_cost, 1, kJoinThreads, 0, e); }

void entropy_backward(const EntropyBackward& e) {
  if (e.rows == 0 || e.C == 0) return;
  with_storage(e.dtype, [&]<class T>(T) {
    with_group(e.rows, e.C, [&]<class Group>(std::type_identity<Group>, unsigned blocks, unsigned threads) {
      start(entropy_gradients<T, Group>, blocks, threads, 0, e);
    });
  });
}

void squared_error_forward(const SquaredErrorForward& e) {
  double* const sums = static_cast<double*>(e.workspace);
  const int64_t pieces = divide_up(e.count, e.kPiece);
  if (pieces > 0)
    with_storage(e.dtype, [&]<class T>(T) {
      start(square_sums<T>, static_cast<unsigned>(pieces), 256, 0, static_cast<const T*>(e.a), static_cast<const T*>(e.b), e.count, sums);
    });
  start(mean_square, 1, kJoinThreads, 0, sums, pieces, e.count, e.loss);
}

void squared_error_backward(const SquaredErrorBackward& e) {
  if (e.count == 0) return;
  with_storage(e.dtype, [&]<class T>(T) {
    start(square_gradients<T>, element_blocks<T>(e.count), 256, 0, static_cast<const T*>(e.a), static_cast<const T*>(e.b), e.g,
          static_cast<T*>(e.da), e.count);
  });
}

void scale_in_place(const ScaleInPlace& s) {
  if (s.count == 0) return;
  with_storage(s.dtype,
               [&]<class T>(T) { start(scale_elements<T>, element_blocks<T>(s.count), 256, 0, static_cast<T*>(s.x), s.factor, s.count); });
}

}  // namespace heed::cuda
