// Flash-style attention (Dao et al. 2022) on the CPU: blocks of queries meet blocks of keys in cache; a running maximum
// and sum make the softmax exact. Tasks are cut by shape alone.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "heed/attention/kernels.cc"
#include "hwy/foreach_target.h"
// after foreach_target
#define HEED_TERM_FORMULAS
#include "heed/attention/terms.h"
#undef HEED_TERM_FORMULAS
#include "heed/attention/kernels.h"
#include "heed/attention/tile.h"
#include "heed/core/parallel.h"
#include "heed/core/raw.h"
#include "heed/ops/rows.h"

#ifndef HEED_ATTENTION_KERNEL_TYPES
#define HEED_ATTENTION_KERNEL_TYPES
namespace heed {

// Scores of a pair of blocks, with the keys and values they come from, fit the second cache.
inline constexpr int64_t kQueryBlock = 96, kLargestKeyBlock = 256;

inline int64_t key_block_of(int64_t M) { return std::clamp<int64_t>((M + 15) / 16 * 16, 16, kLargestKeyBlock); }

// Everything a task needs. Widths are padded to whole registers; keys and values also transposed, block by block.
struct AttentionWork {
  AttentionSizes sizes{};
  const std::vector<Term>* terms = nullptr;
  int64_t width_d = 0, width_e = 0;             // padded D and E
  int64_t key_block = kLargestKeyBlock;         // keys in a block
  int64_t parts = 1;                            // of the keys in backward, each a task with its own sum for dq
  const float* q = nullptr;                     // (B H, N, width_d), scaled by beta
  const float* k = nullptr;                     // (B G, M, width_d)
  const float* v = nullptr;                     // (B G, M, width_e)
  const float* g = nullptr;                     // (B H, N, width_e)
  const float* keys_turned = nullptr;           // (B G, blocks, D, key_block)
  const float* values_turned = nullptr;         // (B G, blocks, E, key_block)
  const float* delta = nullptr;                 // (B H, N): sum of g out
  float* out = nullptr;                         // (B H, N, E)
  float* log_total = nullptr;                   // (B H, N)
  float* dq = nullptr;                          // (parts, B H, N, width_d)
  float* dk = nullptr;                          // (B G, M, width_d)
  float* dv = nullptr;                          // (B G, M, width_e)
  std::vector<std::vector<float*>> sinks = {};  // of every learned term: per (part, B H), for a Bias per (B H); else empty

  int64_t key_blocks() const { return (sizes.M + key_block - 1) / key_block; }
};

}  // namespace heed
#endif

