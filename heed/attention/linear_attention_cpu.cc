// Linear attention in chunks of tokens. Between chunks a running state (S, z) holds all keys so far; inside a chunk the
// masked product of features is small. So everything is tile_product, and no (N, R, E) tensor exists. Heads with many
// tokens are cut into segments whose sums are computed first, so that they can run side by side. The cut depends on shape alone.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "heed/attention/linear_attention_cpu.cc"
#include "hwy/foreach_target.h"
// after foreach_target
#include "heed/attention/linear_attention_chunk.h"
#include "heed/core/parallel.h"

HWY_BEFORE_NAMESPACE();
namespace heed {
namespace HWY_NAMESPACE {
namespace {

// Visits the query heads that share a key head.
template <class Visit>
void for_heads(const LinearAttentionSizes& z, int64_t head, const Visit& visit) {
  const int64_t group = z.H / z.G, first = head / z.G * z.H + head % z.G * group;
  for (int64_t h = first; h < first + group; ++h) visit(h);
}

void sum_segment(const LinearAttentionWork& w, int64_t head, int64_t segment) {
  LinearAttentionChunk x{w, head};
  std::fill_n(x.state, w.state(), 0.0f);
  const int64_t begin = segment * w.key_split.segment_tokens, end = std::min(w.sizes.M, begin + w.key_split.segment_tokens);
  const float top = w.top_after(head, end);
  for (int64_t j0 = begin; j0 < end; j0 += kChunkTokens) {
    x.take_keys(j0, std::min(end, j0 + kChunkTokens));
    x.add_keys(top, top);
  }
  std::copy_n(x.state, w.state(), w.state_at(head, segment + 1));
}

void answer_segment(const LinearAttentionWork& w, int64_t head, int64_t segment) {
  const LinearAttentionSizes& n = w.sizes;
  LinearAttentionChunk x{w, head};
  x.start_from(w.state_at(head, n.causal ? segment : w.key_split.segments));
  const int64_t begin = segment * w.query_split.segment_tokens, end = std::min(n.N, begin + w.query_split.segment_tokens);
  for (int64_t i0 = begin; i0 < end; i0 += kChunkTokens) {
    x.first = i0;
    x.rows = std::min(end, i0 + kChunkTokens) - i0;
    if (n.causal) {
      x.take_keys(i0, i0 + x.rows);
      transpose(x.c, x.keys, w.width_r, x.transposed, kChunkTokens);
    }
    const float before = w.top_after(head, i0);
    for_heads(n, head, [&](int64_t h) HWY_ATTR {
      const int64_t at = h * n.N + i0;
      features(w, w.q + at * n.D, x.rows, x.a);
      std::fill_n(x.total, x.rows, 0.0f);
      if (x.keys > 0) {
        x.weight_keys();
        tile_product({x.s, kChunkTokens, 1}, x.v, w.width_e, x.o, w.width_e, x.rows, w.width_e, x.keys, false);
        if (w.gains)
          for (int64_t r = 0; r < x.rows; ++r) scale_row(x.a + r * w.width_r, w.width_r, rescale(w, before - w.query_top(head, i0 + r)));
      }
      tile_product({x.a, w.width_r, 1}, x.state, w.width_e, x.o, w.width_e, x.rows, w.width_e, n.R, x.keys > 0);
      for (int64_t r = 0; r < x.rows; ++r) {
        const float *a = x.a + r * w.width_r, *o = x.o + r * w.width_e;
        const float total = x.total[r] + sum_over(w.width_r, [&](int64_t i, auto load) HEED_LANES { return load(a + i) * load(x.z + i); });
        const Lanes share = total > 0 ? 1 / total : 0.0f;
        float* to = w.new_out + (at + r) * n.E;
        for_lanes(n.E, [&](int64_t e, auto load, auto store) HEED_LANES { store(to + e, load(o + e) * share); });
        w.new_total[at + r] = total;
      }
    });
    if (n.causal) x.add_keys(before, w.top_after(head, i0 + x.rows));
  }
  if (n.causal && segment + 1 == w.key_split.segments) std::copy_n(x.state, w.state(), w.state_at(head, segment + 1));
}

}  // namespace

// The gain of every key, and the largest so far; without a mask, all queries see the largest of all.
void key_gains(const LinearAttentionWork& w) {
  const LinearAttentionSizes& n = w.sizes;
  const int64_t chunks = (n.M + kChunkTokens - 1) / kChunkTokens;
  parallel_tasks(n.B * n.G * chunks, [&](int64_t task) {
    ScratchBlocks scratch;
    const int64_t at = task / chunks * n.M + task % chunks * kChunkTokens,
                  rows = std::min(kChunkTokens, n.M - task % chunks * kChunkTokens);
    features(w, w.k + at * n.D, rows, scratch.take(kChunkTokens * w.width_r), w.gains + at);
  });
  parallel_tasks(n.B * n.G, [&](int64_t head) {
    float* tops = w.tops + head * (n.M + 1);
    const int64_t keys = w.keys_of(head);
    for (int64_t j = 0; j < n.M; ++j) tops[j + 1] = j < keys ? std::max(tops[j], w.gains[head * n.M + j]) : tops[j];
    if (!n.causal) std::fill_n(tops + 1, n.M, tops[n.M]);
  });
}

// Sums of every segment of keys, then of everything before it; the sweep of a causal call sums the last one itself.
void key_sums(const LinearAttentionWork& w) {
  const LinearAttentionSizes& n = w.sizes;
  const int64_t segments = w.key_split.segments - (n.causal ? 1 : 0);
  if (segments <= 0) return;
  parallel_tasks(n.B * n.G * segments, [&](int64_t task) { sum_segment(w, task / segments, task % segments); });
  parallel_tasks(n.B * n.G, [&](int64_t head) HWY_ATTR {
    for (int64_t s = 0; s < segments; ++s) {
      const float *before = w.state_at(head, s), begin = w.top_after(head, s * w.key_split.segment_tokens);
      float* after = w.state_at(head, s + 1);
      const Lanes share = rescale(w, begin - w.top_after(head, (s + 1) * w.key_split.segment_tokens));
      for_lanes(w.state(),
                [&](int64_t i, auto load, auto store) HEED_LANES { store(after + i, fma(load(before + i), share, load(after + i))); });
    }
  });
}

void answer_queries(const LinearAttentionWork& w) {
  const int64_t segments = w.query_split.segments;
  parallel_tasks(w.sizes.B * w.sizes.G * segments, [&](int64_t task) { answer_segment(w, task / segments, task % segments); });
}

namespace {

// The gradient of a head's outputs as gradients of numerators (rows, width_e) and denominators (rows).
void output_gradient(const LinearAttentionWork& w, int64_t at, int64_t rows, float* g, float* delta) {
  const int64_t E = w.sizes.E;
  copy_rows(w.g + at * E, E, g, w.width_e, rows);
  for (int64_t r = 0; r < rows; ++r, g += w.width_e) {
    const float *out = w.out + (at + r) * E, total = w.total[at + r];
    scale_row(g, E, total > 0 ? 1 / total : 0.0f);
    delta[r] = sum_over(E, [&](int64_t e, auto load) HEED_LANES { return load(g + e) * load(out + e); });
  }
}

// sums += a^T g and a^T delta, row i of a rescaled by e^(to - top_i): what keys need of the queries that see them.
void add_queries(const LinearAttentionChunk& x, const float* g, const float* delta, float to, float* sums) {
  const LinearAttentionWork& w = x.w;
  float* last = sums + w.width_r * w.width_e;
  for (int64_t r = 0; r < x.rows; ++r) {
    float* row = x.a + r * w.width_r;
    if (w.gains) scale_row(row, w.width_r, rescale(w, to - w.query_top(x.head, x.first + r)));
    const Lanes share = delta[r];
    for_lanes(w.width_r, [&](int64_t i, auto load, auto store) HEED_LANES { store(last + i, fma(load(row + i), share, load(last + i))); });
  }
  tile_product({x.a, 1, w.width_r}, g, w.width_e, sums, w.width_e, w.sizes.R, w.width_e, x.rows, true);
}

// From g (rows, width_e) and a matrix (width_r, width_e) with a last column: y = rescale (g matrix^T - delta last).
void multiply_transposed(const LinearAttentionWork& w, const float* g, const float* matrix_transposed, const float* last,
                         const float* delta, const float* rescales, int64_t rows, float* y) {
  tile_product({g, w.width_e, 1}, matrix_transposed, w.width_r, y, w.width_r, rows, w.width_r, w.sizes.E, false);
  for (int64_t r = 0; r < rows; ++r) {
    float* row = y + r * w.width_r;
    const Lanes less = delta[r], share = rescales[r];
    for_lanes(w.width_r,
              [&](int64_t i, auto load, auto store) HEED_LANES { store(row + i, (load(row + i) - less * load(last + i)) * share); });
  }
}

void query_gradients(const LinearAttentionWork& w, int64_t head, int64_t segment) {
  const LinearAttentionSizes& n = w.sizes;
  LinearAttentionChunk x{w, head};
  x.start_from(w.state_at(head, n.causal ? segment : w.key_split.segments));
  float *transposed = x.scratch.take(w.width_e * w.width_r), *da = x.scratch.take(kChunkTokens * w.width_r),
        *wide = x.scratch.take(kChunkTokens * w.width_d), *sums = w.sum_at(head, segment);
  const int64_t begin = segment * w.query_split.segment_tokens, end = std::min(n.N, begin + w.query_split.segment_tokens);
  for (int64_t i0 = begin; i0 < end; i0 += kChunkTokens) {
    x.first = i0;
    x.rows = std::min(end, i0 + kChunkTokens) - i0;
    if (n.causal) {
      x.take_keys(i0, i0 + x.rows);
      transpose(x.v, x.keys, w.width_e, x.transposed, kChunkTokens);
    }
    if (n.causal || i0 == begin) transpose(x.state, w.width_r, w.width_e, transposed, w.width_r);
    const float before = n.causal ? w.top_after(head, i0) : w.top_after(head, n.M);
    float rescales[kChunkTokens], delta[kChunkTokens];
    for (int64_t r = 0; r < x.rows; ++r) rescales[r] = rescale(w, before - w.query_top(head, i0 + r));
    for_heads(n, head, [&](int64_t h) {
      const int64_t at = h * n.N + i0;
      features(w, w.q + at * n.D, x.rows, x.a);
      output_gradient(w, at, x.rows, x.o, delta);
      multiply_transposed(w, x.o, transposed, x.z, delta, rescales, x.rows, da);
      if (x.keys > 0) {
        tile_product({x.o, w.width_e, 1}, x.transposed, kChunkTokens, x.s, kChunkTokens, x.rows, whole_registers(x.keys), n.E, false);
        for (int64_t r = 0; r < x.rows; ++r) x.weight_row(x.s + r * kChunkTokens, r, delta[r]);
        tile_product({x.s, kChunkTokens, 1}, x.c, w.width_r, da, w.width_r, x.rows, w.width_r, x.keys, true);
      }
      features_back(w, w.q + at * n.D, x.a, da, x.rows, w.dq + at * n.D, false, wide);
      if (!n.causal || segment > 0) add_queries(x, x.o, delta, w.query_top(head, begin), sums);
    });
    if (n.causal) x.add_keys(before, w.top_after(head, i0 + x.rows));
  }
}

// From the last chunk to the first: the state holds the sums over all later queries.
void key_gradients(const LinearAttentionWork& w, int64_t head, int64_t segment) {
  const LinearAttentionSizes& n = w.sizes;
  LinearAttentionChunk x{w, head};
  x.start_from(w.sum_at(head, n.causal ? segment + 1 : 0));
  float *transposed = x.scratch.take(w.width_e * w.width_r), *dc = x.scratch.take(kChunkTokens * w.width_r),
        *dv = x.scratch.take(kChunkTokens * w.width_e), *wide = x.scratch.take(kChunkTokens * w.width_d),
        *values_transposed = x.scratch.take(w.width_e * kChunkTokens);
  const int64_t begin = segment * w.key_split.segment_tokens, end = std::min(n.M, begin + w.key_split.segment_tokens);
  for (int64_t j0 = begin + (end - begin - 1) / kChunkTokens * kChunkTokens; j0 >= begin; j0 -= kChunkTokens) {
    x.take_keys(j0, std::min(end, j0 + kChunkTokens));
    const float next = w.query_top(head, j0 + x.rows), own = w.query_top(head, j0);
    float ones[kChunkTokens], rescales[kChunkTokens], delta[kChunkTokens];
    for (int64_t j = 0; j < x.keys; ++j) {
      ones[j] = 1;
      rescales[j] = rescale(w, x.gain[j] - next);
    }
    if (n.causal || j0 + x.rows == end) transpose(x.state, w.width_r, w.width_e, transposed, w.width_r);
    multiply_transposed(w, x.v, transposed, x.z, ones, rescales, x.keys, dc);
    tile_product({x.c, w.width_r, 1}, x.state, w.width_e, dv, w.width_e, x.keys, w.width_e, n.R, false);
    for (int64_t j = 0; j < x.keys && w.gains; ++j) scale_row(dv + j * w.width_e, w.width_e, rescales[j]);
    if (n.causal) {
      transpose(x.c, x.keys, w.width_r, x.transposed, kChunkTokens);
      transpose(x.v, x.keys, w.width_e, values_transposed, kChunkTokens);
      if (w.gains && own != next) scale_row(x.state, w.state(), rescale(w, own - next));
      for_heads(n, head, [&](int64_t h) {
        const int64_t at = h * n.N + j0;
        features(w, w.q + at * n.D, x.rows, x.a);
        output_gradient(w, at, x.rows, x.o, delta);
        x.weight_keys();
        tile_product({x.s, 1, kChunkTokens}, x.o, w.width_e, dv, w.width_e, x.keys, w.width_e, x.rows, true);
        tile_product({x.o, w.width_e, 1}, values_transposed, kChunkTokens, x.s, kChunkTokens, x.rows, whole_registers(x.keys), n.E, false);
        for (int64_t r = 0; r < x.rows; ++r) x.weight_row(x.s + r * kChunkTokens, r, delta[r]);
        tile_product({x.s, 1, kChunkTokens}, x.a, w.width_r, dc, w.width_r, x.keys, w.width_r, x.rows, true);
        add_queries(x, x.o, delta, own, x.state);
      });
    }
    const int64_t at = head * n.M + j0;
    features_back(w, w.k + at * n.D, x.c, dc, x.keys, w.dk + at * n.D, true, wide);
    for (int64_t j = 0; j < x.keys; ++j) std::copy_n(dv + j * w.width_e, n.E, w.dv + (at + j) * n.E);
    std::fill_n(w.dk + (at + x.keys) * n.D, (x.rows - x.keys) * n.D, 0.0f);
    std::fill_n(w.dv + (at + x.keys) * n.E, (x.rows - x.keys) * n.E, 0.0f);
  }
}

}  // namespace

// Gradients of queries, segment by segment, with the sums that keys need of them; sums of all later ones; gradients of keys.
void gradients(const LinearAttentionWork& w) {
  const LinearAttentionSizes& n = w.sizes;
  const int64_t segments = w.query_split.segments;
  parallel_tasks(n.B * n.G * segments, [&](int64_t task) { query_gradients(w, task / segments, task % segments); });
  parallel_tasks(n.B * n.G, [&](int64_t head) HWY_ATTR {
    for (int64_t s = segments - 1; s >= 0; --s) {
      float* own = w.sum_at(head, s);
      const float* later = w.sum_at(head, s + 1);
      const Lanes share =
          rescale(w, w.query_top(head, s * w.query_split.segment_tokens) - w.query_top(head, (s + 1) * w.query_split.segment_tokens));
      for_lanes(w.state(),
                [&](int64_t i, auto load, auto store) HEED_LANES { store(own + i, fma(load(later + i), share, load(own + i))); });
    }
  });
  parallel_tasks(n.B * n.G * w.key_split.segments,
                 [&](int64_t task) { key_gradients(w, task / w.key_split.segments, task % w.key_split.segments); });
}

void linear_forward_all(const LinearAttentionForward& args) {
  LinearAttentionWork w(args.in);
  w.new_out = args.out;
  w.new_total = args.total;
  if (w.gains) key_gains(w);
  key_sums(w);
  if (w.q) answer_queries(w);
}

void linear_backward_all(const LinearAttentionBackward& args) {
  LinearAttentionWork w(args.in);
  w.g = args.g;
  w.out = args.out;
  w.total = args.total;
  w.dq = args.dq;
  w.dk = args.dk;
  w.dv = args.dv;
  w.sums = static_cast<float*>(args.workspace);
  parallel_for(args.workspace_bytes(kCpu) / static_cast<int64_t>(sizeof(float)), 1 << 15,
               [&](int64_t begin, int64_t end) { std::fill(w.sums + begin, w.sums + end, 0.0f); });
  gradients(w);
}

}  // namespace HWY_NAMESPACE
}  // namespace heed
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace heed {

HWY_EXPORT(linear_forward_all);
HWY_EXPORT(linear_backward_all);

void cpu::linear_attention_forward(const LinearAttentionForward& args) { HWY_DYNAMIC_DISPATCH(linear_forward_all)(args); }
void cpu::linear_attention_backward(const LinearAttentionBackward& args) { HWY_DYNAMIC_DISPATCH(linear_backward_all)(args); }

}  // namespace heed
#endif
