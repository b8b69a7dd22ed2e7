// The op: shapes are checked, operands made dense, forward keeps one log-sum-exp per query, backward recomputes the rest.
#include "heed/attention/attention.h"

#include <cmath>

#include "heed/attention/kernels.h"
#include "heed/core/raw.h"
#include "heed/ops/half.h"
#include "heed/ops/ops.h"

namespace heed {
namespace {

AttentionSizes sizes_of(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionOptions& options) {
  check(q.rank() == 4 && k.rank() == 4 && v.rank() == 4, "attention: q ", q.shape(), ", k ", k.shape(), ", v ", v.shape(),
        ", expected (B, H, N, D), (B, G, M, D), (B, G, M, E)");
  const AttentionSizes s{.B = q.size(0),
                         .H = q.size(1),
                         .G = k.size(1),
                         .N = q.size(2),
                         .M = k.size(2),
                         .D = q.size(3),
                         .E = v.size(3),
                         .beta = options.beta.value_or(1 / std::sqrt(static_cast<float>(q.size(3))))};
  check(k.size(0) == s.B && v.size(0) == s.B, "attention: batches of ", s.B, ", ", k.size(0), " and ", v.size(0));
  check(k.size(3) == s.D, "attention: queries have ", s.D, " numbers, keys ", k.size(3));
  check(v.size(2) == s.M && v.size(1) == s.G, "attention: k ", k.shape(), " and v ", v.shape(), " differ in heads or keys");
  check(s.G > 0 && s.H % s.G == 0, "attention: ", s.H, " query heads do not share ", s.G, " key heads evenly");
  return s;
}

void check_shape(const char* term, const Tensor& x, const Shape& expected) {
  check(x.defined() && x.shape() == expected, "attention: ", term, " has shape ", x.defined() ? x.shape() : Shape{}, ", expected ",
        expected);
}

// Terms with dense parameters of the right shapes.
std::vector<Term> checked_terms(const std::vector<Term>& terms, const AttentionSizes& s) {
  std::vector<Term> ready;
  for (const Term& term : terms) {
    Term dense = term;
    if (auto* t = std::get_if<KeyLengths>(&dense)) {
      check_shape("KeyLengths", t->lengths, {s.B});
      t->lengths = contiguous(converted(t->lengths, DType::i64));
    } else if (auto* bias = std::get_if<Bias>(&dense)) {
      check(
          bias->values.rank() == 4 && broadcast_shape("attention", bias->values.shape(), {s.B, s.H, s.N, s.M}) == Shape{s.B, s.H, s.N, s.M},
          "attention: Bias has shape ", bias->values.shape(), ", expected one that broadcasts to ", Shape{s.B, s.H, s.N, s.M});
      bias->values = dense_f32("attention", bias->values);
    } else if (auto* relative = std::get_if<RelativeBias>(&dense)) {
      check(relative->table.rank() == 2 && relative->table.size(1) % 2 == 1, "attention: RelativeBias has a table ",
            relative->table.shape(), ", expected (H, 2 R + 1)");
      check_shape("RelativeBias", relative->table, {s.H, relative->table.size(1)});
      relative->table = dense_f32("attention", relative->table);
    } else if (auto* alibi = std::get_if<Alibi>(&dense)) {
      check_shape("Alibi", alibi->slopes, {s.H});
      alibi->slopes = dense_f32("attention", alibi->slopes);
    } else if (auto* gaussian = std::get_if<Gaussian2d>(&dense)) {
      check_shape("Gaussian2d's alpha", gaussian->alpha, {s.H});
      check_shape("Gaussian2d's center", gaussian->center, {s.H, 2});
      check(gaussian->width >= 1, "attention: Gaussian2d on a grid of width ", gaussian->width, ", expected 1 or more");
      gaussian->alpha = dense_f32("attention", gaussian->alpha);
      gaussian->center = dense_f32("attention", gaussian->center);
    } else if (const auto* chunks = std::get_if<Chunks>(&dense)) {
      check(chunks->size >= 1 && chunks->shift >= 0, "attention: Chunks of ", chunks->size, " shifted by ", chunks->shift,
            ", expected 1 and 0 or more");
    } else if (const auto* dilated = std::get_if<Dilated>(&dense)) {
      check(dilated->step >= 1, "attention: Dilated by ", dilated->step, ", expected 1 or more");
    }
    ready.push_back(dense);
  }
  return ready;
}

}  // namespace

Tensor attention(const Tensor& query, const Tensor& key, const Tensor& value, const AttentionOptions& options) {
  if (is_half(query) || is_half(key) || is_half(value))
    return in_f32(query, [&](const Tensor& wide) { return attention(wide, widen(key), widen(value), options); });
  const AttentionSizes sizes = sizes_of(query, key, value, options);
  const std::vector<Term> terms = checked_terms(options.terms, sizes);
  const Tensor q = dense_f32("attention", query), k = dense_f32("attention", key), v = dense_f32("attention", value);
  const Tensor out = Tensor::empty({sizes.B, sizes.H, sizes.N, sizes.E}), log_total = Tensor::empty({sizes.B, sizes.H, sizes.N});
  attention_forward(sizes, terms, q, k, v, out, log_total);

  Tensors inputs{query, key, value};
  for (const Term& term : options.terms)
    for (const Tensor& parameter : parameters_of(term)) inputs.push_back(parameter);
  return record(op::attention, out, inputs, [=](const Tensor& g) {
    AttentionGradients grads = attention_backward(sizes, terms, q, k, v, out, log_total, contiguous(g));
    Grads all{grads.q, grads.k, grads.v};
    for (size_t i = 3; i < inputs.size(); ++i) all.push_back(sum_to(grads.parameters[i - 3], inputs[i].shape()));
    return all;
  });
}

}  // namespace heed
