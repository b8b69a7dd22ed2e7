// Cases of linear, softmax, norms, losses and dropout.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/ops/cases.h"
#include "tests/ops/elementwise_reference.h"

namespace heed::test {
namespace {

double activated(Activation activation, double x) {
  switch (activation) {
    case Activation::none: return x;
#define HEED_REFERENCE(Formula, function) \
  case Activation::function: return reference_of(Elementwise::function).f(x);
      HEED_ACTIVATIONS(HEED_REFERENCE)
#undef HEED_REFERENCE
  }
  return 0;
}

// x: (..., I), w: (O, I), b: (O) if there is a third input
Many linear_reference(const Many& in, Activation activation) {
  const Doubles &x = in[0], &w = in[1];
  const int64_t I = w.dim(1), O = w.dim(0);
  Shape shape = x.shape;
  shape[shape.rank() - 1] = O;
  Doubles out(shape);
  for (int64_t i = 0; i < out.size(); ++i) {
    double total = in.size() > 2 ? in[2][i % O] : 0;
    for (int64_t k = 0; k < I; ++k) total += x[i / O * I + k] * w[i % O * I + k];
    out[i] = activated(activation, total);
  }
  return {out};
}

Case linear_case(const Shape& x, int64_t O, bool bias, Activation activation) {
  Tensors inputs{normal_input(x, 1), normal_input({O, x.back()}, 2)};
  if (bias) inputs.push_back(normal_input({O}, 3));
  return {.what = "to " + std::to_string(O) + ", activation " + std::to_string(static_cast<int>(activation)),
          .inputs = inputs,
          .run = [=](const Tensors& in) { return Tensors{linear(in[0], in[1], bias ? in[2] : Tensor(), activation)}; },
          .reference = [=](const Many& in) { return linear_reference(in, activation); }};
}

// f for every row along the last axis.
Many rowwise(const Doubles& x, const std::function<void(const double* x, double* y, int64_t width)>& f) {
  Doubles out(x.shape);
  const int64_t width = x.dim(-1);
  for (int64_t at = 0; at < x.size(); at += width) f(x.values.data() + at, out.values.data() + at, width);
  return {out};
}

void log_softmax_row(const double* x, double* y, int64_t width) {
  double total = 0;
  for (int64_t i = 0; i < width; ++i) total += std::exp(x[i]);
  for (int64_t i = 0; i < width; ++i) y[i] = x[i] - std::log(total);
}

std::vector<Case> softmax_cases(Tensor (*op)(const Tensor&, int), bool logarithm) {
  const auto reference = [=](const Many& in) {
    return rowwise(in[0], [=](const double* x, double* y, int64_t width) {
      log_softmax_row(x, y, width);
      for (int64_t i = 0; i < width && !logarithm; ++i) y[i] = std::exp(y[i]);
    });
  };
  std::vector<Case> found;
  for (const Shape& shape : {Shape{4, 7}, Shape{1}, Shape{3, 1}, Shape{2, 3, 33}, Shape{2, 131}, Shape{0, 5}, Shape{3, 24}, Shape{1, 300},
                             Shape{1, 520}, Shape{1, 1023}, Shape{1, 1030}})
    found.push_back({.what = "last axis of " + std::to_string(shape.back()),
                     .inputs = {normal_input(shape)},
                     .run = [op](const Tensors& in) { return Tensors{op(in[0], -1)}; },
                     .reference = reference});
  found.push_back({.what = "first axis",
                   .inputs = {normal_input({5, 3})},
                   .run = [op](const Tensors& in) { return Tensors{op(in[0], 0)}; },
                   .reference =
                       [reference](const Many& in) {
                         const auto transposed = [](const Doubles& x) {
                           Doubles out(Shape{x.dim(1), x.dim(0)});
                           for (int64_t i = 0; i < x.dim(0); ++i)
                             for (int64_t j = 0; j < x.dim(1); ++j) out[j * x.dim(0) + i] = x[i * x.dim(1) + j];
                           return out;
                         };
                         return Many{transposed(reference({transposed(in[0])})[0])};
                       }});
  return found;
}

Many norm_reference(const Doubles& x, const Doubles& w, const Doubles* b, double eps) {
  return rowwise(x, [&](const double* from, double* to, int64_t width) {
    double mean = 0, squares = 0;
    const auto n = static_cast<double>(width);
    for (int64_t i = 0; i < width && b; ++i) mean += from[i] / n;
    for (int64_t i = 0; i < width; ++i) squares += (from[i] - mean) * (from[i] - mean) / n;
    for (int64_t i = 0; i < width; ++i) to[i] = (from[i] - mean) / std::sqrt(squares + eps) * w[i] + (b ? (*b)[i] : 0);
  });
}

// Mean over the rows that the options include.
Many entropy_reference(const Doubles& x, const std::vector<int64_t>& targets, int64_t ignore, double smoothing,
                       const std::vector<double>& weights) {
  const int64_t C = x.dim(-1);
  double total = 0, counted = 0;
  std::vector<double> y(static_cast<size_t>(C));
  for (size_t row = 0; row < targets.size(); ++row) {
    if (targets[row] == ignore) continue;
    log_softmax_row(x.values.data() + static_cast<int64_t>(row) * C, y.data(), C);
    const auto t = static_cast<size_t>(targets[row]);
    counted += weights[t];
    total -= (1 - smoothing) * weights[t] * y[t];
    for (size_t c = 0; c < y.size(); ++c) total -= smoothing / static_cast<double>(C) * weights[c] * y[c];
  }
  return {Doubles({}, total / counted)};
}

}  // namespace

template <>
std::vector<Case> cases<Op::linear>() {
  std::vector<Case> found{linear_case({3, 5}, 4, false, Activation::none),   linear_case({1, 1}, 1, true, Activation::none),
                          linear_case({2, 3, 7}, 5, true, Activation::none), linear_case({4}, 3, true, Activation::none),
                          linear_case({1, 37}, 29, true, Activation::none),  linear_case({1, 1, 5}, 35, false, Activation::gelu),
                          linear_case({5, 1}, 7, true, Activation::relu),    linear_case({3, 0}, 4, true, Activation::none),
                          linear_case({2, 3, 0}, 5, false, Activation::gelu)};
#define HEED_LINEAR_CASE(Formula, function) \
  found.push_back(linear_case({3, 5}, 17, Activation::function != Activation::silu, Activation::function));
  HEED_ACTIVATIONS(HEED_LINEAR_CASE)
#undef HEED_LINEAR_CASE
  return found;
}

template <>
std::vector<Case> cases<Op::softmax>() {
  return softmax_cases(&softmax, false);
}
template <>
std::vector<Case> cases<Op::log_softmax>() {
  return softmax_cases(&log_softmax, true);
}

template <>
std::vector<Case> cases<Op::layer_norm>() {
  std::vector<Case> found;
  for (const Shape& shape : {Shape{4, 7}, Shape{2, 3, 33}, Shape{1, 64}, Shape{5, 2}, Shape{21, 5}})
    found.push_back({.what = "width " + std::to_string(shape.back()),
                     .inputs = {normal_input(shape, 1), normal_input({shape.back()}, 2), normal_input({shape.back()}, 3)},
                     .run = [](const Tensors& in) { return Tensors{layer_norm(in[0], in[1], in[2], 1e-3f)}; },
                     .reference = [](const Many& in) { return norm_reference(in[0], in[1], &in[2], 1e-3f); }});
  return found;
}

template <>
std::vector<Case> cases<Op::add_layer_norm>() {
  const auto reference = [](const Many& in) {
    Doubles sum = in[0];
    for (int64_t i = 0; i < sum.size(); ++i) sum[i] += in[1][i];
    return Many{sum, norm_reference(sum, in[2], &in[3], 1e-3f)[0]};
  };
  const Tensors inputs{normal_input({4, 19}, 1), normal_input({4, 19}, 2), normal_input({19}, 3), normal_input({19}, 4)};
  return {{.what = "both outputs used",
           .inputs = inputs,
           .run =
               [](const Tensors& in) {
                 const auto [s, y] = add_layer_norm(in[0], in[1], in[2], in[3], 1e-3f);
                 return Tensors{s, y};
               },
           .reference = reference,
           .halves = false},  // the norm is of the sum as it is stored: Norm.normalizes_the_sum_as_stored
          {.what = "only the norm used",
           .inputs = inputs,
           .run = [](const Tensors& in) { return Tensors{add_layer_norm(in[0], in[1], in[2], in[3], 1e-3f).second}; },
           .reference = [=](const Many& in) { return Many{reference(in)[1]}; },
           .halves = false},
          {.what = "only the sum used",
           .inputs = inputs,
           .run = [](const Tensors& in) { return Tensors{add_layer_norm(in[0], in[1], in[2], in[3], 1e-3f).first}; },
           .reference = [=](const Many& in) { return Many{reference(in)[0]}; }}};
}

TEST(Norm, normalizes_the_sum_as_stored) {
  const Tensor x = converted(normal_input({4, 19}, 1), DType::bf16), residual = converted(normal_input({4, 19}, 2), DType::bf16);
  const Tensor w = normal_input({19}, 3), b = normal_input({19}, 4);
  const auto [s, y] = add_layer_norm(x, residual, w, b);
  EXPECT_EQ(s.dtype(), DType::bf16);
  EXPECT_EQ(s.to_vector<float>(), add(x, residual).to_vector<float>());
  EXPECT_EQ(y.to_vector<float>(), layer_norm(s.detach(), w, b).to_vector<float>());
}

template <>
std::vector<Case> cases<Op::rms_norm>() {
  std::vector<Case> found;
  for (const Shape& shape : {Shape{4, 7}, Shape{2, 3, 33}, Shape{1, 1}})
    found.push_back({.what = "width " + std::to_string(shape.back()),
                     .inputs = {normal_input(shape, 1), normal_input({shape.back()}, 2)},
                     .run = [](const Tensors& in) { return Tensors{rms_norm(in[0], in[1], 1e-3f)}; },
                     .reference = [](const Many& in) { return norm_reference(in[0], in[1], nullptr, 1e-3f); }});
  return found;
}

template <>
std::vector<Case> cases<Op::cross_entropy>() {
  std::vector<Case> found;
  const std::vector<int64_t> targets{3, -100, 0, 18, 7, -100};
  const Tensor t = Tensor::from(targets, {2, 3}, test_device()), weights = positive_input({19}, 9);
  const Doubles w(weights);
  for (float smoothing : {0.0f, 0.1f})
    for (bool weighted : {false, true})
      found.push_back({.what = std::string(weighted ? "weighted" : "plain") + (smoothing > 0 ? " and smoothed" : ""),
                       .inputs = {normal_input({2, 3, 19})},
                       .run =
                           [=](const Tensors& in) {
                             return Tensors{
                                 cross_entropy(in[0], t, {.label_smoothing = smoothing, .class_weights = weighted ? weights : Tensor()})};
                           },
                       .reference =
                           [=](const Many& in) {
                             return entropy_reference(in[0], targets, -100, smoothing, weighted ? w.values : std::vector<double>(19, 1.0));
                           }});
  return found;
}

template <>
std::vector<Case> cases<Op::linear_cross_entropy>() {
  std::vector<Case> found;
  const std::vector<int64_t> targets{3, -100, 0, 18, 7};
  const Tensor t = Tensor::from(targets, {5}, test_device()), weights = positive_input({19}, 9);
  const Doubles w(weights);
  for (bool biased : {false, true})
    found.push_back({.what = biased ? "bias, weights and smoothing" : "plain",
                     .inputs = biased ? Tensors{normal_input({5, 7}, 1), normal_input({19, 7}, 2), normal_input({19}, 3)}
                                      : Tensors{normal_input({5, 7}, 1), normal_input({19, 7}, 2)},
                     .run =
                         [=](const Tensors& in) {
                           const CrossEntropy options{.label_smoothing = biased ? 0.1f : 0, .class_weights = biased ? weights : Tensor()};
                           return Tensors{linear_cross_entropy(in[0], in[1], biased ? in[2] : Tensor(), t, options)};
                         },
                     .reference =
                         [=](const Many& in) {
                           Doubles logits({5, 19});
                           for (int64_t i = 0; i < 5; ++i)
                             for (int64_t c = 0; c < 19; ++c) {
                               logits[i * 19 + c] = biased ? in[2][c] : 0;
                               for (int64_t d = 0; d < 7; ++d) logits[i * 19 + c] += in[0][i * 7 + d] * in[1][c * 7 + d];
                             }
                           return entropy_reference(logits, targets, -100, biased ? 0.1 : 0,
                                                    biased ? w.values : std::vector<double>(19, 1.0));
                         }});
  return found;
}

template <>
std::vector<Case> cases<Op::mean_squared_error>() {
  return {{.what = "odd shape",
           .inputs = {normal_input({3, 7}, 1), normal_input({3, 7}, 2)},
           .run = [](const Tensors& in) { return Tensors{mean_squared_error(in[0], in[1])}; },
           .reference =
               [](const Many& in) {
                 double total = 0;
                 for (int64_t i = 0; i < in[0].size(); ++i) total += (in[0][i] - in[1][i]) * (in[0][i] - in[1][i]);
                 return Many{Doubles({}, total / static_cast<double>(in[0].size()))};
               }}};
}

template <>
std::vector<Case> cases<Op::dropout>() {
  // The reference gets its mask by dropout of ones: the same seed drops the same elements.
  const auto dropped = [](const Tensor& x) {
    Rng rng(5);
    return dropout(x, 0.3f, rng);
  };
  return {{.what = "odd size",
           .inputs = {normal_input({7, 29})},
           .run = [=](const Tensors& in) { return Tensors{dropped(in[0])}; },
           .reference =
               [=](const Many& in) {
                 const Doubles mask(dropped(Tensor::ones(in[0].shape, test_device())));
                 Doubles out = in[0];
                 for (int64_t i = 0; i < out.size(); ++i) out[i] *= mask[i];
                 return Many{out};
               }}};
}

}  // namespace heed::test
