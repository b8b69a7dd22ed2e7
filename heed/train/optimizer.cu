// Steps over all parameters at once: a table of tensors is a parameter of the kernel, and every block finds the piece of a tensor that it
// works on. A model of 150 tensors takes a few launches.
#include "heed/cuda/row.cuh"
#include "heed/train/optimizer_kernels.h"

namespace heed::cuda {
namespace {

constexpr unsigned kThreads = 256;
constexpr int64_t kStepPiece = 1 << 12;  // elements for one block
constexpr size_t kTableBytes = 3584;     // of the 4 KiB that the parameters of a kernel have on every GPU

// Some tensors of a list, and the first block of each.
template <class Tensor>
struct Table {
  static constexpr int kCount = static_cast<int>((kTableBytes - 8) / (sizeof(Tensor) + sizeof(unsigned)));
  Tensor tensors[kCount];
  unsigned first_block[kCount];
  int count = 0;
};

// One block's elements of one tensor: [begin, begin + count).
template <class Tensor>
struct Piece {
  const Tensor& tensor;
  int64_t begin, count;
};

// The last tensor that begins at or before the block; tensors without elements are not in the table.
template <int64_t size, class Tensor>
__device__ Piece<Tensor> piece_of(const Table<Tensor>& table) {
  int low = 0, high = table.count;
  while (high - low > 1) {
    const int middle = (low + high) / 2;
    (table.first_block[middle] <= blockIdx.x ? low : high) = middle;
  }
  const Tensor& tensor = table.tensors[low];
  const int64_t begin = int64_t{blockIdx.x - table.first_block[low]} * size, rest = tensor.count - begin;
  return {tensor, begin, rest < size ? rest : size};
}

// launch(table, blocks) for tables that hold all tensors, in order.
template <int64_t size, class Tensor, class Launch>
void for_tables(const Tensor* tensors, int64_t tensor_count, const Launch& launch_table) {
  constexpr int64_t most = (int64_t{1} << 31) - 1;
  Table<Tensor> table;
  int64_t blocks = 0;
  const auto finish = [&] {
    if (table.count > 0) launch_table(table, static_cast<unsigned>(blocks));
    table.count = 0;
    blocks = 0;
  };
  for (const Tensor* t = tensors; t < tensors + tensor_count; ++t) {
    if (t->count == 0) continue;
    const int64_t more = divide_up(t->count, size);
    if (table.count == Table<Tensor>::kCount || blocks + more > most) finish();
    table.tensors[table.count] = *t;
    table.first_block[table.count++] = static_cast<unsigned>(blocks);
    blocks += more;
  }
  finish();
}

__device__ bool is_finite(const float* norm) { return norm == nullptr || isfinite(*norm); }

__device__ float scale_of(const StepClipping& clipping) {
  return clipping.norm && *clipping.norm > clipping.limit ? clipping.limit / *clipping.norm : 1.0f;
}

// The unvectorized head of a loop that also writes the bf16 copy, 8 bytes at a time: all elements if the copy is not aligned after the
// head.
__device__ int64_t head_with_copy(int64_t head, int64_t count, const Bf16* copy) {
  return copy && reinterpret_cast<uintptr_t>(copy + head) % 8 != 0 ? count : head;
}

template <int count>
__device__ void store_rounded(Bf16* to, const Floats<count>& all) {
  if constexpr (count == 1) {
    store(to, all.values[0]);
  } else {
    static_assert(count == 4);
    const __nv_bfloat162 low = __floats2bfloat162_rn(all.values[0], all.values[1]);
    const __nv_bfloat162 high = __floats2bfloat162_rn(all.values[2], all.values[3]);
    *reinterpret_cast<uint2*>(to) = make_uint2(*reinterpret_cast<const uint32_t*>(&low), *reinterpret_cast<const uint32_t*>(&high));
  }
}

struct SgdNumbers {
  StepClipping clipping;
  float rate, momentum;
  bool nesterov;
  const StepNumbers* numbers;
};

// A scaled gradient is rounded before it is added, so that the result has the bits of a step over gradients that were scaled beforehand.
__global__ void __launch_bounds__(kThreads) sgd(const __grid_constant__ Table<StepTensor> table, SgdNumbers s) {
  if (!is_finite(s.clipping.norm)) return;
  if (s.numbers) s.rate = s.numbers->rate;
  const float scale = scale_of(s.clipping);
  const auto [tensor, begin, count] = piece_of<kStepPiece>(table);
  float *const w = tensor.w + begin, *const first = tensor.first ? tensor.first + begin : nullptr;
  Bf16* const copy = tensor.copy ? tensor.copy + begin : nullptr;
  const float *const g = tensor.g + begin, decay = tensor.decay;
  const int64_t head = head_with_copy(unaligned_head(count, w, g, first), count, copy);
  for_elements<float>(count, head, threadIdx.x, kThreads, [&](int64_t i, auto n) {
    auto weight = load_some<n.value>(w + i), gradient = load_some<n.value>(g + i);
    Floats<n.value> velocity{};
    if (first) velocity = load_some<n.value>(first + i);
#pragma unroll
    for (int k = 0; k < n.value; ++k) {
      float step = fmaf(weight.values[k], decay, __fmul_rn(gradient.values[k], scale));
      if (first) {
        float& v = velocity.values[k];
        v = fmaf(v, s.momentum, step);
        step = s.nesterov ? fmaf(v, s.momentum, step) : v;
      }
      weight.values[k] -= s.rate * step;
    }
    if (first) store_some(first + i, velocity);
    store_some(w + i, weight);
    if (copy) store_rounded(copy + i, weight);
  });
}

struct AdamNumbers {
  StepClipping clipping;
  float rate, beta1, beta2, eps, first_correction, second_correction;
  bool decoupled;
  const StepNumbers* numbers;
};

__global__ void __launch_bounds__(kThreads) adam(const __grid_constant__ Table<StepTensor> table, AdamNumbers s) {
  if (!is_finite(s.clipping.norm)) return;
  if (s.numbers)
    s.rate = s.numbers->rate, s.first_correction = s.numbers->first_correction, s.second_correction = s.numbers->second_correction;
  const float scale = scale_of(s.clipping), rate = s.rate * s.first_correction, root_correction = sqrtf(s.second_correction);
  const auto [tensor, begin, count] = piece_of<kStepPiece>(table);
  float *const w = tensor.w + begin, *const first = tensor.first + begin, *const second = tensor.second + begin;
  Bf16* const copy = tensor.copy ? tensor.copy + begin : nullptr;
  const float* const g = tensor.g + begin;
  const int64_t head = head_with_copy(unaligned_head(count, w, g, first, second), count, copy);
  const float shrink = s.decoupled ? 1 - s.rate * tensor.decay : 1.0f, inside = s.decoupled ? 0.0f : tensor.decay;
  const float rest1 = 1 - s.beta1, rest2 = 1 - s.beta2;
  for_elements<float>(count, head, threadIdx.x, kThreads, [&](int64_t i, auto n) {
    auto weight = load_some<n.value>(w + i), gradient = load_some<n.value>(g + i);
    auto moment1 = load_some<n.value>(first + i), moment2 = load_some<n.value>(second + i);
#pragma unroll
    for (int k = 0; k < n.value; ++k) {
      float &x = weight.values[k], &m = moment1.values[k], &v = moment2.values[k];
      const float d = fmaf(x, inside, __fmul_rn(gradient.values[k], scale));
      m = fmaf(m, s.beta1, d * rest1);
      v = fmaf(v, s.beta2, d * d * rest2);
      x = x * shrink - rate * m / fmaf(sqrtf(v), root_correction, s.eps);
    }
    store_some(first + i, moment1);
    store_some(second + i, moment2);
    store_some(w + i, weight);
    if (copy) store_rounded(copy + i, weight);
  });
}

// squares: one number for each block
__global__ void __launch_bounds__(kThreads) square_sums(const __grid_constant__ Table<StepTensor> table, double* squares) {
  __shared__ double scratch[32];
  const auto [tensor, begin, count] = piece_of<GradientNorm::kPiece>(table);
  const float* const g = tensor.g + begin;
  float mine[4] = {};  // short float sums, joined in double
  for_elements<float>(count, unaligned_head(count, g), threadIdx.x, kThreads, [&](int64_t i, auto n) {
    const auto gradient = load_some<n.value>(g + i);
#pragma unroll
    for (int k = 0; k < n.value; ++k) mine[k] = fmaf(gradient.values[k], gradient.values[k], mine[k]);
  });
  const double sum = block_sum((static_cast<double>(mine[0]) + mine[1]) + (static_cast<double>(mine[2]) + mine[3]), scratch);
  if (threadIdx.x == 0) squares[blockIdx.x] = sum;
}

__global__ void join_squares(const double* squares, int64_t pieces, float* norm) {
  __shared__ double scratch[32];
  double mine = 0;
  for (int64_t i = threadIdx.x; i < pieces; i += blockDim.x) mine += squares[i];
  const double total = block_sum(mine, scratch);
  if (threadIdx.x == 0) *norm = static_cast<float>(sqrt(total));
}

__global__ void __launch_bounds__(kThreads) scale_pieces(const __grid_constant__ Table<StepTensor> table, StepClipping clipping) {
  const float scale = scale_of(clipping);
  if (scale == 1) return;
  const auto [tensor, begin, count] = piece_of<kStepPiece>(table);
  float* const g = tensor.g + begin;
  for_elements<float>(count, unaligned_head(count, g), threadIdx.x, kThreads, [&](int64_t i, auto n) {
    auto gradient = load_some<n.value>(g + i);
#pragma unroll
    for (float& x : gradient.values) x *= scale;
    store_some(g + i, gradient);
  });
}

__global__ void __launch_bounds__(kThreads)
    average_pieces(const __grid_constant__ Table<AverageTensor> table, const float* norm, float share, const StepNumbers* numbers) {
  if (!is_finite(norm)) return;
  if (numbers) share = numbers->average_share;
  const auto [tensor, begin, count] = piece_of<kStepPiece>(table);
  float* const average = tensor.average + begin;
  const float* const w = tensor.w + begin;
  for_elements<float>(count, unaligned_head(count, average, w), threadIdx.x, kThreads, [&](int64_t i, auto n) {
    auto before = load_some<n.value>(average + i);
    const auto now = load_some<n.value>(w + i);
#pragma unroll
    for (int k = 0; k < n.value; ++k) before.values[k] = fmaf(now.values[k] - before.values[k], share, before.values[k]);
    store_some(average + i, before);
  });
}

__global__ void __launch_bounds__(kThreads) swap_all(float* a, float* b, int64_t count) {
  for_grid_elements<float>(count, unaligned_head(count, a, b), [&](int64_t i, auto n) {
    const auto left = load_some<n.value>(a + i), right = load_some<n.value>(b + i);
    store_some(a + i, right);
    store_some(b + i, left);
  });
}

}  // namespace

void sgd_step(const SgdStep& s) {
  const SgdNumbers numbers{s.clipping, s.rate, s.momentum, s.nesterov, s.numbers};
  for_tables<kStepPiece>(s.tensors, s.tensor_count,
                         [&](const auto& table, unsigned blocks) { start(sgd, blocks, kThreads, 0, table, numbers); });
}

void adam_step(const AdamStep& s) {
  const AdamNumbers numbers{.clipping = s.clipping,
                            .rate = s.rate,
                            .beta1 = s.beta1,
                            .beta2 = s.beta2,
                            .eps = s.eps,
                            .first_correction = s.first_correction,
                            .second_correction = s.second_correction,
                            .decoupled = s.decoupled,
                            .numbers = s.numbers};
  for_tables<kStepPiece>(s.tensors, s.tensor_count,
                         [&](const auto& table, unsigned blocks) { start(adam, blocks, kThreads, 0, table, numbers); });
}

void compute_gradient_norm(const GradientNorm& args) {
  double* squares = static_cast<double*>(args.workspace);
  for_tables<GradientNorm::kPiece>(args.tensors, args.tensor_count, [&](const auto& table, unsigned blocks) {
    start(square_sums, blocks, kThreads, 0, table, squares);
    squares += blocks;
  });
  start(join_squares, 1, 1024, 0, static_cast<const double*>(args.workspace), squares - static_cast<double*>(args.workspace), args.norm);
}

void scale_gradients(const ScaleGradients& args) {
  for_tables<kStepPiece>(args.tensors, args.tensor_count,
                         [&](const auto& table, unsigned blocks) { start(scale_pieces, blocks, kThreads, 0, table, args.clipping); });
}

void move_averages(const MoveAverages& args) {
  for_tables<kStepPiece>(args.tensors, args.tensor_count, [&](const auto& table, unsigned blocks) {
    start(average_pieces, blocks, kThreads, 0, table, args.norm, args.share, args.numbers);
  });
}

void swap_elements(const SwapElements& args) {
  if (args.count == 0) return;
  start(swap_all, element_blocks<float>(args.count), kThreads, 0, args.a, args.b, args.count);
}

}  // namespace heed::cuda
