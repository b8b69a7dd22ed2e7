// Which heads of a vision transformer act as convolutions: one that does looks at the same few places beside every query, whatever the
// picture. Its kernel is fitted to its maps.
#pragma once

#include <array>
#include <vector>

#include "heed/core/tensor.h"

namespace heed::lab {

inline constexpr int64_t kKernelSide = 5;

// All numbers are of queries whose window of 5 x 5 round the centre lies on the grid.
struct HeadKernel {
  int64_t layer = 0, head = 0;
  std::array<int64_t, 2> center{};  // key - query, rows and columns: where most queries look most
  double mass3 = 0, mass5 = 0;      // mean weight inside 3 x 3 and 5 x 5 round it
  std::vector<double> kernel = {};  // (5, 5): the mean weights, which fit the maps best
  double explained = 0;             // share of the maps' sum of squares that this one kernel accounts for
  double error = 0;  // of the kernel's convolution from what the head makes of random values; root of the mean square, as a share

  bool convolves() const { return explained >= 0.9; }
};

// maps: (B, H, M, M) of tokens, the last Y X of which are patches on a grid; Y, X >= 5
std::vector<HeadKernel> head_kernels(const Tensor& maps, int64_t layer, int64_t Y, int64_t X);

}  // namespace heed::lab
