#include "heed/nn/positions.h"

#include <bit>
#include <cmath>

#include "heed/core/parallel.h"

namespace heed {
namespace {

// base^(-2i / D) for every pair of features
std::vector<double> frequencies_of(int64_t D, double base) {
  check(D >= 2 && D % 2 == 0, "positions: ", D, " features do not pair up, expected an even number");
  std::vector<double> out;
  for (int64_t i = 0; i < D / 2; ++i) out.push_back(std::pow(base, -2 * static_cast<double>(i) / static_cast<double>(D)));
  return out;
}

// Before a table is computed: a config can ask for any size.
void check_table(int64_t N, int64_t D) {
  constexpr int64_t most = int64_t{1} << 27;  // a million tokens of 128 features
  check(N <= most / std::max<int64_t>(D, 1), "positions: a table of ", N, " x ", D, " numbers, expected at most ", most, " of them");
}

// Angles of places. -> places x frequencies, row-major
std::vector<double> angles(const std::vector<double>& places, const std::vector<double>& frequencies) {
  std::vector<double> out;
  out.reserve(places.size() * frequencies.size());
  for (double place : places)
    for (double frequency : frequencies) out.push_back(place * frequency);
  return out;
}

std::vector<double> places_from(int64_t first, int64_t step, int64_t N) {
  std::vector<double> places;
  for (int64_t i = 0; i < N; ++i) places.push_back(static_cast<double>(first + i * step));
  return places;
}

// One number of each pair from a, the other from b. a, b: N x D / 2 -> (N, D)
Tensor paired(const std::vector<double>& a, const std::vector<double>& b, int64_t N, int64_t D, Pairing pairing) {
  std::vector<float> values(a.size() * 2);
  const auto width = static_cast<size_t>(D), pairs = width / 2;
  for (size_t n = 0; n < static_cast<size_t>(N); ++n)
    for (size_t i = 0; i < pairs; ++i) {
      const bool near = pairing == Pairing::neighbours;
      values[n * width + (near ? 2 * i : i)] = static_cast<float>(a[n * pairs + i]);
      values[n * width + (near ? 2 * i + 1 : i + pairs)] = static_cast<float>(b[n * pairs + i]);
    }
  return Tensor::from(values, {N, D});
}

Tensor sinusoids(const std::vector<double>& places, int64_t D, Pairing pairing, double base) {
  std::vector<double> sines = angles(places, frequencies_of(D, base)), cosines = sines;
  for (double& x : sines) x = std::sin(x);
  for (double& x : cosines) x = std::cos(x);
  return paired(sines, cosines, std::ssize(places), D, pairing);
}

// row: (rows, R), column: (columns, C) -> (rows columns, R + C)
Tensor on_grid(const Tensor& row, const Tensor& column) {
  const int64_t rows = row.size(0), columns = column.size(0), R = row.size(1), C = column.size(1);
  const Tensor by_row = expand(reshape(row, {rows, 1, R}), {rows, columns, R});
  const Tensor by_column = expand(reshape(column, {1, columns, C}), {rows, columns, C});
  return reshape(concat({by_row, by_column}, 2), {rows * columns, R + C});
}

constexpr ParameterOptions kPosition{.decays = false};

}  // namespace

Tensor sinusoidal_positions(int64_t N, int64_t D, Pairing pairing, double base) {
  check_table(N, D);
  return sinusoids(places_from(0, 1, N), D, pairing, base);
}

Tensor sinusoidal_positions_2d(int64_t rows, int64_t columns, int64_t D) {
  check(D % 4 == 0, "positions: ", D, " features on a grid, expected a multiple of 4");
  return on_grid(sinusoidal_positions(rows, D / 2), sinusoidal_positions(columns, D / 2));
}

LearnedPositions::LearnedPositions(const Scope& scope, int64_t N, int64_t D)
    : weight(scope.get("weight", {N, D}, scope.initial().position, kPosition)) {}

LearnedPositions2d::LearnedPositions2d(const Scope& scope, int64_t rows, int64_t columns, int64_t D) {
  check(D % 2 == 0, "positions: ", D, " features on a grid, expected an even number");
  row = scope.get("row", {rows, D / 2}, scope.initial().position, kPosition);
  column = scope.get("column", {columns, D / 2}, scope.initial().position, kPosition);
}

Tensor LearnedPositions2d::operator()() const { return on_grid(row, column); }

Rotary::Rotary(int64_t positions, int64_t D, const RotaryOptions& options)
    : rotated(options.rotated == 0 ? D : options.rotated), pairing(options.pairing) {
  check(rotated <= D, "rotary: ", rotated, " features turn, the heads have ", D);
  check_table(positions, D);
  const std::vector<double> frequencies = options.frequencies.empty() ? frequencies_of(rotated, options.base) : options.frequencies;
  check(std::ssize(frequencies) * 2 == rotated, "rotary: ", frequencies.size(), " frequencies for ", rotated, " features, expected half");
  const auto width = static_cast<size_t>(rotated);
  std::vector<float> cosines(static_cast<size_t>(positions) * width), sines(cosines.size());
  parallel_for(positions, 256, [&](int64_t begin, int64_t end) {
    for (int64_t n = begin; n < end; ++n)
      for (size_t i = 0; i < width / 2; ++i) {
        const double exact = static_cast<double>(n) * frequencies[i], angle = options.rounded ? static_cast<float>(exact) : exact;
        const bool near = pairing == Pairing::neighbours;
        const size_t row = static_cast<size_t>(n) * width, a = row + (near ? 2 * i : i), b = row + (near ? 2 * i + 1 : i + width / 2);
        cosines[a] = cosines[b] = static_cast<float>(std::cos(angle));
        sines[b] = static_cast<float>(std::sin(angle));
        sines[a] = -sines[b];
      }
  });
  cosine = Tensor::from(cosines, {positions, rotated});
  sine = Tensor::from(sines, {positions, rotated});
  if (rotated == D) return;
  cosine = concat({cosine, Tensor::ones({positions, D - rotated})}, 1);  // what does not turn turns by nothing
  sine = concat({sine, Tensor::zeros({positions, D - rotated})}, 1);
}

// (a, b) becomes (a cos - b sin, b cos + a sin): the features times cosines and their partners times signed sines.
Tensor Rotary::operator()(const Tensor& x, const Positions& positions) const {
  check(x.rank() >= 2 && x.size(-1) == cosine.size(1), "rotary: x has shape ", x.shape(), ", expected (..., N, ", cosine.size(1), ")");
  const int64_t N = x.size(-2), D = x.size(-1), half = rotated / 2, first = positions.first;
  const bool any = positions.each.defined();
  check(any || (first >= 0 && first + N <= cosine.size(0)), "rotary: tokens ", first, " to ", first + N, ", the table has ",
        cosine.size(0));
  check(!any || (x.rank() == 4 && positions.each.shape() == Shape{x.size(0), N}), "rotary: x has shape ", x.shape(), ", its positions ",
        positions.each.shape(), ", expected (B, H, N, D) and (B, N)");
  const auto rows = [&](const Tensor& table) {
    return any ? reshape(embedding(table, positions.each), {x.size(0), 1, N, D}) : slice(table, 0, first, first + N);
  };
  Tensor partners;
  if (pairing == Pairing::halves) {
    const Tensors parts = split(x, std::vector<int64_t>{half, half, D - rotated}, -1);
    partners = concat({parts[1], parts[0], parts[2]}, -1);
  } else {
    Shape pairs = x.shape();
    pairs[x.rank() - 1] = D / 2;
    pairs.push_back(2);
    const Tensors parts = split(reshape(x, pairs), std::vector<int64_t>{1, 1}, -1);
    partners = reshape(concat({parts[1], parts[0]}, -1), x.shape());
  }
  return x * rows(cosine) + partners * rows(sine);
}

Gaussian2d gaussian_positions(const Scope& scope, int64_t heads, int64_t width) {
  return {.alpha = scope.get("alpha", {heads}, initial::normal(0.01f, 1), kPosition),
          .center = scope.get("center", {heads, 2}, initial::normal(2), kPosition),
          .width = width};
}

RelativeBias relative_positions(const Scope& scope, int64_t heads, int64_t reach) {
  return {scope.get("table", {heads, 2 * reach + 1}, scope.initial().position, kPosition)};
}

// 2^(-8 h / H) for h = 1 ... H when H is a power of two; otherwise those of the power below, then every other one of the
// power above.
Tensor alibi_slopes(int64_t heads) {
  check(heads >= 1, "alibi_slopes: ", heads, " heads, expected 1 or more");
  const auto below = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(heads)));
  std::vector<float> slopes;
  for (int64_t h = 0; h < heads; ++h) {
    const double step = h < below ? static_cast<double>(h + 1) : static_cast<double>(h - below) + 0.5;
    slopes.push_back(static_cast<float>(std::exp2(-8 * step / static_cast<double>(below))));
  }
  return Tensor::from(slopes, {heads});
}

