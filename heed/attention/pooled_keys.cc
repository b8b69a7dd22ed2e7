// Squares of the grid become axes of their own by reshaping; then they are averaged, or multiplied with the weight as one row.
#include "heed/attention/pooled_keys.h"

#include "heed/ops/ops.h"
#include "heed/ops/storage.h"

namespace heed {
namespace {

// (B, G, M, D) -> (B, G, rows / r, r, columns / r, r, D), the grid filled up with zeros to whole squares.
Tensor squares(const Tensor& x, const TokenGrid& grid, int64_t r) {
  check(x.rank() == 4, "pooled_keys: x has shape ", x.shape(), ", expected (B, G, M, D)");
  check(r >= 1, "pooled_keys: squares of ", r, " x ", r, " tokens, expected 1 or more");
  check(grid[0] >= 0 && grid[1] >= 0 && checked_multiply(grid[0], grid[1]) == x.size(2), "pooled_keys: ", x.size(2),
        " tokens on a grid of ", grid[0], " x ", grid[1]);
  const int64_t B = x.size(0), G = x.size(1), D = x.size(3), down = (grid[0] + r - 1) / r, along = (grid[1] + r - 1) / r;
  Tensor cells = reshape(x, {B, G, grid[0], grid[1], D});
  if (down * r != grid[0] || along * r != grid[1]) {
    const std::array<int64_t, 2> rows{0, down * r - grid[0]}, columns{0, along * r - grid[1]}, none{0, 0};
    cells = pad(cells, std::array{none, none, rows, columns, none});
  }
  return reshape(cells, {B, G, down, r, along, r, D});
}

// r^2 over the tokens that a square really has: (down, along, 1)
Tensor missing_factor(const TokenGrid& grid, int64_t r, int64_t down, int64_t along, Device device) {
  std::vector<float> factors;
  for (int64_t y = 0; y < down; ++y)
    for (int64_t x = 0; x < along; ++x) {
      const int64_t tokens = std::min(r, grid[0] - y * r) * std::min(r, grid[1] - x * r);
      factors.push_back(static_cast<float>(r * r) / static_cast<float>(tokens));
    }
  return Tensor::from(factors, {down, along, 1}, kCpu).to(device);
}

}  // namespace

Tensor pooled_keys(const Tensor& x, const TokenGrid& grid, int64_t r) {
  if (is_half(x)) return in_f32(x, [&](const Tensor& wide) { return pooled_keys(wide, grid, r); });
  const Tensor parts = squares(dense_f32("pooled_keys", x), grid, r);
  const Shape cut = parts.shape();
  const int64_t B = cut[0], G = cut[1], down = cut[2], along = cut[4], D = cut[6];
  const bool ragged = down * r != grid[0] || along * r != grid[1];
  const Tensor factor = ragged ? missing_factor(grid, r, down, along, x.device()) : Tensor();
  Tensor pooled = mean(parts, {3, 5});  // (B, G, down, along, D)
  if (ragged) pooled = pooled * factor;
  return record(op::pooled_keys, reshape(pooled, {B, G, down * along, D}), {x}, [=](const Tensor& g) {
    Tensor share = scale(reshape(g, {B, G, down, along, D}), 1 / static_cast<float>(r * r));
    if (ragged) share = share * factor;
    const Tensor spread = contiguous(expand(reshape(share, {B, G, down, 1, along, 1, D}), cut));
    const Tensor cells = slice(slice(reshape(spread, {B, G, down * r, along * r, D}), 2, 0, grid[0]), 3, 0, grid[1]);
    return Grads{reshape(cells, {B, G, grid[0] * grid[1], D})};
  });
}

Tensor pooled_keys(const Tensor& x, const TokenGrid& grid, const Tensor& weight, const Tensor& bias) {
  check(weight.rank() == 4 && weight.size(2) == weight.size(3), "pooled_keys: the weight has shape ", weight.shape(),
        ", expected (O, D, r, r)");
  const int64_t r = weight.size(2), O = weight.size(0), inputs = weight.size(1) * r * r;
  const Tensor parts = squares(x, grid, r);
  check(weight.size(1) == x.size(3), "pooled_keys: tokens have ", x.size(3), " numbers, the weight ", weight.size(1));
  // A convolution whose squares do not overlap is one product: a row per square, (r, r, D) in the order that tokens have.
  const Tensor rows = reshape(permute(parts, {0, 1, 2, 4, 3, 5, 6}), {-1, inputs});
  const Tensor out = linear(rows, reshape(permute(weight, {0, 2, 3, 1}), {O, inputs}), bias);
  return reshape(out, {x.size(0), x.size(1), parts.size(2) * parts.size(4), O});
}

}  // namespace heed
