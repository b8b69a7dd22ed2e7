// How much of a K x K convolution the heads of a layer with Gaussian positions cover: for the theorem of Cordonnier, Loukas and Jaggi 2020
// every offset needs a head of its own that is one-hot there.
#pragma once

#include "heed/models/gaussian_heads.h"

namespace heed::lab {

struct LayerCoverage {
  double covered = 0;  // share of the K x K offsets that are nearest to some centre
  double sharp = 0;    // the same, counting only heads whose largest weight is one half or more
  double one_hot = 0;  // mean largest weight
};

LayerCoverage coverage_of(const GaussianLayer& layer, int64_t K);
int64_t widest_kernel(const GaussianLayer& layer);  // the largest odd K with a head for each of the K x K offsets

}  // namespace heed::lab
