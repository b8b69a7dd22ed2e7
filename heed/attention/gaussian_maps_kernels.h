// Arguments of the kernels of gaussian_maps.h. Read by g++ and nvcc.
#pragma once

#include "heed/core/kernel.h"

namespace heed {

struct GaussianMapSizes {
  int64_t H, Y, R, X, C;  // heads, rows of queries and of keys, columns of queries and of keys
};

struct GaussianMapsForward {
  GaussianMapSizes sizes;
  const float *alpha, *center;  // (H), (H, 2)
  float *rows, *columns;        // (H, Y, R), (H, X, C)
};
HEED_KERNEL(gaussian_maps_forward, GaussianMapsForward);

struct GaussianMapsBackward {
  GaussianMapSizes sizes;
  const float *alpha, *center;    // (H), (H, 2)
  const float *rows, *columns;    // (H, Y, R), (H, X, C)
  const float *drows, *dcolumns;  // as these
  float *dalpha, *dcenter;        // (H), (H, 2)
};
HEED_KERNEL(gaussian_maps_backward, GaussianMapsBackward);

}  // namespace heed
