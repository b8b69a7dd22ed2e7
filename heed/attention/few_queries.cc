// Attention, forward, of few queries against many keys, as in decoding: bound by reading keys and values, which are read
// once, without a copy. A long row of keys is cut into chunks by shape alone; their sums are joined in order.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "heed/attention/few_queries.cc"
#include "hwy/foreach_target.h"
// after foreach_target
#include "heed/attention/blocks.h"
#include "heed/attention/softmax_rows.h"
#include "heed/attention/work.h"
#include "heed/core/parallel.h"

#ifndef HEED_ATTENTION_FEW_QUERIES_TYPES
#define HEED_ATTENTION_FEW_QUERIES_TYPES
namespace heed {

// Enough tasks for many cores where heads are few. Blocks are long: memory is read fastest in long runs.
inline constexpr int64_t kMostChunks = 64, kLeastChunk = 512, kLongestBlock = 512;

// How a call is cut, and its sums of all chunks.
struct FewQueriesSplit {
  int64_t chunk, chunks, key_block;
  int64_t rows;                                                   // of all chunks
  float *sums = nullptr, *row_max = nullptr, *row_sum = nullptr;  // (B G, chunks, H / G, N, E), and without E

  explicit FewQueriesSplit(const AttentionSizes& z, void* workspace = nullptr) {
    const int64_t wanted = std::clamp<int64_t>(kMostChunks / std::max<int64_t>(z.B * z.G, 1), 1, std::max<int64_t>(z.M / kLeastChunk, 1));
    chunk = even_block(z.M, std::max<int64_t>((z.M + wanted - 1) / wanted, 1), 64);
    chunks = std::max<int64_t>((z.M + chunk - 1) / chunk, 1);
    key_block = even_block(chunk, kLongestBlock, 64);
    rows = z.B * z.H * z.N * chunks;
    if (!workspace) return;
    sums = static_cast<float*>(workspace);
    row_max = sums + rows * z.E;
    row_sum = row_max + rows;
  }
};

}  // namespace heed
#endif

