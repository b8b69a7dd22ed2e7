#include "heed/ops/row_linear.h"

#include <cmath>
#include <vector>

#include "heed/core/parallel.h"
#include "heed/core/raw.h"
#include "heed/ops/epilogue.h"

namespace heed {
namespace {

// The rows of x as the product sees them, (rows, I).
std::vector<float> normed_rows(const RowLinear& p) {
  std::vector<float> out(p.x, p.x + p.rows * p.I);
  if (!p.norm_weight) return out;
  const auto count = static_cast<double>(p.I);
  for (int64_t r = 0; r < p.rows; ++r) {
    float* const row = out.data() + r * p.I;
    double mean = 0, square = 0;
    for (int64_t i = 0; p.norm_bias && i < p.I; ++i) mean += row[i] / count;
    for (int64_t i = 0; i < p.I; ++i) square += (row[i] - mean) * (row[i] - mean) / count;
    const double scale = 1 / std::sqrt(square + static_cast<double>(p.eps));
    for (int64_t i = 0; i < p.I; ++i)
      row[i] = static_cast<float>((row[i] - mean) * scale) * p.norm_weight[i] + (p.norm_bias ? p.norm_bias[i] : 0);
  }
  return out;
}

float number(float x) { return x; }
float number(int8_t x) { return static_cast<float>(x); }
float number(Bf16 x) { return to_float(x); }

template <class W>
void multiply_row_layer(const RowLinear& p, const std::vector<float>& x) {
  std::vector<float> y(static_cast<size_t>(p.rows * p.O));
  parallel_for(p.O, rows_per_task(p.I * p.rows), [&](int64_t begin, int64_t end) {
    for (int64_t o = begin; o < end; ++o)
      for (int64_t r = 0; r < p.rows; ++r) {
        const W* const w = static_cast<const W*>(p.weight) + o * p.stride;
        const float* const row = x.data() + r * p.I;
        double sum = 0;
        for (int64_t i = 0; i < p.I; ++i) sum += static_cast<double>(row[i]) * static_cast<double>(number(w[i]));
        y[static_cast<size_t>(r * p.O + o)] = static_cast<float>(sum) * (p.scales ? p.scales[o] : 1);
      }
  });
  apply_epilogue({.sums = y.data(),
                  .sums_stride = p.O,
                  .z = nullptr,
                  .y = y.data(),
                  .stride = p.O,
                  .bias = p.bias,
                  .activation = p.activation,
                  .rows = p.rows,
                  .columns = p.O});
  for (int64_t at = 0; at < p.rows * p.O; ++at)
    p.out[at] = y[static_cast<size_t>(at)] * (p.factor ? p.factor[at] : 1) + (p.residual ? p.residual[at] : 0);
}

}  // namespace

bool row_linear_supports(const Tensor& weight, int64_t rows, int64_t I) {
  return rows <= RowLinear::kMostRows && rows * weight.size(1) <= RowLinear::kMostInputs && I % 8 == 0;
}

void row_linear(const RowLayer& layer, const Tensor& x, const Tensor& out, const Tensor& factor, const Tensor& residual) {
  const Tensor& w = layer.weight;
  const int64_t rows = x.rank() == 2 ? x.size(0) : -1, I = x.rank() == 2 ? x.size(1) : -1, O = w.size(0);
  const bool bytes = w.dtype() == DType::u8;
  check(rows >= 0 && (bytes ? w.size(1) >= I : w.size(1) == I) && row_linear_supports(w, rows, I), "row_linear: x has shape ", x.shape(),
        ", the weight ", w.shape(), ", expected (rows, I) with up to ", RowLinear::kMostRows, " rows and an I that 8 divides");
  for (const Tensor* each : {&out, &factor, &residual})
    check(!each->defined() || each->shape() == Shape{rows, O}, "row_linear: a result or summand of shape ", each->shape(), ", expected (",
          rows, ", ", O, ")");
  for (const Tensor* each : {&layer.scales, &layer.bias})
    check(!each->defined() || each->shape() == Shape{O}, "row_linear: scales or a bias of shape ", each->shape(), ", expected (", O, ")");
  for (const Tensor* each : {&layer.norm_weight, &layer.norm_bias})
    check(!each->defined() || each->shape() == Shape{I}, "row_linear: a norm of shape ", each->shape(), ", expected (", I, ")");
  check(bytes || w.dtype() == DType::f32 || w.dtype() == DType::bf16, "row_linear: a weight of ", name_of(w.dtype()),
        ", expected f32, bf16 or int8 as u8");
  check(bytes == layer.scales.defined(), "row_linear: a weight of ", name_of(w.dtype()), bytes ? " without" : " with", " scales");
  const Device device =
      common_device("row_linear", {&x, &w, &layer.scales, &layer.bias, &layer.norm_weight, &layer.norm_bias, &out, &factor, &residual});
  launch(row_linear_forward, device,
         {.x = raw<float>(x),
          .weight = Raw::bytes(w),
          .scales = raw_or_null<float>(layer.scales),
          .bias = raw_or_null<float>(layer.bias),
          .norm_weight = raw_or_null<float>(layer.norm_weight),
          .norm_bias = raw_or_null<float>(layer.norm_bias),
          .factor = raw_or_null<float>(factor),
          .residual = raw_or_null<float>(residual),
          .out = raw<float>(out),
          .rows = rows,
          .I = I,
          .O = O,
          .stride = w.size(1),
          .eps = layer.eps,
          .activation = layer.activation,
          .dtype = w.dtype()});
}

void cpu::row_linear_forward(const RowLinear& args) {
  const std::vector<float> x = normed_rows(args);
  switch (args.dtype) {
    case DType::bf16: return multiply_row_layer<Bf16>(args, x);
    case DType::u8: return multiply_row_layer<int8_t>(args, x);
    default: return multiply_row_layer<float>(args, x);
  }
}

}  // namespace heed
