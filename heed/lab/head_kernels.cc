#include "heed/lab/head_kernels.h"

#include <algorithm>
#include <cmath>

#include "heed/ops/ops.h"

namespace heed::lab {
namespace {

constexpr int64_t kKernelHalf = kKernelSide / 2, kTaps = kKernelSide * kKernelSide;

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

// Mean weights over the queries whose window is on the grid: the least-squares fit to them.
void fit_kernel(const OneHead& maps, HeadKernel& out) {
  const auto [down, along] = out.center;
  const auto count = static_cast<double>(maps.count(down, along, kKernelHalf));
  out.kernel.assign(kTaps, 0);
  maps.queries(down, along, kKernelHalf, [&, down = down, along = along](int64_t b, int64_t y, int64_t x) {
    for (int64_t i = 0; i < kTaps; ++i)
      out.kernel[static_cast<size_t>(i)] +=
          maps.at(b, y, x, y + down + i / kKernelSide - kKernelHalf, x + along + i % kKernelSide - kKernelHalf) / count;
  });
}

// What a convolution of this kernel with replicated edges reads: the key of every tap, for every query. -> (N, 25)
std::vector<int64_t> keys_of_taps(const OneHead& maps, const HeadKernel& head) {
  std::vector<int64_t> out;
  for (int64_t y = 0; y < maps.Y; ++y)
    for (int64_t x = 0; x < maps.X; ++x)
      for (int64_t i = 0; i < kTaps; ++i) {
        const int64_t row = y + head.center[0] + i / kKernelSide - kKernelHalf, column = x + head.center[1] + i % kKernelSide - kKernelHalf;
        out.push_back(std::clamp<int64_t>(row, 0, maps.Y - 1) * maps.X + std::clamp<int64_t>(column, 0, maps.X - 1));
      }
  return out;
}

// Over all queries: the share of the maps' squares that the kernel explains, sum a^2 - sum (a - w)^2, and the mass inside the windows.
void compare_maps(const OneHead& maps, HeadKernel& out) {
  const int64_t N = maps.Y * maps.X;
  const std::vector<int64_t> keys = keys_of_taps(maps, out);
  double squares = 0, distance = 0, mass3 = 0, mass5 = 0;
  std::vector<double> expected(static_cast<size_t>(N));
  for (int64_t q = 0; q < N; ++q) {
    std::fill(expected.begin(), expected.end(), 0);
    for (int64_t i = 0; i < kTaps; ++i)
      expected[static_cast<size_t>(keys[static_cast<size_t>(q * kTaps + i)])] += out.kernel[static_cast<size_t>(i)];
    const int64_t middle = keys[static_cast<size_t>(q * kTaps + kTaps / 2)];
    for (int64_t b = 0; b < maps.B; ++b)
      for (int64_t k = 0; k < N; ++k) {
        const double weight = maps.maps[b * maps.item + q * N + k];
        const int64_t far = std::max(std::abs(k / maps.X - middle / maps.X), std::abs(k % maps.X - middle % maps.X));
        squares += weight * weight;
        distance += std::pow(weight - expected[static_cast<size_t>(k)], 2);
        mass3 += far <= 1 ? weight : 0;
        mass5 += far <= kKernelHalf ? weight : 0;
      }
  }
  const auto count = static_cast<double>(maps.B * N);
  out.mass3 = mass3 / count, out.mass5 = mass5 / count;
  out.explained = squares > 0 ? 1 - distance / squares : 0;
}

// values: (N, E); attended: (B, N, E), the head applied to them.
double convolution_error(const OneHead& maps, const HeadKernel& head, const Tensor& values, const Tensor& attended) {
  const int64_t E = values.size(1), N = maps.Y * maps.X;
  const std::vector<float> v = values.to_vector<float>(), found = attended.to_vector<float>();
  const std::vector<int64_t> keys = keys_of_taps(maps, head);
  double distance = 0, squares = 0;
  std::vector<double> convolved(static_cast<size_t>(E));
  for (int64_t q = 0; q < N; ++q) {
    std::fill(convolved.begin(), convolved.end(), 0);
    for (int64_t i = 0; i < kTaps; ++i)
      for (int64_t e = 0; e < E; ++e)
        convolved[static_cast<size_t>(e)] +=
            head.kernel[static_cast<size_t>(i)] * v[static_cast<size_t>(keys[static_cast<size_t>(q * kTaps + i)] * E + e)];
    for (int64_t b = 0; b < maps.B; ++b)
      for (int64_t e = 0; e < E; ++e) {
        const double here = found[static_cast<size_t>((b * N + q) * E + e)];
        distance += std::pow(here - convolved[static_cast<size_t>(e)], 2);
        squares += here * here;
      }
  }
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
  const Tensor values = random_normal({N, kRandomValues}, 0, 1, rng, kCpu);
  std::vector<HeadKernel> out;
  for (int64_t h = 0; h < H; ++h) {
    const OneHead one{.maps = numbers.data() + h * N * N, .B = B, .item = H * N * N, .Y = Y, .X = X};
    HeadKernel head{.layer = layer, .head = h, .center = one.center()};
    fit_kernel(one, head);
    compare_maps(one, head);
    const Tensor own = reshape(slice(maps, 1, h, h + 1), {B, N, N});
    head.error = convolution_error(one, head, values, matmul(own, values));
    out.push_back(std::move(head));
  }
  return out;
}

}  // namespace heed::lab
