// Scores as in few_queries.cc, stored. A task takes some neighbouring queries of a head, which share the keys they read.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "heed/attention/probabilities.cc"
#include "hwy/foreach_target.h"
// after foreach_target
#include "heed/attention/apply_terms.h"
#include "heed/attention/softmax_rows.h"
#include "heed/attention/work.h"
#include "heed/core/parallel.h"

#ifndef HEED_ATTENTION_PROBABILITIES_TYPES
#define HEED_ATTENTION_PROBABILITIES_TYPES
namespace heed {

// Neighbouring queries [first, first + rows) that become the rows of the result from `place` on.
struct QueryRun {
  int64_t place, first, rows;
};

inline std::vector<QueryRun> runs_of(const int64_t* rows, int64_t count) {
  constexpr int64_t longest = 8;
  std::vector<QueryRun> runs;
  for (int64_t i = 0; i < count; ++i) {
    if (!runs.empty() && runs.back().rows < longest && runs.back().first + runs.back().rows == rows[i])
      ++runs.back().rows;
    else
      runs.push_back({i, rows[i], 1});
  }
  return runs;
}

}  // namespace heed
#endif

HWY_BEFORE_NAMESPACE();
namespace heed {
namespace HWY_NAMESPACE {

void probabilities_task(const AttentionProbabilities& w, int64_t b, int64_t head, const QueryRun& run) {
  const ScoreArgs& a = w.scores;
  const AttentionSizes& z = a.sizes;
  const int64_t h = w.heads[head], key_block = key_block_of(z.M), stride = key_block + kRowPadding;
  const Tensor scratch = Tensor::empty({run.rows * stride}, kCpu);
  float* s = raw<float>(scratch);
  float* out = w.out + ((b * w.head_count + head) * w.row_count + run.place) * z.M;
  for (int64_t j0 = 0; j0 < z.M; j0 += key_block) {
    const ScoreBlock x = a.block(b, h, run.first, run.first + run.rows, j0, std::min(z.M, j0 + key_block));
    const bool none = masked_whole(a.terms, x);
    std::fill_n(s, run.rows * stride, none ? -HUGE_VALF : 0.0f);
    if (!none && a.beta != 0)
      dot_scores(w.q + ((b * z.H + h) * z.N + run.first) * z.D, w.k.at(b, h / (z.H / z.G), j0), w.k.token, run.rows, x.keys(), z.D, a.beta,
                 s, stride);
    if (!none) apply_terms(a.terms, x, s, stride);
    for (int64_t r = 0; r < run.rows; ++r) std::copy_n(s + r * stride, x.keys(), out + r * z.M + j0);
  }
  for (int64_t r = 0; r < run.rows; ++r) {
    float *row = out + r * z.M, row_max = -HUGE_VALF, row_sum = 0;
    a.hard ? hard_row(row, z.M, row_max, row_sum) : soft_row(row, z.M, row_max, row_sum);
    const float share = row_sum > 0 ? 1 / row_sum : 0.0f;
    for_lanes(z.M, [&](int64_t j, auto load, auto store) HEED_LANES { store(row + j, load(row + j) * share); });
  }
}

void probabilities_all(const AttentionProbabilities& w) {
  const std::vector<QueryRun> all = runs_of(w.rows, w.row_count);
  const int64_t heads = w.head_count, runs = static_cast<int64_t>(all.size());
  parallel_tasks(w.scores.sizes.B * heads * runs, [&](int64_t task) {
    probabilities_task(w, task / runs / heads, task / runs % heads, all[static_cast<size_t>(task % runs)]);
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace heed
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <numeric>

#include "heed/attention/probabilities.h"
#include "heed/ops/storage.h"

namespace heed {

HWY_EXPORT(probabilities_all);

void cpu::attention_probabilities_forward(const AttentionProbabilities& args) { HWY_DYNAMIC_DISPATCH(probabilities_all)(args); }

namespace {

// All of [0, count) when none are chosen.
void complete(std::vector<int64_t>& chosen, int64_t count, const char* what) {
  for (int64_t one : chosen) check(one >= 0 && one < count, "attention_probabilities: ", what, " ", one, " of ", count);
  if (!chosen.empty()) return;
  chosen.resize(static_cast<size_t>(count));
  std::iota(chosen.begin(), chosen.end(), 0);
}

}  // namespace

Tensor attention_probabilities(const Tensor& query, const Tensor& key, const AttentionOptions& options, std::vector<int64_t> heads,
                               std::vector<int64_t> rows) {
  const NoGrad quiet;
  AttentionOptions still = options;
  still.dropout = 0;
  Tensor q = widen(query);
  if (options.beta.tensor.defined()) {
    q = scaled_by_head(q, options.beta.tensor);
    still.beta = 1.0f;
  }
  const Tensor wide = widen(key);
  const AttentionPlan plan = plan_of(q, wide, wide, still);
  complete(heads, plan.sizes.H, "head");
  complete(rows, plan.sizes.N, "row");
  const int64_t head_count = static_cast<int64_t>(heads.size()), row_count = static_cast<int64_t>(rows.size());
  const Device device = q.device();
  const Tensor dense_q = dense_f32("attention_probabilities", q);
  const Tensor k = wide.dtype() == DType::f32 && wide.strides()[3] == 1 ? wide : dense_f32("attention_probabilities", wide);
  const Tensor chosen_heads = Tensor::from(heads, {head_count}, kCpu).to(device),
               chosen_rows = Tensor::from(rows, {row_count}, kCpu).to(device);
  const Tensor out = Tensor::empty({plan.sizes.B, head_count, row_count, plan.sizes.M}, DType::f32, device);
  launch(attention_probabilities_forward, device,
         {.scores = score_args(plan, device),
          .q = raw<float>(dense_q),
          .k = token_rows(k),
          .out = raw<float>(out),
          .heads = raw<int64_t>(chosen_heads),
          .rows = raw<int64_t>(chosen_rows),
          .head_count = head_count,
          .row_count = row_count});
  return out;
}

}  // namespace heed
#endif
