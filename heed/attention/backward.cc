// Flash-style attention, backward: scores are computed again block by block. A task owns some blocks of keys, whose
// gradients it sums alone; gradients of queries and of terms are summed per task and joined in a fixed order.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "heed/attention/backward.cc"
#include "hwy/foreach_target.h"
// after foreach_target
#include "heed/attention/blocks.h"
#include "heed/attention/hopper_case.h"
#include "heed/attention/softmax_rows.h"
#include "heed/attention/work.h"
#include "heed/core/parallel.h"
#include "heed/ops/row_reduce.h"

#ifndef HEED_ATTENTION_BACKWARD_TYPES
#define HEED_ATTENTION_BACKWARD_TYPES
namespace heed {

// What a task works in.
struct BackwardScratch {
  float *s, *ds;            // (query_block, stride); there are zeros before and after every row of ds
  float *keys, *values;     // transposed
  float *q, *k, *g;         // bf16 widened: (query_block, width_d), (key_block, width_d), (query_block, width_e)
  float *dk, *dv;           // (key_block, width)
  float *factors, *slopes;  // of dropout; of terms that are not linear, a block each
  int64_t stride, query_block, key_block, nonlinear_terms;
};

}  // namespace heed
#endif

HWY_BEFORE_NAMESPACE();
namespace heed {
namespace HWY_NAMESPACE {

// A row of scores becomes weights, a row of their gradients that of scores. The plain case first: it must be fast.
HWY_INLINE void weight_row(const AttentionBackward& w, const ScoreRow& row, int64_t at, const ScoreBlock& x, float* p, float* d,
                           float* factors) {
  const ScoreArgs& a = w.scores;
  if (!a.hard && a.dropout == 0) {
    const Lanes log_sum = w.log_sum[at], delta = w.delta[at];
    for_lanes(x.keys(), [&](int64_t j, auto load, auto store) HEED_LANES {
      const Lanes weight = exp_below(load(p + j) - log_sum);
      store(p + j, weight);
      store(d + j, weight * (load(d + j) - delta));
    });
    return;
  }
  if (a.dropout > 0) {
    drop_factors(a, row, x.j0, x.keys(), factors);
  } else {
    std::fill_n(factors, x.keys(), 1.0f);
  }
  const bool hard = a.hard;
  const Lanes peak = hard ? w.peak[2 * at] : 0.0f, share = hard ? w.peak[2 * at + 1] : 0.0f;
  const Lanes log_sum = w.delta ? w.log_sum[at] : HUGE_VALF, delta = w.delta ? w.delta[at] : 0.0f;
  for_lanes(x.keys(), [&](int64_t j, auto load, auto store) HEED_LANES {
    const Lanes s = load(p + j), soft = exp_below(s - log_sum), kept = load(factors + j);
    store(p + j, kept * (hard ? select(s == peak, share, Lanes(0)) : soft));
    store(d + j, soft * (kept * load(d + j) - delta));
  });
}

// One block of queries against one of keys: adds to dq (of this part), dk, dv and to the terms' sinks. The first block of a part sets dq.
// k: the block of keys.
void backward_block(const AttentionBackward& w, const ScoreBlock& x, FloatRows k, int64_t part, bool first_keys, const BackwardScratch& t) {
  const ScoreArgs& a = w.scores;
  const AttentionSizes& z = a.sizes;
  const int64_t rows = x.rows(), keys = x.keys(), first = x.i0 - x.first, at = (x.b * z.H + x.h) * z.N + first;
  const int64_t shift = x.j0 / t.key_block * t.key_block;  // where the block of keys begins
  const FloatRows q = float_rows(w.q, w.dtype, x.b, x.h, first, rows, z.D, w.width_d, t.q);
  const FloatRows g = float_rows(w.g, w.dtype, x.b, x.h, first, rows, z.E, w.width_e, t.g);
  float *dk = t.dk + (x.j0 - shift) * w.width_d, *dv = t.dv + (x.j0 - shift) * w.width_e;
  fill_scores(a, x, q, a.beta != 0 ? t.keys + (x.j0 - shift) * z.D : nullptr, t.s, t.stride, t.slopes);
  if (w.delta)
    tile_product({g.data, g.stride, 1}, t.values + (x.j0 - shift) * z.E, panel_width(), t.ds, t.stride, rows, whole_registers(keys), z.E,
                 false, z.E * panel_width());
  for (int64_t r = 0; r < rows; ++r) {
    float* d = t.ds + r * t.stride;
    weight_row(w, {x.b, x.h, first + r}, at + r, x, t.s + r * t.stride, d, t.factors);
    std::fill(d + keys, d + t.stride, 0.0f);
  }
  tile_product({t.s, 1, t.stride}, g.data, g.stride, dv, w.width_e, keys, w.width_e, rows, true);
  if (!w.delta) return;
  unapply_terms(a.terms, z, x, t.ds, t.stride, t.slopes + t.nonlinear_terms * rows * t.stride, [&](int term, float** sinks) {
    for (int i = 0; i < 2; ++i) sinks[i] = w.sinks[term][i].at(part, x.b * z.H + x.h);
  });
  if (a.beta == 0) return;
  for (int64_t r = 0; r < rows; ++r) {
    float* d = t.ds + r * t.stride;
    for (int64_t j = 0; j < keys; j += lane_count()) (Lanes::load(d + j) * a.beta).store(d + j);
  }
  tile_product({t.ds, 1, t.stride}, q.data, q.stride, dk, w.width_d, keys, w.width_d, rows, true);
  tile_product({t.ds, t.stride, 1}, k.data + (x.j0 - shift) * k.stride, k.stride, w.dq.at(x.b, x.h, first) + part * w.dq_part, w.dq.token,
               rows, w.width_d, keys, !first_keys);
}

// Every parts-th block of keys of one key head, so that causal work is shared evenly.
void backward_task(const AttentionBackward& w, int64_t key_head, int64_t part) {
  const ScoreArgs& a = w.scores;
  const AttentionSizes& z = a.sizes;
  BackwardScratch t{};
  t.query_block = query_block_of(z.N);
  t.key_block = key_block_of(z.M);
  t.stride = t.key_block + kRowPadding;
  for (const TermArgs& term : a.terms) t.nonlinear_terms += visit_term(term, []<class T>(const T&) -> int { return kIsNonlinear<T>; });
  const int64_t b = key_head / z.G, g = key_head % z.G, group = z.H / z.G, first_head = g * group;
  const int64_t block = t.query_block * t.stride, panels_d = panels_size(t.key_block, z.D), panels_e = panels_size(t.key_block, z.E);
  const int64_t key_sums = t.key_block * w.width_d, value_sums = t.key_block * w.width_e;
  const int64_t q_size = float_rows_size(w.dtype, t.query_block, w.width_d), k_size = float_rows_size(w.dtype, t.key_block, w.width_d);
  const int64_t widened = q_size + k_size + float_rows_size(w.dtype, t.query_block, w.width_e);
  const Tensor scratch = Tensor::empty(
      {2 * block + kRowPadding + panels_d + panels_e + key_sums + value_sums + t.key_block + t.nonlinear_terms * block + widened}, kCpu);
  t.s = raw<float>(scratch);
  t.ds = t.s + block + kRowPadding;
  t.keys = t.ds + block;
  t.values = t.keys + panels_d;
  t.dk = t.values + panels_e;
  t.dv = t.dk + key_sums;
  t.factors = t.dv + value_sums;
  t.slopes = t.factors + t.key_block;
  t.q = t.slopes + t.nonlinear_terms * block;
  t.k = t.q + q_size;
  t.g = t.k + k_size;
  std::fill_n(t.ds - kRowPadding, kRowPadding, 0.0f);

  for (int64_t j0 = part * t.key_block; j0 < z.M; j0 += w.parts * t.key_block) {
    const int64_t keys = std::min(t.key_block, z.M - j0);
    const bool first_keys = j0 == part * t.key_block;
    std::fill_n(t.dk, keys * w.width_d, 0.0f);
    std::fill_n(t.dv, keys * w.width_e, 0.0f);
    bool is_loaded = false;
    FloatRows k{};
    for (int64_t h = first_head; h < first_head + group; ++h)
      for (int64_t i0 = 0; i0 < z.N; i0 += t.query_block) {
        ScoreBlock x = a.block(b, h, i0, std::min(z.N, i0 + t.query_block), j0, j0 + keys);
        if (!narrow(a.terms, x)) {
          for (int64_t i = i0; first_keys && i < std::min(z.N, i0 + t.query_block); ++i)
            std::fill_n(w.dq.at(b, h, i) + part * w.dq_part, w.width_d, 0.0f);
          continue;
        }
        if (!is_loaded) {
          if (a.beta != 0) transpose_panels(w.k, w.dtype, b, g, j0, keys, z.D, a.beta, t.keys);
          transpose_panels(w.v, w.dtype, b, g, j0, keys, z.E, 1, t.values);
          k = float_rows(w.k, w.dtype, b, g, j0, keys, z.D, w.width_d, t.k);
          is_loaded = true;
        }
        backward_block(w, x, k, part, first_keys, t);
      }
    for (int64_t j = 0; j < keys; ++j) {
      store_row(w.dk, w.dtype, b, g, j0 + j, t.dk + j * w.width_d, z.D);
      store_row(w.dv, w.dtype, b, g, j0 + j, t.dv + j * w.width_e, z.E);
    }
  }
}

void backward_all(const AttentionBackward& w) {
  const AttentionSizes& z = w.scores.sizes;
  parallel_tasks(z.B * z.G * w.parts, [&](int64_t task) { backward_task(w, task / w.parts, task % w.parts); });
}

void delta_all(const AttentionDelta& w) {
  const AttentionSizes& z = w.sizes;
  parallel_for(z.B * z.H * z.N, rows_per_task(z.E), [&](int64_t begin, int64_t end) HWY_ATTR {
    for (int64_t at = begin; at < end; ++at) {
      const int64_t b = at / z.N / z.H, h = at / z.N % z.H, i = at % z.N;
      const auto product = [&](const auto* left, const auto* right) HEED_LANES {
        return sum_over(z.E, [&](int64_t e, auto load) HEED_LANES { return load(left + e) * load(right + e); });
      };
      w.delta[at] = w.dtype == DType::bf16 ? product(w.g.at<Bf16>(b, h, i), w.out.at<Bf16>(b, h, i))
                                           : product(w.g.at<float>(b, h, i), w.out.at<float>(b, h, i));
    }
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace heed
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <numeric>

#include "heed/ops/ops.h"

namespace heed {

HWY_EXPORT(backward_all);
HWY_EXPORT(delta_all);

void cpu::attention_backward(const AttentionBackward& args) { HWY_DYNAMIC_DISPATCH(backward_all)(args); }
void cpu::attention_delta(const AttentionDelta& args) { HWY_DYNAMIC_DISPATCH(delta_all)(args); }

int64_t AttentionBackward::workspace_bytes(Device device) const {
  return device.kind == Device::Kind::cpu ? 0 : hopper_backward_workspace(*this);
}

namespace {

// Into how many parts the keys of a head are cut, each with gradients of queries and terms of its own: tasks for all threads.
int64_t backward_parts(const AttentionSizes& z, Device device) {
  if (cuda::computing_device(device) != kCpu) return 1;
  const int64_t key_block = key_block_of(z.M), key_blocks = (z.M + key_block - 1) / key_block;
  return std::clamp<int64_t>(16 / std::max<int64_t>(z.B * z.G, 1), 1, std::clamp<int64_t>(key_blocks, 1, 8));
}

// Into how many parts the queries of a head are cut on GPUs, each with gradients of terms of its own: one per tile, fewer where `floats`,
// what a part sums, are many.
int64_t query_parts(const AttentionSizes& z, int64_t floats) {
  constexpr int64_t most = int64_t{1} << 25;
  return std::clamp<int64_t>((z.N + kQueryTile - 1) / kQueryTile, 1, std::max<int64_t>(most / std::max<int64_t>(floats, 1), 1));
}

// The gradient of one tensor of a term while tasks sum it, and joined.
struct SummedGradient {
  Tensor sums;
  Shape shape;
  Sums kind;

  SummedGradient(const TermTensor& x, const AttentionSizes& z, int64_t parts) : shape(x.tensor.shape()), kind(x.sums) {
    const Device device = x.tensor.device();
    const int64_t heads = kind == Sums::queries ? z.B * z.H : z.H, size = x.tensor.count() / std::max<int64_t>(heads, 1);
    const bool on_cpu = cuda::computing_device(device) == kCpu, in_lanes = kind == Sums::numbers && on_cpu;
    const int64_t copies = kind == Sums::queries && !on_cpu ? 1 : parts;  // on GPUs only one part of the queries has a query
    if (kind == Sums::map)
      sums = Tensor::zeros({1, z.B, z.H, z.N * z.M, 1}, DType::f32, device);
    else
      sums = Tensor::zeros({copies, z.B, z.H, size, in_lanes ? kSinkLanes : 1}, DType::f32, device);
  }
  GradientSink sink() const {
    const int64_t per_head = sums.size(3) * sums.size(4);
    return {raw<float>(sums), sums.size(0) == 1 ? 0 : sums.size(1) * sums.size(2) * per_head, per_head};
  }
  Tensor joined(const AttentionSizes& z) const {
    if (kind == Sums::map) return sum_to(reshape(sums, {z.B, z.H, z.N, z.M}), shape);
    return reshape(sum(sums, kind == Sums::queries ? Axes{0, 4} : Axes{0, 1, 4}), shape);
  }
};

// Gradients of tensors (B, heads, N, width) with the layout of these, if they fill the rows of one tensor (B, N, S) side by side, as a
// joint projection makes them: then the gradient of that tensor is in one piece. Else empty.
Tensors side_by_side_like(const Tensors& xs) {
  std::vector<size_t> order(xs.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return Raw::bytes(xs[a]) < Raw::bytes(xs[b]); });
  const Tensor& first = xs[order[0]];
  const int64_t B = first.size(0), N = first.size(2), S = first.strides()[2];
  const auto size = static_cast<int64_t>(bytes_of(first.dtype()));
  std::vector<int64_t> offsets(xs.size());
  int64_t width = 0;
  for (const size_t i : order) {
    const Tensor& x = xs[i];
    const bool follows = x.shares_data_with(first) && Raw::bytes(x) == Raw::bytes(first) + width * size;
    const bool fits = x.size(2) == N && x.strides()[2] == S && x.strides()[3] == 1 && (x.size(1) == 1 || x.strides()[1] == x.size(3)) &&
                      (B == 1 || x.strides()[0] == N * S);
    if (!follows || !fits) return {};
    offsets[i] = width;
    width += x.size(1) * x.size(3);
  }
  if (width != S || first.count() == 0) return {};
  const Tensor block = Tensor::empty({B, N, S}, first.dtype(), first.device());
  Tensors out;
  for (size_t i = 0; i < xs.size(); ++i) out.push_back(block.view(xs[i].shape(), {N * S, xs[i].size(3), S, 1}, offsets[i]));
  return out;
}

Tensor delta_of(const Tensor& g, const Tensor& out, const AttentionSizes& z) {
  const Tensor delta = Tensor::empty({z.B, z.H, z.N}, DType::f32, g.device());
  launch(attention_delta, g.device(),
         {.g = token_rows(g), .out = token_rows(out), .delta = raw<float>(delta), .sizes = z, .dtype = g.dtype()});
  return delta;
}

}  // namespace

AttentionGradients attention_gradients(const AttentionPlan& plan, const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& soft_out,
                                       const SoftmaxRows& rows, const Tensor& g, const std::vector<bool>& wanted) {
  const NoGrad quiet;
  const AttentionSizes& z = plan.sizes;
  const Device device = q.device();
  const int64_t width_d = padded_width(z.D, device), width_e = padded_width(z.E, device), parts = backward_parts(z, device);
  const Tensor wide_q = padded(q, width_d), wide_k = padded(k, width_d), wide_v = padded(v, width_e), wide_g = padded(g, width_e);
  const Tensor delta = soft_out.defined() ? delta_of(g, soft_out, z) : Tensor();
  // One part writes dq with the strides of q; several are dense, and summed. On the CPU dq is summed in place, so it is f32.
  const bool sums_in_f32 = q.dtype() == DType::f32 || cuda::computing_device(device) != kCpu;
  const bool in_place = parts == 1 && width_d == z.D && sums_in_f32, untouched = plan.beta == 0 || !delta.defined() || z.M == 0;
  const Shape shape_of_parts{parts, z.B, z.H, z.N, width_d};
  const Tensors joined = in_place && !untouched ? side_by_side_like({k, v, q}) : Tensors();
  const Tensors joined_keys = joined.empty() ? side_by_side_like({k, v}) : joined;
  const Tensor dq = !joined.empty() ? joined[2]
                    : in_place      ? strided_like(q, z.D, untouched)
                    : untouched     ? Tensor::zeros(shape_of_parts, DType::f32, device)
                                    : Tensor::empty(shape_of_parts, DType::f32, device);
  const Tensor dk = joined_keys.empty() ? strided_like(k, z.D) : joined_keys[0];
  const Tensor dv = joined_keys.empty() ? strided_like(v, z.E) : joined_keys[1];
  AttentionBackward args{.scores = score_args(plan, device),
                         .q = token_rows(wide_q),
                         .k = token_rows(wide_k),
                         .v = token_rows(wide_v),
                         .g = token_rows(wide_g),
                         .log_sum = raw_or_null<float>(rows.log_sum),
                         .delta = raw_or_null<float>(delta),
                         .peak = raw_or_null<float>(rows.peak),
                         .dq = token_rows(in_place ? dq : reshape(slice(dq, 0, 0, 1), {z.B, z.H, z.N, width_d})),
                         .dk = token_rows(dk),
                         .dv = token_rows(dv),
                         .dq_part = z.B * z.H * z.N * width_d,
                         .width_d = width_d,
                         .width_e = width_e,
                         .parts = parts,
                         .sinks = {},
                         .dtype = q.dtype()};

  const auto any_wanted = [&](size_t first, size_t count) {
    const auto begin = wanted.begin() + static_cast<int64_t>(first), end = begin + static_cast<int64_t>(count);
    return std::find(begin, end, true) != end;
  };
  if (cuda::computing_device(device) != kCpu) {
    int64_t floats = 0;
    size_t at = 0;
    for (Term term : plan.terms) {
      const std::vector<TermTensor> learned = learned_of(term, z);
      for (const TermTensor& x : learned)
        if (any_wanted(at, learned.size()) && (x.sums == Sums::numbers || x.sums == Sums::table)) floats += z.B * x.tensor.count();
      at += learned.size();
    }
    args.query_parts = query_parts(z, floats);
  }
  const int64_t sink_parts = std::max(parts, args.query_parts);
  std::vector<std::optional<SummedGradient>> summed;  // of every parameter, where a term has one that is wanted
  for (size_t i = 0; i < plan.terms.size(); ++i) {
    Term term = plan.terms[i];
    const std::vector<TermTensor> learned = learned_of(term, z);
    const bool any = any_wanted(summed.size(), learned.size());
    for (size_t n = 0; n < learned.size(); ++n) {
      summed.push_back(any ? std::optional<SummedGradient>({learned[n], z, sink_parts}) : std::nullopt);
      if (any) args.sinks[i][n] = summed.back()->sink();
    }
  }
  launch(attention_backward, device, args);

  AttentionGradients grads{.q = in_place ? dq : converted(slice(sum(dq, {0}), -1, 0, z.D), q.dtype()), .k = dk, .v = dv, .parameters = {}};
  for (const auto& x : summed) grads.parameters.push_back(x ? x->joined(z) : Tensor());
  return grads;
}

}  // namespace heed
#endif
