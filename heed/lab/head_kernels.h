// Detects heads of a vision transformer that act as convolutions: they attend to the same few offsets from every query, whatever the image.
// Fits a 5 x 5 kernel to the attention maps of each head.
#pragma once

#include <array>
#include <vector>

#include "heed/core/tensor.h"

namespace heed::lab {

inline constexpr int64_t kKernelSide = 5;
inline constexpr int64_t kRandomValues = 1024;   // random channels per token, for the error
inline constexpr double kConvolvingShare = 0.9;  // explained share from which a head acts as a convolution

// Statistics over all queries. Where a tap reaches beyond the grid, the convolution reads the nearest key at the edge, as sharp heads do.
struct HeadKernel {
  int64_t layer = 0, head = 0;
  std::array<int64_t, 2> center{};  // key - query, rows and columns: the most frequent argmax
  double mass3 = 0, mass5 = 0;      // mean attention inside 3 x 3 and 5 x 5 around it, or around the nearest key at the edge
  std::vector<double> kernel = {};  // (5, 5): the mean weights over the queries whose window is on the grid
  double explained = 0;             // fraction of the maps' sum of squares explained by this kernel
  double error = 0;                 // relative RMS error of convolving random values with the kernel instead of applying the head

  bool convolves() const { return explained >= kConvolvingShare; }
};

// maps: (B, H, M, M) over tokens, the last Y X of them patches on a grid; Y, X >= 5
std::vector<HeadKernel> head_kernels(const Tensor& maps, int64_t layer, int64_t Y, int64_t X);

}  // namespace heed::lab