HWY_BEFORE_NAMESPACE();
namespace heed {
namespace HWY_NAMESPACE {

// (batch, M, D) with rows `stride` apart -> (batch, blocks, D, key block), zero behind the last key.
void turn_blocks(const float* from, int64_t stride, float* to, int64_t batch, int64_t M, int64_t D) {
  const int64_t block_keys = key_block_of(M);
  const int64_t blocks = (M + block_keys - 1) / block_keys;
  parallel_tasks(batch * blocks, [&](int64_t task) {
    const int64_t first = task % blocks * block_keys, keys = std::min(block_keys, M - first);
    const float* rows = from + (task / blocks * M + first) * stride;
    float* block = to + task * D * block_keys;
    constexpr int64_t strip = 16;
    for (int64_t j0 = 0; j0 < block_keys; j0 += strip)
      for (int64_t d = 0; d < D; ++d)
        for (int64_t j = j0; j < j0 + strip; ++j) block[d * block_keys + j] = j < keys ? rows[j * stride + d] : 0.0f;
  });
}

inline bool skipped(const AttentionWork& w, const ScoreBlock& block) {
  for (const Term& term : *w.terms)
    if (std::visit([&](const auto& t) { return skip(t, block); }, term)) return true;
  return false;
}

// Scores of a block: s (rows, w.key_block), -infinity behind the last key.
void fill_scores(const AttentionWork& w, const ScoreBlock& x, float* s) {
  const int64_t rows = x.i1 - x.i0, keys = x.j1 - x.j0, head = x.b * w.sizes.H + x.h;
  const int64_t key_head = x.b * w.sizes.G + x.h / (w.sizes.H / w.sizes.G);
  if (w.sizes.beta != 0) {
    const float* turned = w.keys_turned + (key_head * w.key_blocks() + x.j0 / w.key_block) * w.sizes.D * w.key_block;
    const int64_t step = lane_count(), columns = (keys + step - 1) / step * step;
    tile_product({w.q + (head * w.sizes.N + x.i0) * w.width_d, w.width_d, 1}, turned, w.key_block, s, w.key_block, rows, columns, w.sizes.D,
                 false);
  } else {
    for (int64_t r = 0; r < rows; ++r) std::fill_n(s + r * w.key_block, keys, 0.0f);
  }
  for (const Term& term : *w.terms)
    std::visit(
        [&](const auto& t) HWY_ATTR {
          if (idle(t, x)) return;
          for (int64_t r = 0; r < rows; ++r) {
            float* row = s + r * w.key_block;
            const ScoreRow place{x.b, x.h, x.i0 + r};
            for_lanes(keys,
                      [&](int64_t j, auto load, auto store) HEED_LANES { store(row + j, score(t, load(row + j), place, x.j0 + j, load)); });
          }
        },
        term);
}

void forward_task(const AttentionWork& w, int64_t head, int64_t i0) {
  const AttentionSizes& z = w.sizes;
  const int64_t i1 = std::min(z.N, i0 + kQueryBlock), rows = i1 - i0, E = w.width_e, b = head / z.H, h = head % z.H;
  const int64_t key_head = b * z.G + h / (z.H / z.G);
  const Tensor scratch = Tensor::empty({rows * (w.key_block + E + 2)});
  float *s = raw<float>(scratch), *o = s + rows * w.key_block, *top = o + rows * E, *total = top + rows;
  std::fill_n(o, rows * E, 0.0f);
  std::fill_n(top, rows, -HUGE_VALF);
  std::fill_n(total, rows, 0.0f);
  for (int64_t j0 = 0; j0 < z.M; j0 += w.key_block) {
    const ScoreBlock block{b, h, i0, i1, j0, std::min(z.M, j0 + w.key_block)};
    if (skipped(w, block)) continue;
    const int64_t keys = block.j1 - j0;
    fill_scores(w, block, s);
    for (int64_t r = 0; r < rows; ++r) {
      float* row = s + r * w.key_block;
      const float highest = std::max(top[r], max_over(keys, [&](int64_t j, auto load) HEED_LANES { return load(row + j); }));
      if (highest == -HUGE_VALF) {  // nothing to see yet
        std::fill_n(row, keys, 0.0f);
        continue;
      }
      const Lanes shift = highest;
      const float fade = hn::GetLane(exp_below(Lanes(top[r]) - shift).v);
      total[r] = total[r] * fade + sum_stored(keys, row, [&](int64_t j, auto load) HEED_LANES { return exp_below(load(row + j) - shift); });
      if (highest != top[r]) {
        float* sum = o + r * E;
        for_lanes(E, [&](int64_t e, auto load, auto store) HEED_LANES { store(sum + e, load(sum + e) * fade); });
        top[r] = highest;
      }
    }
    tile_product({s, w.key_block, 1}, w.v + (key_head * z.M + j0) * E, E, o, E, rows, E, keys, true);
  }
  for (int64_t r = 0; r < rows; ++r) {
    const int64_t at = head * z.N + i0 + r;
    const Lanes scale = total[r] > 0 ? 1 / total[r] : 0.0f;
    const float* sum = o + r * E;
    float* to = w.out + at * z.E;
    for_lanes(z.E, [&](int64_t e, auto load, auto store) HEED_LANES { store(to + e, load(sum + e) * scale); });
    w.log_total[at] = total[r] > 0 ? top[r] + std::log(total[r]) : HUGE_VALF;  // exp(s - infinity) = 0: no gradient
  }
}

void forward_all(const AttentionWork& w) {
  const int64_t blocks = (w.sizes.N + kQueryBlock - 1) / kQueryBlock;
  parallel_tasks(w.sizes.B * w.sizes.H * blocks, [&](int64_t task) { forward_task(w, task / blocks, task % blocks * kQueryBlock); });
}

// One block of queries against one of keys: adds to dq (of this part), dk and dv (keys, width) and to the terms' sinks.
void backward_block(const AttentionWork& w, const ScoreBlock& x, int64_t part, float* s, float* ds, float* dk, float* dv) {
  const AttentionSizes& z = w.sizes;
  const int64_t rows = x.i1 - x.i0, keys = x.j1 - x.j0, head = x.b * z.H + x.h, key_head = x.b * z.G + x.h / (z.H / z.G);
  const int64_t step = lane_count(), columns = (keys + step - 1) / step * step, at = head * z.N + x.i0;
  const float *q = w.q + at * w.width_d, *g = w.g + at * w.width_e;
  fill_scores(w, x, s);
  tile_product({g, w.width_e, 1}, w.values_turned + (key_head * w.key_blocks() + x.j0 / w.key_block) * z.E * w.key_block, w.key_block, ds,
               w.key_block, rows, columns, z.E, false);
  for (int64_t r = 0; r < rows; ++r) {
    float *p = s + r * w.key_block, *d = ds + r * w.key_block;
    const Lanes log_total = w.log_total[at + r], delta = w.delta[at + r];
    for_lanes(keys, [&](int64_t j, auto load, auto store) HEED_LANES {
      const Lanes weight = exp_below(load(p + j) - log_total);
      store(p + j, weight);
      store(d + j, weight * (load(d + j) - delta));
    });
  }
  tile_product({s, 1, w.key_block}, g, w.width_e, dv, w.width_e, keys, w.width_e, rows, true);
  for (size_t k = 0; k < w.terms->size(); ++k) {
    if (w.sinks[k].empty()) continue;
    std::visit(
        [&](const auto& t) HWY_ATTR {
          constexpr bool whole = std::is_same_v<std::decay_t<decltype(t)>, Bias>;
          float* const sink = w.sinks[k][static_cast<size_t>(whole ? head : part * z.B * z.H + head)];
          for (int64_t r = 0; r < rows; ++r) {
            const float* d = ds + r * w.key_block;
            const ScoreRow place{x.b, x.h, x.i0 + r};
            float* const row_sink = whole ? sink + place.i * z.M : sink;
            for_lanes(keys, [&](int64_t j, auto load, auto store)
                                HEED_LANES { gradient(t, row_sink, load(d + j), place, x.j0 + j, load, store); });
          }
        },
        (*w.terms)[k]);
  }
  if (z.beta == 0) return;
  tile_product({ds, 1, w.key_block}, q, w.width_d, dk, w.width_d, keys, w.width_d, rows, true);
  tile_product({ds, w.key_block, 1}, w.k + (key_head * z.M + x.j0) * w.width_d, w.width_d, w.dq + (part * z.B * z.H * z.N + at) * w.width_d,
               w.width_d, rows, w.width_d, keys, true);
}

// Every parts-th block of keys of one key head, so that causal work is shared evenly.
void backward_task(const AttentionWork& w, int64_t key_head, int64_t part) {
  const AttentionSizes& z = w.sizes;
  const int64_t b = key_head / z.G, group = z.H / z.G, first = key_head % z.G * group;
  const Tensor scratch = Tensor::empty({2 * kQueryBlock * w.key_block + w.key_block * (w.width_d + w.width_e)});
  float *s = raw<float>(scratch), *ds = s + kQueryBlock * w.key_block, *dk = ds + kQueryBlock * w.key_block,
        *dv = dk + w.key_block * w.width_d;
  for (int64_t block = part; block < w.key_blocks(); block += w.parts) {
    const int64_t j0 = block * w.key_block, j1 = std::min(z.M, j0 + w.key_block);
    std::fill_n(dk, w.key_block * (w.width_d + w.width_e), 0.0f);
    for (int64_t h = first; h < first + group; ++h)
      for (int64_t i0 = 0; i0 < z.N; i0 += kQueryBlock) {
        const ScoreBlock x{b, h, i0, std::min(z.N, i0 + kQueryBlock), j0, j1};
        if (!skipped(w, x)) backward_block(w, x, part, s, ds, dk, dv);
      }
    std::copy_n(dk, (j1 - j0) * w.width_d, w.dk + (key_head * z.M + j0) * w.width_d);
    std::copy_n(dv, (j1 - j0) * w.width_e, w.dv + (key_head * z.M + j0) * w.width_e);
  }
}

void backward_all(const AttentionWork& w) {
  parallel_tasks(w.sizes.B * w.sizes.G * w.parts, [&](int64_t task) { backward_task(w, task / w.parts, task % w.parts); });
}

int64_t register_width() { return lane_count(); }

}  // namespace HWY_NAMESPACE
}  // namespace heed
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "heed/ops/ops.h"

