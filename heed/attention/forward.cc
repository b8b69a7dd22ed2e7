// Flash-style attention (Dao et al. 2022) on the CPU, forward: scores of a block of queries and a block of keys stay in cache; a running
// maximum and sum make the softmax exact. Tasks are cut by shape alone.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "heed/attention/forward.cc"
#include "hwy/foreach_target.h"
// after foreach_target
#include "heed/attention/blocks.h"
#include "heed/attention/hopper_case.h"
#include "heed/attention/softmax_rows.h"
#include "heed/attention/work.h"
#include "heed/core/parallel.h"

#ifndef HEED_ATTENTION_FORWARD_TYPES
#define HEED_ATTENTION_FORWARD_TYPES
namespace heed {

// How a call is cut.
struct ForwardSplit {
  int64_t query_block, key_block;
  int64_t splits;   // of the queries of a head, each a task; they differ by one block at most
  bool share_keys;  // the keys of all heads are transposed once for their splits, else every task transposes its own

  // Enough tasks to share, few enough that reading all keys for each does not matter, and sums that stay in the second cache.
  explicit ForwardSplit(const ScoreArgs& a) {
    const AttentionSizes& z = a.sizes;
    query_block = query_block_of(z.N);
    key_block = even_block(z.M, z.D + z.E <= 256 ? 2 * kLargestKeyBlock : kLargestKeyBlock, kKeyUnit);
    const int64_t blocks = (z.N + query_block - 1) / query_block, most = std::max<int64_t>(1, 8 * z.G / std::max<int64_t>(z.H, 1));
    const int64_t heads = std::max<int64_t>(1, z.B * z.G), wanted = std::max((16 + heads - 1) / heads, (blocks + most - 1) / most);
    splits = std::clamp<int64_t>(wanted, 1, std::max<int64_t>(blocks, 1));
    share_keys = splits > 1 && a.beta != 0;
  }
};

}  // namespace heed
#endif

HWY_BEFORE_NAMESPACE();
namespace heed {
namespace HWY_NAMESPACE {

// All queries of a split, of every head that shares a key head, against all keys.
void forward_task(const AttentionForward& w, const ForwardSplit& split, int64_t key_head, int64_t first, int64_t last) {
  const ScoreArgs& a = w.scores;
  const AttentionSizes& z = a.sizes;
  const int64_t b = key_head / z.G, g = key_head % z.G, group = z.H / z.G, first_head = g * group, E = w.width_e;
  const int64_t queries = last - first, stride = split.key_block + kRowPadding;
  const bool content = a.beta != 0;
  const int64_t own_panels = content && !split.share_keys ? panels_size(split.key_block, z.D) : 0,
                padded_queries = (group * queries + 15) / 16 * 16;
  const int64_t q_size = content ? float_rows_size(w.dtype, split.query_block, z.D) : 0,
                v_size = float_rows_size(w.dtype, split.key_block, E);
  const Tensor scratch = Tensor::empty(
      {own_panels + split.query_block * stride + group * queries * E + 2 * padded_queries + split.key_block + q_size + v_size}, kCpu);
  float *own = raw<float>(scratch), *s = own + own_panels, *sums = s + split.query_block * stride, *row_max = sums + group * queries * E;
  float *row_sum = row_max + padded_queries, *factors = row_sum + padded_queries, *own_q = factors + split.key_block,
        *own_v = own_q + q_size;
  std::fill_n(sums, group * queries * E, 0.0f);
  std::fill_n(row_max, padded_queries, -HUGE_VALF);
  std::fill_n(row_sum, padded_queries, 0.0f);

  for (int64_t j0 = 0; j0 < z.M; j0 += split.key_block) {
    const int64_t j1 = std::min(z.M, j0 + split.key_block);
    const int64_t shared = key_head * panels_size(z.M, z.D) + j0 * z.D;
    const float* transposed = !content ? nullptr : split.share_keys ? static_cast<const float*>(w.workspace) + shared : own;
    bool to_load = true;
    FloatRows v{};
    for (int64_t member = 0; member < group; ++member)
      for (int64_t i0 = first; i0 < last; i0 += split.query_block) {
        ScoreBlock x = a.block(b, first_head + member, i0, std::min(last, i0 + split.query_block), j0, j1);
        if (!narrow(a.terms, x)) continue;
        if (to_load) {
          if (transposed == own) transpose_panels(w.k, w.dtype, b, g, j0, j1 - j0, z.D, a.beta, own);
          v = float_rows(w.v, w.dtype, b, g, j0, j1 - j0, z.E, E, own_v);
          to_load = false;
        }
        const int64_t place = member * queries + i0 - first, keys = x.keys();
        const FloatRows q = content ? float_rows(w.q, w.dtype, b, x.h, i0, x.rows(), z.D, z.D, own_q) : FloatRows{};
        fill_scores(a, x, q, transposed ? transposed + (x.j0 - j0) * z.D : nullptr, s, stride);
        for (int64_t r = 0; r < x.rows(); ++r) {
          float *row = s + r * stride, *sum = sums + (place + r) * E, &largest = row_max[place + r], &total = row_sum[place + r];
          const float rescale = a.hard ? hard_row(row, keys, largest, total) : soft_row(row, keys, largest, total);
          if (rescale != 1) for_lanes(E, [&](int64_t e, auto load, auto store) HEED_LANES { store(sum + e, load(sum + e) * rescale); });
          if (a.dropout > 0) {
            drop_factors(a, {b, x.h, i0 + r}, x.j0, keys, factors);
            for_lanes(keys, [&](int64_t j, auto load, auto store) HEED_LANES { store(row + j, load(row + j) * load(factors + j)); });
          }
        }
        tile_product({s, stride, 1}, v.data + (x.j0 - j0) * v.stride, v.stride, sums + place * E, E, x.rows(), E, keys, true);
      }
  }

  for (int64_t member = 0; member < group; ++member)
    for (int64_t r = 0; r < queries; ++r) {
      const int64_t at = (b * z.H + first_head + member) * z.N + first + r, place = member * queries + r;
      const float total = row_sum[place], share = total > 0 ? 1 / total : 0.0f;
      store_row(w.out, w.dtype, b, first_head + member, first + r, sums + place * E, z.E, share);
      if (w.log_sum) w.log_sum[at] = total > 0 ? row_max[place] + std::log(total) : HUGE_VALF;  // e^(s - infinity) = 0: no gradient
      if (w.peak) {
        w.peak[2 * at] = row_max[place];
        w.peak[2 * at + 1] = share;
      }
    }
}

void forward_all(const AttentionForward& w) {
  const AttentionSizes& z = w.scores.sizes;
  const ForwardSplit split(w.scores);
  const int64_t key_blocks = (z.M + split.key_block - 1) / split.key_block;
  if (split.share_keys)
    parallel_tasks(z.B * z.G * key_blocks, [&](int64_t task) {
      const int64_t head = task / key_blocks, j0 = task % key_blocks * split.key_block;
      transpose_panels(w.k, w.dtype, head / z.G, head % z.G, j0, std::min(split.key_block, z.M - j0), z.D, w.scores.beta,
                       static_cast<float*>(w.workspace) + head * panels_size(z.M, z.D) + j0 * z.D);
    });
  const int64_t blocks = (z.N + split.query_block - 1) / split.query_block;
  const auto begin = [&](int64_t index) { return std::min(z.N, blocks * index / split.splits * split.query_block); };
  parallel_tasks(z.B * z.G * split.splits, [&](int64_t task) {
    const int64_t index = task % split.splits;
    forward_task(w, split, task / split.splits, begin(index), begin(index + 1));
  });
}

int64_t registers_for(int64_t width) { return whole_registers(width); }
int64_t floats_of_panels(int64_t keys, int64_t D) { return panels_size(keys, D); }

}  // namespace HWY_NAMESPACE
}  // namespace heed
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "heed/ops/ops.h"

