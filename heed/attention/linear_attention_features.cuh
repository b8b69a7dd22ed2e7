// The feature maps of linear attention on GPUs and their gradients.
#pragma once

#include "heed/attention/linear_attention_kernels.h"

namespace heed::cuda {

// Rows of numbers that get features: (rows, D) -> (rows, R).
struct FeatureRows {
  const float* x;
  float* y;
  float* gains;  // of keys with random features, else null
  int64_t rows;
};
void compute_features(const LinearAttentionArgs& in, const FeatureRows& f);

// Back through the features: dy (rows, R) -> dx (rows, D).
struct FeatureGradient {
  const float *x, *y;
  float *dy, *dx;
  float* shares;  // of keys with random features: the sums of y dy; else null
  int64_t rows;
};
void compute_features_gradient(const LinearAttentionArgs& in, const FeatureGradient& f);

}  // namespace heed::cuda
