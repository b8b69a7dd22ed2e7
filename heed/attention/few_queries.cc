// Attention, forward, of few queries against many keys, as in decoding: bound by reading keys and values, which are read
// once, where they lie. A long row of keys is cut into chunks by shape alone; their sums are joined in order.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "heed/attention/few_queries.cc"
#include "hwy/foreach_target.h"
// after foreach_target
#include "heed/attention/blocks.h"
#include "heed/attention/softmax_rows.h"
#include "heed/core/parallel.h"

#ifndef HEED_ATTENTION_FEW_QUERIES_TYPES
#define HEED_ATTENTION_FEW_QUERIES_TYPES
namespace heed {

// Enough tasks for many cores where heads are few. Blocks are long, as memory likes to be read.
inline constexpr int64_t kMostChunks = 64, kLeastChunk = 512, kLongestBlock = 512;

struct FewQueriesWork {
  const AttentionPlan* plan;
  const float* q;  // (B H, N, D)
  TokenRows k, v;
  float *sums, *tops, *totals;    // (B G, chunks, H / G, N, E), and without E
  float *out, *log_total, *peak;  // as in forward.cc
  int64_t chunk, chunks, key_block;
};

}  // namespace heed
#endif

HWY_BEFORE_NAMESPACE();
namespace heed {
namespace HWY_NAMESPACE {

// sums: (rows, E) += weights v. weights: (rows, keys), `stride` apart, v: (keys, E), `token` apart
void add_values(const float* weights, int64_t stride, const float* v, int64_t token, float* sums, int64_t rows, int64_t keys, int64_t E) {
  const int64_t whole = E / lane_count() * lane_count(), rest = E - whole;
  tile_product({weights, stride, 1}, v, token, sums, E, rows, whole, keys, true);
  if (rest == 0) return;
  for (int64_t r = 0; r < rows; ++r) {
    Lanes sum = load_some(sums + r * E + whole, rest);
    for (int64_t j = 0; j < keys; ++j) sum = fma(weights[r * stride + j], load_some(v + j * token + whole, rest), sum);
    store_some(sum, sums + r * E + whole, rest);
  }
}

// Every query of every head that shares a key head, against one chunk of keys.
void few_queries_task(const FewQueriesWork& w, int64_t key_head, int64_t chunk) {
  const AttentionPlan& plan = *w.plan;
  const AttentionSizes& z = plan.sizes;
  const int64_t b = key_head / z.G, g = key_head % z.G, group = z.H / z.G, rows = group * z.N, stride = w.key_block + kRowPadding;
  const Tensor scratch = Tensor::empty({rows * stride + w.key_block});
  float *s = raw<float>(scratch), *factors = s + rows * stride;
  const int64_t place = (key_head * w.chunks + chunk) * rows;
  float *sums = w.sums + place * z.E, *tops = w.tops + place, *totals = w.totals + place;
  std::fill_n(sums, rows * z.E, 0.0f);
  std::fill_n(tops, rows, -HUGE_VALF);
  std::fill_n(totals, rows, 0.0f);
  std::fill_n(s, rows * stride, 0.0f);
  const float* q = w.q + (b * z.H + g * group) * z.N * z.D;

  const int64_t end = std::min(z.M, (chunk + 1) * w.chunk);
  for (int64_t j0 = chunk * w.chunk; j0 < end; j0 += w.key_block) {
    const int64_t keys = std::min(w.key_block, end - j0);
    bool started = false;
    for (int64_t member = 0; member < group; ++member) {
      const ScoreBlock x = plan.block(b, g * group + member, 0, z.N, j0, j0 + keys);
      float* head = s + member * z.N * stride;
      if (masked_whole(plan.terms, x)) {
        if (started)
          for (int64_t i = 0; i < z.N; ++i) std::fill_n(head + i * stride, keys, 0.0f);
        continue;
      }
      if (!started) {  // scores of all heads at once, weights of those before this one are none
        if (plan.beta != 0)
          dot_scores(q, w.k.at(b, g, j0), w.k.token, rows, keys, z.D, plan.beta, s, stride);
        else
          std::fill_n(s, rows * stride, 0.0f);
        for (int64_t r = 0; r < member * z.N; ++r) std::fill_n(s + r * stride, keys, 0.0f);
        started = true;
      }
      apply_terms(plan.terms, z, x, head, stride);
      for (int64_t i = 0; i < z.N; ++i) {
        const int64_t r = member * z.N + i;
        float *row = s + r * stride, *sum = sums + r * z.E;
        const float rescale = plan.hard ? hard_row(row, keys, tops[r], totals[r]) : soft_row(row, keys, tops[r], totals[r]);
        if (rescale != 1) for_lanes(z.E, [&](int64_t e, auto load, auto store) HEED_LANES { store(sum + e, load(sum + e) * rescale); });
        if (plan.dropout > 0) {
          drop_factors(plan, {b, x.h, i}, j0, keys, factors);
          for_lanes(keys, [&](int64_t j, auto load, auto store) HEED_LANES { store(row + j, load(row + j) * load(factors + j)); });
        }
      }
    }
    if (started) add_values(s, stride, w.v.at(b, g, j0), w.v.token, sums, rows, keys, z.E);
  }
}

// The chunks of one query, in order.
void join_chunks(const FewQueriesWork& w, int64_t at) {
  const AttentionSizes& z = w.plan->sizes;
  const int64_t rows = z.H / z.G * z.N, first = at / rows * w.chunks * rows + at % rows;
  float row_max = -HUGE_VALF, row_sum = 0, rescales[kMostChunks];
  for (int64_t c = 0; c < w.chunks; ++c) row_max = std::max(row_max, w.tops[first + c * rows]);
  for (int64_t c = 0; c < w.chunks; ++c) {
    const float other = w.tops[first + c * rows];
    rescales[c] = other == row_max ? 1.0f : w.plan->hard ? 0.0f : rescale_factor(other, row_max);
    row_sum += w.totals[first + c * rows] * rescales[c];
  }
  const float share = row_sum > 0 ? 1 / row_sum : 0.0f;
  for_lanes(z.E, [&](int64_t e, auto load, auto store) HEED_LANES {
    Lanes sum = 0;
    for (int64_t c = 0; c < w.chunks; ++c) sum = fma(load(w.sums + (first + c * rows) * z.E + e), rescales[c], sum);
    store(w.out + at * z.E + e, sum * share);
  });
  if (w.log_total) w.log_total[at] = row_sum > 0 ? row_max + std::log(row_sum) : HUGE_VALF;
  if (w.peak) {
    w.peak[2 * at] = row_max;
    w.peak[2 * at + 1] = share;
  }
}

void few_queries_all(const FewQueriesWork& w) {
  const AttentionSizes& z = w.plan->sizes;
  parallel_tasks(z.B * z.G * w.chunks, [&](int64_t task) { few_queries_task(w, task / w.chunks, task % w.chunks); });
  parallel_for(z.B * z.H * z.N, rows_per_task(z.E * w.chunks), [&](int64_t begin, int64_t end) HWY_ATTR {
    for (int64_t at = begin; at < end; ++at) join_chunks(w, at);
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace heed
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "heed/core/copy.h"

namespace heed {

HWY_EXPORT(few_queries_all);

Tensor few_queries_forward(const AttentionPlan& plan, const Tensor& q, const Tensor& k, const Tensor& v, AttentionTotals& totals) {
  const Tensor dense_q = contiguous(q);
  const AttentionSizes& z = plan.sizes;
  const int64_t wanted = std::clamp<int64_t>(kMostChunks / std::max<int64_t>(z.B * z.G, 1), 1, std::max<int64_t>(z.M / kLeastChunk, 1));
  const int64_t chunk = even_block(z.M, std::max<int64_t>((z.M + wanted - 1) / wanted, 1), 64);
  const int64_t chunks = std::max<int64_t>((z.M + chunk - 1) / chunk, 1), places = z.B * z.H * z.N * chunks;
  const Tensor out = Tensor::empty({z.B, z.H, z.N, z.E}), partial = Tensor::empty({places * (z.E + 2)});
  (plan.hard ? totals.peak : totals.log_total) = plan.hard ? Tensor::empty({z.B, z.H, z.N, 2}) : Tensor::empty({z.B, z.H, z.N});
  HWY_DYNAMIC_DISPATCH(few_queries_all)
  ({.plan = &plan,
    .q = raw<float>(dense_q),
    .k = token_rows(k),
    .v = token_rows(v),
    .sums = raw<float>(partial),
    .tops = raw<float>(partial) + places * z.E,
    .totals = raw<float>(partial) + places * (z.E + 1),
    .out = raw<float>(out),
    .log_total = plan.hard ? nullptr : raw<float>(totals.log_total),
    .peak = plan.hard ? raw<float>(totals.peak) : nullptr,
    .chunk = chunk,
    .chunks = chunks,
    .key_block = even_block(chunk, kLongestBlock, 64)});
  return out;
}

}  // namespace heed
#endif