namespace heed {

HWY_EXPORT(forward_all);
HWY_EXPORT(registers_for);
HWY_EXPORT(floats_of_panels);

void cpu::attention_forward(const AttentionForward& args) { HWY_DYNAMIC_DISPATCH(forward_all)(args); }

// On the CPU: the transposed keys of all heads, (B G, panels of M). On GPUs: what the kernels for Hopper need.
int64_t AttentionForward::workspace_bytes(Device device) const {
  const AttentionSizes& z = scores.sizes;
  if (device.kind != Device::Kind::cpu) return hopper_forward_workspace(*this);
  if (!ForwardSplit(scores).share_keys) return 0;
  return z.B * z.G * HWY_DYNAMIC_DISPATCH(floats_of_panels)(z.M, z.D) * static_cast<int64_t>(sizeof(float));
}

Tensor padded(const Tensor& x, int64_t width) {
  if (x.size(-1) == width || x.dtype() == DType::bf16) return x;
  Shape shape = x.shape();
  shape[x.rank() - 1] = width;
  const Tensor wide = Tensor::zeros(shape, x.dtype(), x.device());
  copy_into(x, wide.view(x.shape(), wide.strides()));
  return wide;
}

Tensor strided_like(const Tensor& x, int64_t width, bool zero) {
  const auto make = [&](const Shape& shape) {
    return zero ? Tensor::zeros(shape, x.dtype(), x.device()) : Tensor::empty(shape, x.dtype(), x.device());
  };
  const bool heads_inside = x.strides()[1] < x.strides()[2];
  return heads_inside ? transpose(make({x.size(0), x.size(2), x.size(1), width}), 1, 2) : make({x.size(0), x.size(1), x.size(2), width});
}

int64_t padded_width(int64_t width, Device device) {
  return cuda::computing_device(device) == kCpu ? HWY_DYNAMIC_DISPATCH(registers_for)(width) : width;
}

Tensor forward_in_blocks(const AttentionPlan& plan, const Tensor& q, const Tensor& k, const Tensor& v, SoftmaxRows& rows) {
  const NoGrad quiet;
  const AttentionSizes& z = plan.sizes;
  const Device device = q.device();
  const int64_t width_e = padded_width(z.E, device);
  const Tensor wide_v = padded(v, width_e), out = strided_like(q, z.E);
  (plan.hard ? rows.peak : rows.log_sum) = Tensor::empty(plan.hard ? Shape{z.B, z.H, z.N, 2} : Shape{z.B, z.H, z.N}, DType::f32, device);
  launch(attention_forward, device,
         {.scores = score_args(plan, device),
          .q = token_rows(q),
          .k = token_rows(k),
          .v = token_rows(wide_v),
          .out = token_rows(out),
          .log_sum = plan.hard ? nullptr : raw<float>(rows.log_sum),
          .peak = plan.hard ? raw<float>(rows.peak) : nullptr,
          .width_e = width_e,
          .dtype = q.dtype()});
  return out;
}

}  // namespace heed
#endif
