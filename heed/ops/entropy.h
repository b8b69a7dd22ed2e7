// Cross-entropy of rows, for the ops that need it: loss.cc holds the kernels.
#pragma once

#include "heed/ops/ops.h"

namespace heed {

// One cross-entropy. With p = softmax(x), w the class weights and s the smoothing, a row with target t costs
// (1 - s) w_t (-log p_t) + s / C sum_c w_c (-log p_c), and the mean divides by the sum of the w_t.
struct Entropy {
  const float* x;          // (rows, C)
  const int64_t* targets;  // (rows)
  const float* weights;    // (C), or null: all 1
  float* log_total;        // (rows): log(sum(exp(x)))
  int64_t rows, C, ignore_index;
  float smoothing;

  float weight_of(int64_t c) const { return weights ? weights[c] : 1.0f; }
};

struct EntropyTotals {
  double counted, weights;  // sums of the weights of the targets that count, and of all classes
};
EntropyTotals totals_of(const Entropy& e);  // an error where a target is no class, or none counts

void entropy_costs(const Entropy& e, float* costs);                                 // fills costs (rows) and log_total
void entropy_gradients(const Entropy& e, float factor, double weights, float* dx);  // dx: (rows, C), which may be x

// What the options and targets of a loss must be like. -> the class weights, dense, or undefined
Tensor checked_weights(const char* op, const CrossEntropy& options, const Tensor& targets, int64_t C);

}  // namespace heed
