// Every score term in double.
#include <array>
#include <cmath>

#include "tests/attention/reference.h"

namespace heed::test {
namespace {

using I = int64_t;
using Reads = std::vector<Read>;

double masked(bool keep, double s) { return keep ? s : -INFINITY; }
Tensor learned(Tensor x) { return x.require_grad(); }

// A grid of about four rows.
I grid_width(const Sizes& z) { return std::max<I>(1, std::max(z.N, z.M) / 4); }

// Relative positions: 2 R + 1 distances.
struct Relative {
  I reach, distances;
  explicit Relative(const Sizes& z) : reach(std::max<I>(1, z.M / 3)), distances(2 * reach + 1) {}
  I operator()(I i, I j) const { return std::clamp<I>(j - i, -reach, reach) + reach; }
};

std::vector<float> some(I count, I period) {
  std::vector<float> kept;
  for (I i = 0; i < count; ++i) kept.push_back(i * i % period < 2 * period / 3 ? 1.0f : 0.0f);
  return kept;
}
Tensor boolean(const std::vector<float>& values, const Shape& shape) {
  return cast(Tensor::from(values, shape, test_device()), DType::boolean);
}

// Offset of query and key on a grid from the center of a head.
std::array<double, 2> offset(I grid, const Doubles& center, I h, I i, I j) {
  return {static_cast<double>(i / grid - j / grid) - center[2 * h], static_cast<double>(i % grid - j % grid) - center[2 * h + 1]};
}

}  // namespace

template <>
std::vector<Subject> subjects<Causal>(const Sizes& z) {
  return {{"causal", Causal{z.M - z.N}, [=](const Many&, double s, I, I, I i, I j) { return masked(j <= i + z.M - z.N, s); }}};
}

template <>
std::vector<Subject> subjects<Window>(const Sizes& z) {
  return {{"window", Window{z.M / 4, 2, 1},
           [=](const Many&, double s, I, I, I i, I j) { return masked((j >= i - z.M / 4 && j <= i + 2) || i < 1 || j < 1, s); }}};
}

template <>
std::vector<Subject> subjects<Chunks>(const Sizes&) {
  return {{"chunks", Chunks{7, 3}, [](const Many&, double s, I, I, I i, I j) { return masked((i + 3) / 7 == (j + 3) / 7, s); }}};
}

template <>
std::vector<Subject> subjects<Dilated>(const Sizes&) {
  return {{"dilated", Dilated{3}, [](const Many&, double s, I, I, I i, I j) { return masked((j - i) % 3 == 0, s); }}};
}

template <>
std::vector<Subject> subjects<KeyLengths>(const Sizes& z) {
  std::vector<I> lengths;
  for (I b = 0; b < z.B; ++b) lengths.push_back(b % 2 == 0 ? (z.M + 1) / 2 : z.M);
  return {{"lengths", KeyLengths{Tensor::from(lengths, {z.B}, test_device())},
           [=](const Many&, double s, I b, I, I, I j) { return masked(j < lengths[static_cast<size_t>(b)], s); }}};
}

template <>
std::vector<Subject> subjects<Mask>(const Sizes& z) {
  const std::vector<float> mask = some(z.B * z.N * z.M, 11);
  return {{"mask", Mask{boolean(mask, {z.B, 1, z.N, z.M})},
           [=](const Many&, double s, I b, I, I i, I j) { return masked(mask[static_cast<size_t>((b * z.N + i) * z.M + j)] > 0, s); }}};
}

template <>
std::vector<Subject> subjects<BlockSparse>(const Sizes& z) {
  const I rows = (z.N + 4) / 5, columns = (z.M + 4) / 5;
  const std::vector<float> pattern = some(z.H * rows * columns, 7);
  return {{"block sparse", BlockSparse{boolean(pattern, {z.H, rows, columns}), 5}, [=](const Many&, double s, I, I h, I i, I j) {
             return masked(pattern[static_cast<size_t>((h * rows + i / 5) * columns + j / 5)] > 0, s);
           }}};
}

template <>
std::vector<Subject> subjects<GridWindow>(const Sizes& z) {
  const I grid = grid_width(z);
  return {{"grid window", GridWindow{1, 2, grid}, [=](const Many&, double s, I, I, I i, I j) {
             return masked(std::abs(i / grid - j / grid) <= 1 && std::abs(i % grid - j % grid) <= 2, s);
           }}};
}

template <>
std::vector<Subject> subjects<Bias>(const Sizes& z) {
  const auto each = [=](I h, I i, I j) { return (h * z.N + i) * z.M + j; };
  return {{"bias", Bias{learned(normal_input({1, z.H, z.N, z.M}, 7))},
           [=](const Many& p, double s, I, I h, I i, I j) { return s + p[0][each(h, i, j)]; },
           [=](I, I h, I i, I j) {
             return Reads{{0, each(h, i, j)}};
           }},
          {"column bias", Bias{learned(normal_input({z.B, 1, 1, z.M}, 8))},
           [=](const Many& p, double s, I b, I, I, I j) { return s + p[0][b * z.M + j]; },
           [=](I b, I, I, I j) {
             return Reads{{0, b * z.M + j}};
           }}};
}

template <>
std::vector<Subject> subjects<SoftCap>(const Sizes&) {
  return {{"soft cap", SoftCap{1.5f}, [](const Many&, double s, I, I, I, I) { return s == -INFINITY ? s : 1.5 * std::tanh(s / 1.5); }}};
}

template <>
std::vector<Subject> subjects<RelativeBias>(const Sizes& z) {
  const Relative distance(z);
  const auto at = [=](I h, I i, I j) { return h * distance.distances + distance(i, j); };
  return {{"relative", RelativeBias{learned(normal_input({z.H, distance.distances}, 9))},
           [=](const Many& p, double s, I, I h, I i, I j) { return s + p[0][at(h, i, j)]; },
           [=](I, I h, I i, I j) {
             return Reads{{0, at(h, i, j)}};
           }}};
}

template <>
std::vector<Subject> subjects<RelativeBias2d>(const Sizes& z) {
  const I grid = grid_width(z), rows = 2, columns = std::max<I>(1, grid - 2);
  const auto at = [=](I h, I i, I j) {
    const I row = std::clamp<I>(j / grid - i / grid, -rows, rows) + rows;
    return (h * (2 * rows + 1) + row) * (2 * columns + 1) + std::clamp<I>(j % grid - i % grid, -columns, columns) + columns;
  };
  return {{"relative 2d", RelativeBias2d{learned(normal_input({z.H, 2 * rows + 1, 2 * columns + 1}, 13)), grid},
           [=](const Many& p, double s, I, I h, I i, I j) { return s + p[0][at(h, i, j)]; },
           [=](I, I h, I i, I j) {
             return Reads{{0, at(h, i, j)}};
           }}};
}

template <>
std::vector<Subject> subjects<RelativeKeys>(const Sizes& z) {
  const Relative distance(z);
  const I W = 3;
  const auto query = [=](I b, I h, I i) { return ((b * z.H + h) * z.N + i) * W; };
  const auto key = [=](I h, I i, I j) { return (h * distance.distances + distance(i, j)) * W; };
  return {{"relative keys",
           RelativeKeys{learned(normal_input({z.B, z.H, z.N, W}, 14)), learned(normal_input({z.H, distance.distances, W}, 15))},
           [=](const Many& p, double s, I b, I h, I i, I j) {
             for (I d = 0; d < W; ++d) s += p[0][query(b, h, i) + d] * p[1][key(h, i, j) + d];
             return s;
           },
           [=](I b, I h, I i, I j) {
             Reads all;
             for (I d = 0; d < W; ++d) {
               all.push_back({0, query(b, h, i) + d});
               all.push_back({1, key(h, i, j) + d});
             }
             return all;
           }}};
}

template <>
std::vector<Subject> subjects<RelativeKeys2d>(const Sizes& z) {
  const I grid = grid_width(z), rows = 2, columns = std::max<I>(1, grid - 2), entries = 2 * rows + 1 + 2 * columns + 1, W = 3;
  const auto query = [=](I b, I h, I i) { return ((b * z.H + h) * z.N + i) * W; };
  const auto by_row = [=](I h, I i, I j) { return (h * entries + std::clamp<I>(j / grid - i / grid, -rows, rows) + rows) * W; };
  const auto by_column = [=](I h, I i, I j) {
    return (h * entries + 2 * rows + 1 + std::clamp<I>(j % grid - i % grid, -columns, columns) + columns) * W;
  };
  return {
      {"relative keys 2d",
       RelativeKeys2d{learned(normal_input({z.B, z.H, z.N, W}, 19)), learned(scale(normal_input({z.H, entries, W}, 20), 0.7f)), rows, grid},
       [=](const Many& p, double s, I b, I h, I i, I j) {
         for (I d = 0; d < W; ++d) s += p[0][query(b, h, i) + d] * (p[1][by_row(h, i, j) + d] + p[1][by_column(h, i, j) + d]);
         return s;
       },
       [=](I b, I h, I i, I j) {
         Reads all;
         for (I d = 0; d < W; ++d) {
           all.push_back({0, query(b, h, i) + d});
           all.push_back({1, by_row(h, i, j) + d});
           all.push_back({1, by_column(h, i, j) + d});
         }
         return all;
       }}};
}

template <>
std::vector<Subject> subjects<BucketedBias>(const Sizes& z) {
  const auto bucket = [](I distance) {  // four per side: 0, 1, 2 to 5, and larger ones, because 2 (16 / 2)^(1/2) is 5.7
    const I size = std::abs(distance), start = distance > 0 ? 4 : 0;
    return start + (size < 2 ? size : size < 6 ? 2 : 3);
  };
  return {{"bucketed", BucketedBias{learned(normal_input({z.H, 8}, 16)), true, 16},
           [=](const Many& p, double s, I, I h, I i, I j) { return s + p[0][h * 8 + bucket(j - i)]; },
           [=](I, I h, I i, I j) {
             return Reads{{0, h * 8 + bucket(j - i)}};
           }}};
}

template <>
std::vector<Subject> subjects<Alibi>(const Sizes& z) {
  return {{"alibi", Alibi{learned(scale(positive_input({z.H}, 5), 0.1f))},
           [](const Many& p, double s, I, I h, I i, I j) { return s - p[0][h] * static_cast<double>(std::abs(i - j)); },
           [](I, I h, I, I) {
             return Reads{{0, h}};
           }}};
}

template <>
std::vector<Subject> subjects<Kerple>(const Sizes& z) {
  return {{"kerple", Kerple{learned(positive_input({z.H}, 17)), learned(positive_input({z.H}, 18))},
           [](const Many& p, double s, I, I h, I i, I j) {
             return s - std::max(p[0][h], 0.01) * std::log(1 + std::max(p[1][h], 0.01) * static_cast<double>(std::abs(i - j)));
           },
           [](I, I h, I, I) {
             return Reads{{0, h}, {1, h}};
           }}};
}

template <>
std::vector<Subject> subjects<Gaussian2d>(const Sizes& z) {
  const I grid = grid_width(z);
  const Tensor alpha = scale(positive_input({z.H}, 6), 0.5f / static_cast<float>(grid * grid));  // scores of about 1
  return {{"gaussian", Gaussian2d{learned(alpha), learned(normal_input({z.H, 2}, 10)), grid},
           [=](const Many& p, double s, I, I h, I i, I j) {
             const auto [rows, columns] = offset(grid, p[1], h, i, j);
             return s - p[0][h] * (rows * rows + columns * columns);
           },
           [](I, I h, I, I) {
             return Reads{{0, h}, {1, 2 * h}, {1, 2 * h + 1}};
           }}};
}

template <>
std::vector<Subject> subjects<Gaussian2dFull>(const Sizes& z) {
  const I grid = grid_width(z);
  const Tensor spread = scale(normal_input({z.H, 2, 2}, 12), 0.75f / static_cast<float>(grid));  // scores of about 1
  return {{"full gaussian", Gaussian2dFull{learned(spread), learned(normal_input({z.H, 2}, 11)), grid},
           [=](const Many& p, double s, I, I h, I i, I j) {
             const auto [rows, columns] = offset(grid, p[1], h, i, j);
             const double u = p[0][4 * h] * rows + p[0][4 * h + 1] * columns, v = p[0][4 * h + 2] * rows + p[0][4 * h + 3] * columns;
             return s - u * u - v * v;
           },
           [](I, I h, I, I) {
             return Reads{{0, 4 * h}, {0, 4 * h + 1}, {0, 4 * h + 2}, {0, 4 * h + 3}, {1, 2 * h}, {1, 2 * h + 1}};
           }}};
}

}  // namespace heed::test