RelativeBias2d relative_positions_2d(const Scope& scope, int64_t heads, int64_t rows, int64_t columns) {
  return {.table = scope.get("table", {heads, 2 * rows - 1, 2 * columns - 1}, scope.initial().position, kPosition), .width = columns};
}

RelativeContent::RelativeContent(const Scope& scope, int64_t heads, int64_t head_width, int64_t R)
    : position(scope / "position", R, heads * head_width, {.bias = false}),
      key_bias(scope.get("key_bias", {heads, head_width}, initial::zeros(), kPosition)),
      position_bias(scope.get("position_bias", {heads, head_width}, initial::zeros(), kPosition)) {}

std::pair<Tensor, RelativeKeys> RelativeContent::operator()(const Tensor& q, int64_t M, float beta) const {
  const int64_t H = key_bias.size(0), N = q.size(2), D = key_bias.size(1), reach = std::max(N, M) - 1;
  check(q.size(1) == H && q.size(3) == D, "relative_content: q ", q.shape(), ", expected ", H, " heads of width ", D);
  // Row r of the table is for j - i = r - reach, so for the distance reach - r.
  const Tensor places = sinusoids(places_from(reach, -1, 2 * reach + 1), position.inputs(), Pairing::neighbours, 10000);
  const Tensor table = permute(reshape(position(places), {2 * reach + 1, H, D}), {1, 0, 2});
  return {q + reshape(key_bias, {1, H, 1, D}), {.queries = (q + reshape(position_bias, {1, H, 1, D})) * beta, .table = table}};
}

}  // namespace heed
