#include "heed/lab/head_kernels.h"

#include <algorithm>
#include <cmath>

#include "heed/ops/ops.h"

namespace heed::lab {
namespace {

constexpr int64_t kKernelHalf = kKernelSide / 2, kRandomValues = 16;  // kRandomValues: random channels per token

struct QuerySpan {
  int64_t begin, end;
  int64_t size() const { return std::max<int64_t>(end - begin, 0); }
};
// Queries on an axis whose key at `offset` is at least `margin` away from the border.
QuerySpan span_of(int64_t size, int64_t offset, int64_t margin) {
  return {std::max<int64_t>(0, margin - offset), std::min(size, size - margin - offset)};
}

// The maps of one head.
struct OneHead {
  const float* maps;  // (B, N, N), items `item` floats apart
  int64_t B, item, Y, X;

  float at(int64_t b, int64_t y, int64_t x, int64_t key_y, int64_t key_x) const {
    return maps[b * item + (y * X + x) * Y * X + key_y * X + key_x];
  }
  // Calls visit(item, y, x) for queries with that margin.
  template <class Visit>
  void queries(int64_t down, int64_t along, int64_t margin, const Visit& visit) const {
    const QuerySpan rows = span_of(Y, down, margin), columns = span_of(X, along, margin);
    for (int64_t b = 0; b < B; ++b)
      for (int64_t y = rows.begin; y < rows.end; ++y)
        for (int64_t x = columns.begin; x < columns.end; ++x) visit(b, y, x);
  }
  int64_t count(int64_t down, int64_t along, int64_t margin) const {
    return B * span_of(Y, down, margin).size() * span_of(X, along, margin).size();
  }

  // The most frequent argmax offset, which border effects do not shift.
  std::array<int64_t, 2> center() const {
    std::vector<int64_t> argmax_counts(static_cast<size_t>((2 * Y - 1) * (2 * X - 1)));
    for (int64_t b = 0; b < B; ++b)
      for (int64_t q = 0; q < Y * X; ++q) {
        const float* weights = maps + b * item + q * Y * X;
        const int64_t key = std::max_element(weights, weights + Y * X) - weights;
        ++argmax_counts[static_cast<size_t>((key / X - q / X + Y - 1) * (2 * X - 1) + key % X - q % X + X - 1)];
      }
    std::array<int64_t, 2> best{};
    int64_t most = -1;
    for (int64_t i = 0; i < std::ssize(argmax_counts); ++i) {
      const int64_t down = i / (2 * X - 1) - (Y - 1), along = i % (2 * X - 1) - (X - 1);
      if (argmax_counts[static_cast<size_t>(i)] <= most || count(down, along, kKernelHalf) == 0) continue;
      most = argmax_counts[static_cast<size_t>(i)], best = {down, along};
    }
    return best;
  }
};

void fit_kernel(const OneHead& maps, HeadKernel& out) {
  const auto [down, along] = out.center;
  const auto count = static_cast<double>(maps.count(down, along, kKernelHalf));
  out.kernel.assign(kKernelSide * kKernelSide, 0);
  double squares = 0;
  maps.queries(down, along, kKernelHalf, [&, down = down, along = along](int64_t b, int64_t y, int64_t x) {
    for (int64_t i = 0; i < kKernelSide * kKernelSide; ++i)
      out.kernel[static_cast<size_t>(i)] +=
          maps.at(b, y, x, y + down + i / kKernelSide - kKernelHalf, x + along + i % kKernelSide - kKernelHalf) / count;
    for (int64_t key = 0; key < maps.Y * maps.X; ++key) squares += std::pow(maps.at(b, y, x, key / maps.X, key % maps.X), 2);
  });
  double fitted = 0;  // replacing n numbers by their mean w explains n w^2 of their squares
  for (size_t i = 0; i < out.kernel.size(); ++i) {
    const int64_t row = static_cast<int64_t>(i) / kKernelSide - kKernelHalf, column = static_cast<int64_t>(i) % kKernelSide - kKernelHalf;
    fitted += count * out.kernel[i] * out.kernel[i];
    out.mass5 += out.kernel[i];
    if (std::abs(row) <= 1 && std::abs(column) <= 1) out.mass3 += out.kernel[i];
  }
  out.explained = squares > 0 ? fitted / squares : 0;
}

// attended: (B, N, E), the head applied to values: (1, E, Y, X).
double convolution_error(const OneHead& maps, const HeadKernel& head, const Tensor& values, const Tensor& attended) {
  const int64_t E = values.size(1);
  const std::vector<float> taps(head.kernel.begin(), head.kernel.end());
  const Tensor kernel = contiguous(expand(Tensor::from(taps, {1, 1, kKernelSide, kKernelSide}, kCpu), {E, 1, kKernelSide, kKernelSide}));
  const Tensor seen = conv2d(values, kernel, {}, {.groups = E});  // (1, E, Y - 4, X - 4), indexed by the window's corner
  const std::vector<float> expected = seen.to_vector<float>(), found = attended.to_vector<float>();
  const auto [down, along] = head.center;
  double distance = 0, squares = 0;
  maps.queries(down, along, kKernelHalf, [&, down = down, along = along](int64_t b, int64_t y, int64_t x) {
    for (int64_t e = 0; e < E; ++e) {
      const int64_t corner = (e * seen.size(2) + y + down - kKernelHalf) * seen.size(3) + x + along - kKernelHalf;
      const double here = found[static_cast<size_t>(((b * maps.Y + y) * maps.X + x) * E + e)];
      distance += std::pow(here - expected[static_cast<size_t>(corner)], 2);
      squares += here * here;
    }
  });
  return squares > 0 ? std::sqrt(distance / squares) : 0;
}

}  // namespace

std::vector<HeadKernel> head_kernels(const Tensor& all_maps, int64_t layer, int64_t Y, int64_t X) {
  const NoGrad no_grad;
  const int64_t N = Y * X;
  check(all_maps.rank() == 4 && all_maps.size(2) == all_maps.size(3) && all_maps.size(2) >= N, "head kernels: maps of shape ",
        all_maps.shape(), ", expected (B, H, M, M) with M of ", N, " or more");
  check(std::min(Y, X) >= kKernelSide, "head kernels: a grid of ", Y, " x ", X, ", expected ", kKernelSide, " or more in both directions");
  const int64_t B = all_maps.size(0), H = all_maps.size(1), M = all_maps.size(2);
  const Tensor maps = contiguous(slice(slice(all_maps, 2, M - N, M), 3, M - N, M));  // attention to other tokens is outside every window
  const std::vector<float> numbers = maps.to_vector<float>();
  Rng rng(1);
  const Tensor values = random_normal({1, kRandomValues, Y, X}, 0, 1, rng, kCpu),
               tokens = transpose(reshape(values, {kRandomValues, N}), 0, 1);
  std::vector<HeadKernel> out;
  for (int64_t h = 0; h < H; ++h) {
    const OneHead one{.maps = numbers.data() + h * N * N, .B = B, .item = H * N * N, .Y = Y, .X = X};
    HeadKernel head{.layer = layer, .head = h, .center = one.center()};
    fit_kernel(one, head);
    const Tensor own = reshape(slice(maps, 1, h, h + 1), {B, N, N});
    head.error = convolution_error(one, head, values, matmul(own, tokens));
    out.push_back(std::move(head));
  }
  return out;
}

}  // namespace heed::lab