HWY_BEFORE_NAMESPACE();
namespace heed {
namespace HWY_NAMESPACE {

// sums: (rows, E) += weights v. weights: (rows, keys), `stride` apart, v: (keys, E), `token` apart, f32 or bf16
template <class T>
HWY_ATTR void add_values(const float* weights, int64_t stride, const T* v, int64_t token, float* sums, int64_t rows, int64_t keys,
                         int64_t E) {
  const int64_t whole = E / lane_count() * lane_count(), rest = E - whole;
  tile_product({weights, stride, 1}, v, token, sums, E, rows, whole, keys, true);
  if (rest == 0) return;
  for (int64_t r = 0; r < rows; ++r) {
    Lanes sum = load_some(sums + r * E + whole, rest);
    for (int64_t j = 0; j < keys; ++j) sum = fma(weights[r * stride + j], load_some(v + j * token + whole, rest), sum);
    store_some(sum, sums + r * E + whole, rest);
  }
}

// Every query of every head that shares a key head, against one chunk of keys. T: float or Bf16
template <class T>
HWY_ATTR void few_queries_task(const FewQueriesForward& w, const FewQueriesSplit& split, int64_t key_head, int64_t chunk) {
  const ScoreArgs& a = w.scores;
  const AttentionSizes& z = a.sizes;
  const int64_t b = key_head / z.G, g = key_head % z.G, group = z.H / z.G, rows = group * z.N, stride = split.key_block + kRowPadding;
  const int64_t q_size = float_rows_size(w.dtype, rows, z.D);
  const Tensor scratch = Tensor::empty({rows * stride + split.key_block + q_size}, kCpu);
  float *s = raw<float>(scratch), *factors = s + rows * stride;
  const int64_t place = (key_head * split.chunks + chunk) * rows;
  float *sums = split.sums + place * z.E, *row_max = split.row_max + place, *row_sum = split.row_sum + place;
  std::fill_n(sums, rows * z.E, 0.0f);
  std::fill_n(row_max, rows, -HUGE_VALF);
  std::fill_n(row_sum, rows, 0.0f);
  std::fill_n(s, rows * stride, 0.0f);
  const TokenRows queries{const_cast<void*>(w.q), z.H * z.N * z.D, z.N * z.D, z.D};
  const FloatRows q = float_rows(queries, w.dtype, b, g * group, 0, rows, z.D, z.D, factors + split.key_block);

  const int64_t end = std::min(z.M, (chunk + 1) * split.chunk);
  for (int64_t j0 = chunk * split.chunk; j0 < end; j0 += split.key_block) {
    const int64_t keys = std::min(split.key_block, end - j0);
    bool started = false;
    for (int64_t member = 0; member < group; ++member) {
      const ScoreBlock x = a.block(b, g * group + member, 0, z.N, j0, j0 + keys);
      float* head = s + member * z.N * stride;
      if (masked_whole(a.terms, x)) {
        if (started)
          for (int64_t i = 0; i < z.N; ++i) std::fill_n(head + i * stride, keys, 0.0f);
        continue;
      }
      if (!started) {  // scores of all heads at once; heads before this one see nothing here: their weights are zero
        if (a.beta != 0)
          dot_scores(q.data, w.k.at<const T>(b, g, j0), w.k.token, rows, keys, z.D, a.beta, s, stride);
        else
          std::fill_n(s, rows * stride, 0.0f);
        for (int64_t r = 0; r < member * z.N; ++r) std::fill_n(s + r * stride, keys, 0.0f);
        started = true;
      }
      apply_terms(a.terms, x, head, stride);
      for (int64_t i = 0; i < z.N; ++i) {
        const int64_t r = member * z.N + i;
        float *row = s + r * stride, *sum = sums + r * z.E;
        const float rescale = a.hard ? hard_row(row, keys, row_max[r], row_sum[r]) : soft_row(row, keys, row_max[r], row_sum[r]);
        if (rescale != 1) for_lanes(z.E, [&](int64_t e, auto load, auto store) HEED_LANES { store(sum + e, load(sum + e) * rescale); });
        if (a.dropout > 0) {
          drop_factors(a, {b, x.h, i}, j0, keys, factors);
          for_lanes(keys, [&](int64_t j, auto load, auto store) HEED_LANES { store(row + j, load(row + j) * load(factors + j)); });
        }
      }
    }
    if (started) add_values(s, stride, w.v.at<const T>(b, g, j0), w.v.token, sums, rows, keys, z.E);
  }
}

// The chunks of one query, in order.
void join_chunks(const FewQueriesForward& w, const FewQueriesSplit& split, int64_t at) {
  const AttentionSizes& z = w.scores.sizes;
  const int64_t rows = z.H / z.G * z.N, first = at / rows * split.chunks * rows + at % rows;
  float row_max = -HUGE_VALF, row_sum = 0, rescales[kMostChunks];
  for (int64_t c = 0; c < split.chunks; ++c) row_max = std::max(row_max, split.row_max[first + c * rows]);
  for (int64_t c = 0; c < split.chunks; ++c) {
    const float other = split.row_max[first + c * rows];
    rescales[c] = other == row_max ? 1.0f : w.scores.hard ? 0.0f : rescale_factor(other, row_max);
    row_sum += split.row_sum[first + c * rows] * rescales[c];
  }
  const float share = row_sum > 0 ? 1 / row_sum : 0.0f;
  const auto store_as = [&](auto* out) HEED_LANES {
    for_lanes(z.E, [&](int64_t e, auto load, auto store) HEED_LANES {
      Lanes sum = 0;
      for (int64_t c = 0; c < split.chunks; ++c) sum = fma(load(split.sums + (first + c * rows) * z.E + e), rescales[c], sum);
      store(out + e, sum * share);
    });
  };
  w.dtype == DType::bf16 ? store_as(static_cast<Bf16*>(w.out) + at * z.E) : store_as(static_cast<float*>(w.out) + at * z.E);
  if (w.log_sum) w.log_sum[at] = row_sum > 0 ? row_max + std::log(row_sum) : HUGE_VALF;
  if (w.peak) {
    w.peak[2 * at] = row_max;
    w.peak[2 * at + 1] = share;
  }
}

void few_queries_all(const FewQueriesForward& w) {
  const AttentionSizes& z = w.scores.sizes;
  const FewQueriesSplit split(z, w.workspace);
  const auto task_of = w.dtype == DType::bf16 ? few_queries_task<Bf16> : few_queries_task<float>;
  parallel_tasks(z.B * z.G * split.chunks, [&](int64_t task) { task_of(w, split, task / split.chunks, task % split.chunks); });
  parallel_for(z.B * z.H * z.N, rows_per_task(z.E * split.chunks), [&](int64_t begin, int64_t end) HWY_ATTR {
    for (int64_t at = begin; at < end; ++at) join_chunks(w, split, at);
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace heed
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "heed/attention/few_queries_split.h"
#include "heed/core/copy.h"

namespace heed {

HWY_EXPORT(few_queries_all);

void cpu::few_queries_forward(const FewQueriesForward& args) { HWY_DYNAMIC_DISPATCH(few_queries_all)(args); }

int64_t FewQueriesForward::workspace_bytes(Device device) const {
  const auto size = static_cast<int64_t>(sizeof(float));
  if (device.kind != Device::Kind::cpu) return CudaFewQueriesSplit(scores.sizes).workspace_floats(scores.sizes) * size;
  return FewQueriesSplit(scores.sizes).rows * (scores.sizes.E + 2) * size;
}

Tensor forward_of_few_queries(const AttentionPlan& plan, const Tensor& q, const Tensor& k, const Tensor& v, SoftmaxRows& rows) {
  const AttentionSizes& z = plan.sizes;
  const Device device = q.device();
  const Tensor dense_q = contiguous(q), out = Tensor::empty({z.B, z.H, z.N, z.E}, q.dtype(), device);
  (plan.hard ? rows.peak : rows.log_sum) = Tensor::empty(plan.hard ? Shape{z.B, z.H, z.N, 2} : Shape{z.B, z.H, z.N}, DType::f32, device);
  launch(few_queries_forward, device,
         {.scores = score_args(plan, device),
          .q = Raw::bytes(dense_q),
          .k = token_rows(k),
          .v = token_rows(v),
          .out = Raw::bytes(out),
          .log_sum = plan.hard ? nullptr : raw<float>(rows.log_sum),
          .peak = plan.hard ? raw<float>(rows.peak) : nullptr,
          .dtype = q.dtype()});
  return out;
}

}  // namespace heed
#endif
