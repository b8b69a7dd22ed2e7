// The op: shapes are checked, forward saves one log-sum-exp per query, backward recomputes the rest.
#include "heed/attention/attention.h"

#include "heed/attention/edit.h"
#include "heed/attention/separable.h"
#include "heed/attention/tap.h"
#include "heed/attention/work.h"
#include "heed/ops/ops.h"
#include "heed/ops/storage.h"

namespace heed {
namespace {

AttentionSizes sizes_of(const Tensor& q, const Tensor& k, const Tensor& v) {
  check(q.rank() == 4 && k.rank() == 4 && v.rank() == 4, "attention: q ", q.shape(), ", k ", k.shape(), ", v ", v.shape(),
        ", expected (B, H, N, D), (B, G, M, D), (B, G, M, E)");
  const AttentionSizes z{q.size(0), q.size(1), k.size(1), q.size(2), k.size(2), q.size(3), v.size(3)};
  check(k.size(0) == z.B && v.size(0) == z.B, "attention: batches of ", z.B, ", ", k.size(0), " and ", v.size(0));
  check(k.size(3) == z.D, "attention: queries have ", z.D, " numbers, keys ", k.size(3));
  check(v.size(2) == z.M && v.size(1) == z.G, "attention: k ", k.shape(), " and v ", v.shape(), " differ in heads or keys");
  check(z.G > 0 && z.H % z.G == 0, "attention: ", z.H, " query heads do not share ", z.G, " key heads evenly");
  return z;
}

// Kernels read f32 and bf16.
bool is_storage(const Tensor& x) { return x.dtype() == DType::f32 || x.dtype() == DType::bf16; }

// Position-only Gaussian attention on whole rows of a grid has a map that is a product of two small ones.
const Gaussian2d* separable_term(const AttentionPlan& plan, const AttentionOptions& options) {
  if (plan.beta != 0 || plan.hard || plan.dropout > 0 || plan.sizes.first_query != 0 || options.terms.size() != 1) return nullptr;
  const auto* term = std::get_if<Gaussian2d>(&options.terms[0]);
  const bool whole = term && plan.sizes.N % term->width == 0 && plan.sizes.M % term->width == 0 && plan.sizes.M > 0;
  return whole ? term : nullptr;
}

}  // namespace

Tensor readable(const Tensor& x) { return is_storage(x) && x.strides()[3] == 1 ? x.detach() : dense_storage("attention", x); }

AttentionPlan plan_of(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionOptions& options) {
  AttentionPlan plan{.sizes = sizes_of(q, k, v), .hard = options.hard != Hard::no, .dropout = options.dropout};
  const Device device = common_device("attention", {&q, &k, &v});
  check(options.first_query >= 0, "attention: the first query is at ", options.first_query, ", expected 0 or more");
  plan.sizes.first_query = options.first_query;
  plan.beta = options.beta.number_for(plan.sizes.D);
  check(options.terms.size() <= kMaxTerms, "attention: ", options.terms.size(), " terms, at most ", kMaxTerms);
  for (const Term& term : options.terms) plan.terms.push_back(checked(term, plan.sizes, device));
  check(options.dropout >= 0 && options.dropout < 1, "attention: dropout ", options.dropout, ", expected 0 or more and below 1");
  if (options.dropout > 0) {
    check(options.rng != nullptr, "attention: dropout needs a source of random numbers (rng)");
    plan.dropout_key = options.rng->next();
  }
  return plan;
}

ScoreArgs score_args(const AttentionPlan& plan, Device device) {
  ScoreArgs out{.sizes = plan.sizes,
                .beta = plan.beta,
                .hard = plan.hard,
                .dropout = plan.dropout,
                .dropout_key = plan.dropout_key,
                .device = device};
  for (const Term& term : plan.terms) out.terms.terms[out.terms.count++] = term_args(term);
  return out;
}

// A beta per head is a product with the queries.
Tensor scaled_by_head(const Tensor& q, const Tensor& beta) {
  const int64_t heads = q.rank() == 4 ? q.size(1) : 0;
  check(beta.rank() == 1 && (beta.size(0) == 1 || beta.size(0) == heads), "attention: beta has shape ", beta.shape(), ", expected (1) or (",
        heads, ")");
  return multiply(q, reshape(beta, {1, beta.size(0), 1, 1}));
}

Tensor attention(const Tensor& query, const Tensor& key, const Tensor& value, const AttentionOptions& options) {
  const bool as_stored = is_storage(query) && key.dtype() == query.dtype() && value.dtype() == query.dtype();
  if (!as_stored && (is_half(query) || is_half(key) || is_half(value)))
    return in_f32(query, [&](const Tensor& wide) { return attention(wide, widen(key), widen(value), options); });
  if (AttentionEdit* edit = AttentionEdit::newest()) return edit->call(query, key, value, options);
  if (options.beta.tensor.defined()) {
    AttentionOptions scaled = options;
    scaled.beta = 1.0f;
    return attention(scaled_by_head(query, options.beta.tensor), key, value, scaled);
  }
  const AttentionPlan plan = plan_of(query, key, value, options);
  if (AttentionTap::newest()) AttentionTap::look(query, key, options);
  if (const Gaussian2d* term = separable_term(plan, options)) return gaussian_attention(*term, plan.sizes.N, value);
  const Tensor q = readable(query), k = readable(key), v = readable(value);
  SoftmaxRows rows;
  const Tensor out = (few_queries(plan.sizes) ? forward_of_few_queries : forward_in_blocks)(plan, q, k, v, rows);

  Tensors inputs{query, key, value};
  for (const Term& term : options.terms)
    for (const Tensor& parameter : parameters_of(term)) inputs.push_back(parameter);
  std::vector<bool> wanted;
  for (size_t i = 3; i < inputs.size(); ++i) wanted.push_back(inputs[i].needs_grad());
  return record(op::attention, out, inputs, [=, hard = options.hard](const Tensor& g) {
    SoftmaxRows all = rows;
    // Backward must find the largest score again, bit for bit, and computes scores as blocks do.
    if (hard != Hard::no && few_queries(plan.sizes)) forward_in_blocks(plan, q, k, v, all);
    Tensor soft_out = hard == Hard::no ? out : Tensor();
    if (hard == Hard::straight_through) {
      AttentionPlan soft = plan;
      soft.hard = false;
      soft_out = forward_in_blocks(soft, q, k, v, all);
    }
    const AttentionGradients grads = attention_gradients(plan, q, k, v, soft_out, all, readable(g), wanted);
    Grads result{grads.q, grads.k, grads.v};
    result.insert(result.end(), grads.parameters.begin(), grads.parameters.end());
    return result;
  });
}

}  // namespace heed
