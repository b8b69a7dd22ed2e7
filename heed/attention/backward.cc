// Flash-style attention, backward: scores are computed again block by block. A task owns some blocks of keys, whose
// gradients it sums alone; gradients of queries and of terms are summed per task and joined in a fixed order.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "heed/attention/backward.cc"
#include "hwy/foreach_target.h"
// after foreach_target
#include "heed/attention/blocks.h"
#include "heed/attention/softmax_rows.h"
#include "heed/core/parallel.h"
#include "heed/ops/row_reduce.h"

#ifndef HEED_ATTENTION_BACKWARD_TYPES
#define HEED_ATTENTION_BACKWARD_TYPES
namespace heed {

// Where a task sums the gradient of one tensor of a term.
struct GradientSink {
  float* data;
  int64_t per_part, per_head;
  float* at(int64_t part, int64_t head) const { return data + part * per_part + head * per_head; }
};

struct BackwardWork {
  const AttentionPlan* plan;
  TokenRows q, k, v, g;                   // (B, H, N, width_d), (B, G, M, width_d), (B, G, M, width_e), (B, H, N, width_e)
  const float *log_total, *delta, *peak;  // (B H, N), (B H, N): sum of g out, null when scores get no gradient, (B H, N, 2) when hard
  TokenRows dq, dk, dv;                   // (B, H, N, width_d) of the first part, (B, G, M, D), (B, G, M, E)
  int64_t dq_part;                        // from one part's dq to the next
  int64_t width_d, width_e, query_block, key_block;
  int64_t bending;                               // terms that bend scores
  int64_t parts;                                 // of the keys of a head, each a task
  std::vector<std::vector<GradientSink>> sinks;  // of every term; empty: not wanted
};

// What a task works in.
struct BackwardScratch {
  float *s, *ds;            // (query_block, stride); zeros lie before and behind every row of ds
  float *keys, *values;     // turned
  float *dk, *dv;           // (key_block, width)
  float *factors, *slopes;  // of dropout; of terms that bend scores, a block each
  int64_t stride;
};

}  // namespace heed
#endif

