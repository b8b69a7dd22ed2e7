// Flash-style attention (Dao et al. 2022) on the CPU, forward: blocks of queries meet blocks of keys in cache; a running
// maximum and sum make the softmax exact. Tasks are cut by shape alone.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "heed/attention/forward.cc"
#include "hwy/foreach_target.h"
// after foreach_target
#include "heed/attention/blocks.h"
#include "heed/attention/softmax_rows.h"
#include "heed/core/parallel.h"

#ifndef HEED_ATTENTION_FORWARD_TYPES
#define HEED_ATTENTION_FORWARD_TYPES
namespace heed {

struct ForwardWork {
  const AttentionPlan* plan;
  TokenRows q, k, v, out;   // (B, H, N, D), (B, G, M, D), (B, G, M, width_e), (B, H, N, E)
  float *log_total, *peak;  // (B H, N), (B H, N, 2)
  int64_t width_e, query_block, key_block;
  int64_t stretches;  // of the queries of a head, each a task; they differ by one block at most
  float* transposed;  // (B G, panels of M): the keys of all heads, turned once for their stretches; null: tasks turn their own
};

}  // namespace heed
#endif

HWY_BEFORE_NAMESPACE();
namespace heed {
namespace HWY_NAMESPACE {

// All queries of a stretch, of every head that shares a key head, against all keys.
void forward_task(const ForwardWork& w, int64_t key_head, int64_t first, int64_t last) {
  const AttentionPlan& plan = *w.plan;
  const AttentionSizes& z = plan.sizes;
  const int64_t b = key_head / z.G, g = key_head % z.G, group = z.H / z.G, first_head = g * group, E = w.width_e;
  const int64_t queries = last - first, stride = w.key_block + kRowPadding;
  const bool content = plan.beta != 0;
  const int64_t own_panels = content && !w.transposed ? panels_size(w.key_block, z.D) : 0,
                padded_queries = (group * queries + 15) / 16 * 16;
  const Tensor scratch = Tensor::empty({own_panels + w.query_block * stride + group * queries * E + 2 * padded_queries + w.key_block});
  float *own = raw<float>(scratch), *s = own + own_panels, *sums = s + w.query_block * stride, *tops = sums + group * queries * E;
  float *totals = tops + padded_queries, *factors = totals + padded_queries;
  std::fill_n(sums, group * queries * E, 0.0f);
  std::fill_n(tops, padded_queries, -HUGE_VALF);
  std::fill_n(totals, padded_queries, 0.0f);

  for (int64_t j0 = 0; j0 < z.M; j0 += w.key_block) {
    const int64_t j1 = std::min(z.M, j0 + w.key_block);
    const float* transposed = !content ? nullptr : w.transposed ? w.transposed + key_head * panels_size(z.M, z.D) + j0 * z.D : own;
    bool to_turn = transposed == own;
    for (int64_t member = 0; member < group; ++member)
      for (int64_t i0 = first; i0 < last; i0 += w.query_block) {
        ScoreBlock x = plan.block(b, first_head + member, i0, std::min(last, i0 + w.query_block), j0, j1);
        if (!narrow(plan.terms, x)) continue;
        if (to_turn) transpose_panels(w.k.at(b, g, j0), w.k.token, j1 - j0, z.D, plan.beta, own);
        to_turn = false;
        const int64_t place = member * queries + i0 - first, keys = x.keys();
        fill_scores(plan, x, w.q.at(b, x.h, i0), w.q.token, transposed ? transposed + (x.j0 - j0) * z.D : nullptr, s, stride);
        for (int64_t r = 0; r < x.rows(); ++r) {
          float *row = s + r * stride, *sum = sums + (place + r) * E;
          float &row_max = tops[place + r], &row_sum = totals[place + r];
          const float rescale = plan.hard ? hard_row(row, keys, row_max, row_sum) : soft_row(row, keys, row_max, row_sum);
          if (rescale != 1) for_lanes(E, [&](int64_t e, auto load, auto store) HEED_LANES { store(sum + e, load(sum + e) * rescale); });
          if (plan.dropout > 0) {
            drop_factors(plan, {b, x.h, i0 + r}, x.j0, keys, factors);
            for_lanes(keys, [&](int64_t j, auto load, auto store) HEED_LANES { store(row + j, load(row + j) * load(factors + j)); });
          }
        }
        tile_product({s, stride, 1}, w.v.at(b, g, x.j0), w.v.token, sums + place * E, E, x.rows(), E, keys, true);
      }
  }

  for (int64_t member = 0; member < group; ++member)
    for (int64_t r = 0; r < queries; ++r) {
      const int64_t at = (b * z.H + first_head + member) * z.N + first + r, place = member * queries + r;
      const float row_sum = totals[place], share = row_sum > 0 ? 1 / row_sum : 0.0f;
      const float* sum = sums + place * E;
      float* to = w.out.at(b, first_head + member, first + r);
      for_lanes(z.E, [&](int64_t e, auto load, auto store) HEED_LANES { store(to + e, load(sum + e) * share); });
      if (w.log_total) w.log_total[at] = row_sum > 0 ? tops[place] + std::log(row_sum) : HUGE_VALF;  // e^(s - infinity) = 0: no gradient
      if (w.peak) {
        w.peak[2 * at] = tops[place];
        w.peak[2 * at + 1] = share;
      }
    }
}

void forward_all(const ForwardWork& w) {
  const AttentionSizes& z = w.plan->sizes;
  const int64_t key_blocks = (z.M + w.key_block - 1) / w.key_block;
  if (w.transposed)
    parallel_tasks(z.B * z.G * key_blocks, [&](int64_t task) {
      const int64_t head = task / key_blocks, j0 = task % key_blocks * w.key_block;
      transpose_panels(w.k.at(head / z.G, head % z.G, j0), w.k.token, std::min(w.key_block, z.M - j0), z.D, w.plan->beta,
                       w.transposed + head * panels_size(z.M, z.D) + j0 * z.D);
    });
  const int64_t blocks = (z.N + w.query_block - 1) / w.query_block;
  const auto begin = [&](int64_t chunk_tokens) { return std::min(z.N, blocks * chunk_tokens / w.stretches * w.query_block); };
  parallel_tasks(z.B * z.G * w.stretches, [&](int64_t task) {
    const int64_t chunk_tokens = task % w.stretches;
    forward_task(w, task / w.stretches, begin(chunk_tokens), begin(chunk_tokens + 1));
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

Tensor padded(const Tensor& x, int64_t width) {
  if (x.size(-1) == width) return x;
  Shape shape = x.shape();
  shape[x.rank() - 1] = width;
  const Tensor wide = Tensor::zeros(shape);
  copy_into(x, wide.view(x.shape(), wide.strides()));
  return wide;
}

Tensor laid_like(const Tensor& x, int64_t width, bool zero) {
  const auto make = [&](const Shape& shape) { return zero ? Tensor::zeros(shape) : Tensor::empty(shape); };
  const bool heads_inside = x.strides()[1] < x.strides()[2];
  return heads_inside ? transpose(make({x.size(0), x.size(2), x.size(1), width}), 1, 2) : make({x.size(0), x.size(1), x.size(2), width});
}

int64_t padded_width(int64_t width) { return HWY_DYNAMIC_DISPATCH(registers_for)(width); }

Tensor attention_forward(const AttentionPlan& plan, const Tensor& q, const Tensor& k, const Tensor& v, AttentionTotals& totals) {
  const NoGrad quiet;
  const AttentionSizes& z = plan.sizes;
  const int64_t width_e = padded_width(z.E);
  const Tensor wide_v = padded(v, width_e), out = laid_like(q, z.E);
  (plan.hard ? totals.peak : totals.log_total) = plan.hard ? Tensor::empty({z.B, z.H, z.N, 2}) : Tensor::empty({z.B, z.H, z.N});
  // Enough tasks to share, few enough that reading all keys for each does not matter, and sums that stay in the second cache.
  const int64_t query_block = query_block_of(z.N), blocks = (z.N + query_block - 1) / query_block;
  const int64_t most = std::max<int64_t>(1, 8 * z.G / std::max<int64_t>(z.H, 1));
  const int64_t heads = std::max<int64_t>(1, z.B * z.G), wanted = std::max((16 + heads - 1) / heads, (blocks + most - 1) / most);
  const int64_t stretches = std::clamp<int64_t>(wanted, 1, std::max<int64_t>(blocks, 1));
  const bool share_keys = stretches > 1 && plan.beta != 0;
  const Tensor transposed = share_keys ? Tensor::empty({z.B * z.G, HWY_DYNAMIC_DISPATCH(floats_of_panels)(z.M, z.D)}) : Tensor();
  HWY_DYNAMIC_DISPATCH(forward_all)
  ({.plan = &plan,
    .q = token_rows(q),
    .k = token_rows(k),
    .v = token_rows(wide_v),
    .out = token_rows(out),
    .log_total = plan.hard ? nullptr : raw<float>(totals.log_total),
    .peak = plan.hard ? raw<float>(totals.peak) : nullptr,
    .width_e = width_e,
    .query_block = query_block,
    .key_block = even_block(z.M, z.D + z.E <= 256 ? 2 * kLargestKeyBlock : kLargestKeyBlock, kKeyUnit),
    .stretches = stretches,
    .transposed = share_keys ? raw<float>(transposed) : nullptr});
  return out;
}

}  // namespace heed
#endif