namespace heed {

HWY_EXPORT(turn_blocks);
HWY_EXPORT(forward_all);
HWY_EXPORT(backward_all);
HWY_EXPORT(register_width);

namespace {

// x with its last axis padded with zeros to whole registers; x itself where nothing is missing.
Tensor padded(const Tensor& x, int64_t width) {
  if (x.size(-1) == width) return x;
  Shape shape = x.shape();
  shape[x.rank() - 1] = width;
  const Tensor wide = Tensor::zeros(shape);
  copy_into(x, wide.view(x.shape(), wide.strides()));
  return wide;
}

Tensor cut(const Tensor& x, int64_t width) { return contiguous(slice(x, -1, 0, width)); }

struct Operands {
  AttentionWork work;
  Tensor q, k, v, keys_turned;
};

Operands prepare(const AttentionSizes& z, const std::vector<Term>& terms, const Tensor& q, const Tensor& k, const Tensor& v) {
  const int64_t lanes = HWY_DYNAMIC_DISPATCH(register_width)();
  const int64_t width_d = (z.D + lanes - 1) / lanes * lanes, width_e = (z.E + lanes - 1) / lanes * lanes;
  Operands o;
  o.q = padded(scale(q, z.beta), width_d);
  o.k = padded(k, width_d);
  o.v = padded(v, width_e);
  o.work = {.sizes = z,
            .terms = &terms,
            .width_d = width_d,
            .width_e = width_e,
            .q = raw<float>(o.q),
            .k = raw<float>(o.k),
            .v = raw<float>(o.v)};
  o.work.key_block = key_block_of(z.M);
  if (z.beta != 0) {
    o.keys_turned = Tensor::empty({z.B * z.G, o.work.key_blocks(), z.D, o.work.key_block});
    HWY_DYNAMIC_DISPATCH(turn_blocks)(raw<float>(o.k), width_d, raw<float>(o.keys_turned), z.B * z.G, z.M, z.D);
    o.work.keys_turned = raw<float>(o.keys_turned);
  }
  return o;
}

// Floats that the gradient of a term needs per head, beside its own parameters' layout.
int64_t sink_size(const Term& term) {
  if (const auto* t = std::get_if<RelativeBias>(&term)) return t->table.size(1);
  if (std::holds_alternative<Alibi>(term)) return kSinkLanes;
  if (std::holds_alternative<Gaussian2d>(term)) return 3 * kSinkLanes;
  return 0;
}

}  // namespace

void attention_forward(const AttentionSizes& sizes, const std::vector<Term>& terms, const Tensor& q, const Tensor& k, const Tensor& v,
                       const Tensor& out, const Tensor& log_total) {
  const NoGrad quiet;
  Operands o = prepare(sizes, terms, q, k, v);
  o.work.out = raw<float>(out);
  o.work.log_total = raw<float>(log_total);
  HWY_DYNAMIC_DISPATCH(forward_all)(o.work);
}

AttentionGradients attention_backward(const AttentionSizes& z, const std::vector<Term>& terms, const Tensor& q, const Tensor& k,
                                      const Tensor& v, const Tensor& out, const Tensor& log_total, const Tensor& g) {
  Operands o = prepare(z, terms, q, k, v);
  AttentionWork& w = o.work;
  const Tensor wide_g = padded(g, w.width_e), delta = sum(multiply(g, out), {3});
  const Tensor values_turned = Tensor::empty({z.B * z.G, w.key_blocks(), z.E, w.key_block});
  HWY_DYNAMIC_DISPATCH(turn_blocks)(raw<float>(o.v), w.width_e, raw<float>(values_turned), z.B * z.G, z.M, z.E);
  w.parts = std::clamp<int64_t>(16 / std::max<int64_t>(z.B * z.G, 1), 1, std::clamp<int64_t>(w.key_blocks(), 1, 8));
  const Tensor dq = Tensor::zeros({w.parts, z.B, z.H, z.N, w.width_d}), dk = Tensor::zeros({z.B, z.G, z.M, w.width_d}),
               dv = Tensor::zeros({z.B, z.G, z.M, w.width_e});
  w.g = raw<float>(wide_g);
  w.values_turned = raw<float>(values_turned);
  w.log_total = raw<float>(log_total);
  w.delta = raw<float>(delta);
  w.dq = raw<float>(dq);
  w.dk = raw<float>(dk);
  w.dv = raw<float>(dv);

  Tensors sums;  // of every term: (parts, B, H, size), (B, H, N, M) for a Bias, or undefined
  for (const Term& term : terms) {
    const bool bias = std::holds_alternative<Bias>(term);
    const int64_t heads = bias ? z.B * z.H : w.parts * z.B * z.H;
    std::vector<float*> starts;
    sums.emplace_back();
    if (bias || sink_size(term) > 0) {
      sums.back() = bias ? Tensor::zeros({z.B, z.H, z.N, z.M}) : Tensor::zeros({w.parts, z.B, z.H, sink_size(term)});
      for (int64_t head = 0; head < heads; ++head) starts.push_back(raw<float>(sums.back()) + head * (sums.back().count() / heads));
    }
    w.sinks.push_back(starts);
  }
  HWY_DYNAMIC_DISPATCH(backward_all)(w);

  AttentionGradients grads{.q = cut(scale(sum(dq, {0}), z.beta), z.D), .k = cut(dk, z.D), .v = cut(dv, z.E), .parameters = {}};
  for (size_t i = 0; i < terms.size(); ++i) {
    if (!sums[i].defined()) continue;
    if (std::holds_alternative<Bias>(terms[i])) {
      grads.parameters.push_back(sums[i]);
      continue;
    }
    const Tensor by_head = sum(sums[i], {0, 1});  // (H, size)
    if (std::holds_alternative<RelativeBias>(terms[i])) {
      grads.parameters.push_back(by_head);
    } else if (std::holds_alternative<Alibi>(terms[i])) {
      grads.parameters.push_back(sum(by_head, {1}));
    } else {
      const Tensor lanes = sum(reshape(by_head, {z.H, 3, kSinkLanes}), {2});  // alpha, then the center
      grads.parameters.push_back(contiguous(reshape(slice(lanes, 1, 0, 1), {z.H})));
      grads.parameters.push_back(contiguous(slice(lanes, 1, 1, 3)));
    }
  }
  return grads;
}

}  // namespace heed
#endif