HWY_BEFORE_NAMESPACE();
namespace heed {
namespace HWY_NAMESPACE {

// A row of scores becomes weights, a row of their gradients that of scores. The plain case first: it must be quick.
HWY_INLINE void weigh_row(const BackwardWork& w, const ScoreRow& row, int64_t at, const ScoreBlock& x, float* p, float* d, float* factors) {
  if (!w.plan->hard && w.plan->dropout == 0) {
    const Lanes log_total = w.log_total[at], delta = w.delta[at];
    for_lanes(x.keys(), [&](int64_t j, auto load, auto store) HEED_LANES {
      const Lanes weight = exp_below(load(p + j) - log_total);
      store(p + j, weight);
      store(d + j, weight * (load(d + j) - delta));
    });
    return;
  }
  if (w.plan->dropout > 0) {
    drop_factors(*w.plan, row, x.j0, x.keys(), factors);
  } else {
    std::fill_n(factors, x.keys(), 1.0f);
  }
  const bool hard = w.plan->hard;
  const Lanes peak = hard ? w.peak[2 * at] : 0.0f, share = hard ? w.peak[2 * at + 1] : 0.0f;
  const Lanes log_total = w.delta ? w.log_total[at] : HUGE_VALF, delta = w.delta ? w.delta[at] : 0.0f;
  for_lanes(x.keys(), [&](int64_t j, auto load, auto store) HEED_LANES {
    const Lanes s = load(p + j), soft = exp_below(s - log_total), kept = load(factors + j);
    store(p + j, kept * (hard ? select(s == peak, share, Lanes(0)) : soft));
    store(d + j, soft * (kept * load(d + j) - delta));
  });
}

// One block of queries against one of keys: adds to dq (of this part), dk, dv and to the terms' sinks. The first block of a part sets dq.
void backward_block(const BackwardWork& w, const ScoreBlock& x, int64_t part, bool first_keys, const BackwardScratch& t) {
  const AttentionPlan& plan = *w.plan;
  const AttentionSizes& z = plan.sizes;
  const int64_t rows = x.rows(), keys = x.keys(), first = x.i0 - x.first, at = (x.b * z.H + x.h) * z.N + first;
  const int64_t g_head = x.h / (z.H / z.G), shift = x.j0 / w.key_block * w.key_block;  // where the block of keys begins
  const float *q = w.q.at(x.b, x.h, first), *g = w.g.at(x.b, x.h, first);
  float *dk = t.dk + (x.j0 - shift) * w.width_d, *dv = t.dv + (x.j0 - shift) * w.width_e;
  fill_scores(plan, x, q, w.q.token, plan.beta != 0 ? t.keys + (x.j0 - shift) * z.D : nullptr, t.s, t.stride, t.slopes);
  if (w.delta)
    tile_product({g, w.g.token, 1}, t.values + (x.j0 - shift) * z.E, panel_width(), t.ds, t.stride, rows, whole_registers(keys), z.E, false,
                 z.E * panel_width());
  for (int64_t r = 0; r < rows; ++r) {
    float* d = t.ds + r * t.stride;
    weigh_row(w, {x.b, x.h, first + r}, at + r, x, t.s + r * t.stride, d, t.factors);
    std::fill(d + keys, d + t.stride, 0.0f);
  }
  tile_product({t.s, 1, t.stride}, g, w.g.token, dv, w.width_e, keys, w.width_e, rows, true);
  if (!w.delta) return;
  unapply_terms(plan.terms, z, x, t.ds, t.stride, t.slopes + w.bending * rows * t.stride, [&](size_t term) {
    std::array<float*, 2> sinks{};
    for (size_t i = 0; i < w.sinks[term].size(); ++i) sinks[i] = w.sinks[term][i].at(part, x.b * z.H + x.h);
    return sinks;
  });
  if (plan.beta == 0) return;
  for (int64_t r = 0; r < rows; ++r) {
    float* d = t.ds + r * t.stride;
    for (int64_t j = 0; j < keys; j += lane_count()) (Lanes::load(d + j) * plan.beta).store(d + j);
  }
  tile_product({t.ds, 1, t.stride}, q, w.q.token, dk, w.width_d, keys, w.width_d, rows, true);
  tile_product({t.ds, t.stride, 1}, w.k.at(x.b, g_head, x.j0), w.k.token, w.dq.at(x.b, x.h, first) + part * w.dq_part, w.dq.token, rows,
               w.width_d, keys, !first_keys);
}

// Every parts-th block of keys of one key head, so that causal work is shared evenly.
void backward_task(const BackwardWork& w, int64_t key_head, int64_t part) {
  const AttentionPlan& plan = *w.plan;
  const AttentionSizes& z = plan.sizes;
  const int64_t b = key_head / z.G, g = key_head % z.G, group = z.H / z.G, first_head = g * group, stride = w.key_block + kRowPadding;
  const int64_t block = w.query_block * stride, turned_keys = panels_size(w.key_block, z.D), turned_values = panels_size(w.key_block, z.E);
  const int64_t key_sums = w.key_block * w.width_d, value_sums = w.key_block * w.width_e;
  const Tensor scratch =
      Tensor::empty({2 * block + kRowPadding + turned_keys + turned_values + key_sums + value_sums + w.key_block + w.bending * block});
  BackwardScratch t{};
  t.stride = stride;
  t.s = raw<float>(scratch);
  t.ds = t.s + block + kRowPadding;
  t.keys = t.ds + block;
  t.values = t.keys + turned_keys;
  t.dk = t.values + turned_values;
  t.dv = t.dk + key_sums;
  t.factors = t.dv + value_sums;
  t.slopes = t.factors + w.key_block;
  std::fill_n(t.ds - kRowPadding, kRowPadding, 0.0f);

  for (int64_t j0 = part * w.key_block; j0 < z.M; j0 += w.parts * w.key_block) {
    const int64_t keys = std::min(w.key_block, z.M - j0);
    const bool first_keys = j0 == part * w.key_block;
    std::fill_n(t.dk, keys * w.width_d, 0.0f);
    std::fill_n(t.dv, keys * w.width_e, 0.0f);
    bool is_turned = false;
    for (int64_t h = first_head; h < first_head + group; ++h)
      for (int64_t i0 = 0; i0 < z.N; i0 += w.query_block) {
        ScoreBlock x = plan.block(b, h, i0, std::min(z.N, i0 + w.query_block), j0, j0 + keys);
        if (!narrow(plan.terms, x)) {
          for (int64_t i = i0; first_keys && i < std::min(z.N, i0 + w.query_block); ++i)
            std::fill_n(w.dq.at(b, h, i) + part * w.dq_part, w.width_d, 0.0f);
          continue;
        }
        if (!is_turned) {
          if (plan.beta != 0) transpose_panels(w.k.at(b, g, j0), w.k.token, keys, z.D, plan.beta, t.keys);
          transpose_panels(w.v.at(b, g, j0), w.v.token, keys, z.E, 1, t.values);
          is_turned = true;
        }
        backward_block(w, x, part, first_keys, t);
      }
    for (int64_t j = 0; j < keys; ++j) {
      std::copy_n(t.dk + j * w.width_d, z.D, w.dk.at(b, g, j0 + j));
      std::copy_n(t.dv + j * w.width_e, z.E, w.dv.at(b, g, j0 + j));
    }
  }
}

void backward_all(const BackwardWork& w) {
  const AttentionSizes& z = w.plan->sizes;
  parallel_tasks(z.B * z.G * w.parts, [&](int64_t task) { backward_task(w, task / w.parts, task % w.parts); });
}

// delta: (B H, N) = sum over E of g out
void dot_rows(const AttentionSizes& z, const TokenRows& g, const TokenRows& out, float* delta) {
  parallel_for(z.B * z.H * z.N, rows_per_task(z.E), [&](int64_t begin, int64_t end) HWY_ATTR {
    for (int64_t at = begin; at < end; ++at) {
      const int64_t head = at / z.N, i = at % z.N;
      const float *left = g.at(head / z.H, head % z.H, i), *right = out.at(head / z.H, head % z.H, i);
      delta[at] = sum_over(z.E, [&](int64_t e, auto load) HEED_LANES { return load(left + e) * load(right + e); });
    }
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace heed
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "heed/ops/ops.h"

namespace heed {

HWY_EXPORT(backward_all);
HWY_EXPORT(dot_rows);

namespace {

// The gradient of one tensor of a term while tasks sum it, and joined.
struct SummedGradient {
  Tensor sums;
  Shape shape;
  Sums kind;

  SummedGradient(const TermTensor& x, const AttentionSizes& z, int64_t parts) : shape(x.tensor.shape()), kind(x.sums) {
    const int64_t heads = kind == Sums::queries ? z.B * z.H : z.H, size = x.tensor.count() / std::max<int64_t>(heads, 1);
    if (kind == Sums::map)
      sums = Tensor::zeros({1, z.B, z.H, z.N * z.M, 1});
    else
      sums = Tensor::zeros({parts, z.B, z.H, size, kind == Sums::numbers ? kSinkLanes : 1});
  }
  GradientSink sink() const {
    const int64_t per_head = sums.size(3) * sums.size(4);
    return {raw<float>(sums), kind == Sums::map ? 0 : sums.size(1) * sums.size(2) * per_head, per_head};
  }
  Tensor joined(const AttentionSizes& z) const {
    if (kind == Sums::map) return sum_to(reshape(sums, {z.B, z.H, z.N, z.M}), shape);
    return reshape(sum(sums, kind == Sums::queries ? Axes{0, 4} : Axes{0, 1, 4}), shape);
  }
};

}  // namespace

AttentionGradients attention_backward(const AttentionPlan& plan, const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& soft_out,
                                      const AttentionTotals& totals, const Tensor& g, const std::vector<bool>& wanted) {
  const NoGrad quiet;
  const AttentionSizes& z = plan.sizes;
  const int64_t width_d = padded_width(z.D), width_e = padded_width(z.E);
  const int64_t key_block = key_block_of(z.M), key_blocks = (z.M + key_block - 1) / key_block;
  const int64_t parts = std::clamp<int64_t>(16 / std::max<int64_t>(z.B * z.G, 1), 1, std::clamp<int64_t>(key_blocks, 1, 8));
  const Tensor wide_q = padded(q, width_d), wide_k = padded(k, width_d), wide_v = padded(v, width_e), wide_g = padded(g, width_e);
  const Tensor delta = soft_out.defined() ? Tensor::empty({z.B, z.H, z.N}) : Tensor();
  if (delta.defined()) HWY_DYNAMIC_DISPATCH(dot_rows)(z, token_rows(g), token_rows(soft_out), raw<float>(delta));
  // One part writes where q lies; several are dense, and summed.
  const bool in_place = parts == 1 && width_d == z.D, untouched = plan.beta == 0 || !delta.defined() || z.M == 0;
  const Shape shape_of_parts{parts, z.B, z.H, z.N, width_d};
  const Tensor dq = in_place ? laid_like(q, z.D, untouched) : untouched ? Tensor::zeros(shape_of_parts) : Tensor::empty(shape_of_parts);
  const Tensor dk = laid_like(k, z.D), dv = laid_like(v, z.E);
  const auto pointer = [](const Tensor& x) { return x.defined() ? raw<float>(x) : nullptr; };
  BackwardWork work{.plan = &plan,
                    .q = token_rows(wide_q),
                    .k = token_rows(wide_k),
                    .v = token_rows(wide_v),
                    .g = token_rows(wide_g),
                    .log_total = pointer(totals.log_total),
                    .delta = pointer(delta),
                    .peak = pointer(totals.peak),
                    .dq = token_rows(in_place ? dq : reshape(slice(dq, 0, 0, 1), {z.B, z.H, z.N, width_d})),
                    .dk = token_rows(dk),
                    .dv = token_rows(dv),
                    .dq_part = z.B * z.H * z.N * width_d,
                    .width_d = width_d,
                    .width_e = width_e,
                    .query_block = query_block_of(z.N),
                    .key_block = key_block,
                    .bending = std::count_if(plan.terms.begin(), plan.terms.end(), is_nonlinear),
                    .parts = parts,
                    .sinks = std::vector<std::vector<GradientSink>>(plan.terms.size())};

  std::vector<std::optional<SummedGradient>> summed;  // of every parameter, where a term has one that is wanted
  for (size_t i = 0; i < plan.terms.size(); ++i) {
    Term term = plan.terms[i];
    const std::vector<TermTensor> learned = learned_of(term, z);
    const auto first = wanted.begin() + static_cast<int64_t>(summed.size());
    const bool any = std::find(first, first + static_cast<int64_t>(learned.size()), true) != first + static_cast<int64_t>(learned.size());
    for (const TermTensor& x : learned) {
      summed.push_back(any ? std::optional<SummedGradient>({x, z, parts}) : std::nullopt);
      if (any) work.sinks[i].push_back(summed.back()->sink());
    }
  }
  HWY_DYNAMIC_DISPATCH(backward_all)(work);

  AttentionGradients grads{.q = in_place ? dq : contiguous(slice(sum(dq, {0}), -1, 0, z.D)), .k = dk, .v = dv, .parameters = {}};
  for (const auto& x : summed) grads.parameters.push_back(x ? x->joined(z) : Tensor());
  return grads;
}

}  // namespace heed
#endif
