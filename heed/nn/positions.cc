#include "heed/nn/positions.h"

#include <algorithm>
#include <cmath>
#include <mutex>

#include "heed/core/dry_run.h"

namespace heed {
namespace {

void check_features(int64_t D) {
  constexpr int64_t most = int64_t{1} << 20;
  check(D >= 2 && D % 2 == 0, "positions: ", D, " features do not pair up, expected an even number");
  check(D <= most, "positions: ", D, " features, expected at most ", most);
}

// base^(-2i / D) for every pair of features
std::vector<double> frequencies_of(int64_t D, double base) {
  std::vector<double> out;
  for (int64_t i = 0; i < D / 2; ++i) out.push_back(std::pow(base, -2 * static_cast<double>(i) / static_cast<double>(D)));
  return out;
}

// The two features of pair i, of `pairs` pairs in the row.
std::pair<float&, float&> pair_in(std::span<float> row, size_t i, size_t pairs, Pairing pairing) {
  return pairing == Pairing::interleaved ? std::pair<float&, float&>(row[2 * i], row[2 * i + 1])
                                         : std::pair<float&, float&>(row[i], row[i + pairs]);
}

PositionTable::Fill sinusoids_of(int64_t D, Pairing pairing, double base) {
  return [frequencies = frequencies_of(D, base), pairing](int64_t position, std::span<float> row) {
    for (size_t i = 0; i < frequencies.size(); ++i) {
      const double angle = static_cast<double>(position) * frequencies[i];
      const auto [first, second] = pair_in(row, i, frequencies.size(), pairing);
      first = static_cast<float>(std::sin(angle));
      second = static_cast<float>(std::cos(angle));
    }
  };
}

// The sinusoids of the distances reach, reach - 1, ..., -reach. -> (2 reach + 1, D)
Tensor distance_sinusoids(int64_t reach, int64_t D, Device device) {
  const PositionTable::Fill fill = sinusoids_of(D, Pairing::interleaved, 10000);
  const int64_t rows = 2 * reach + 1;
  if (DryRun::newest()) return Tensor::empty({rows, D}, DType::f32, device);
  std::vector<float> values(static_cast<size_t>(count({rows, D})));
  for (int64_t r = 0; r < rows; ++r) fill(reach - r, std::span(values).subspan(static_cast<size_t>(r * D), static_cast<size_t>(D)));
  return Tensor::from(values, {rows, D}, device);
}

// row: (rows, R), column: (columns, C) -> (rows columns, R + C)
Tensor on_grid(const Tensor& row, const Tensor& column) {
  const int64_t rows = row.size(0), columns = column.size(0), R = row.size(1), C = column.size(1);
  const Tensor by_row = expand(reshape(row, {rows, 1, R}), {rows, columns, R});
  const Tensor by_column = expand(reshape(column, {1, columns, C}), {rows, columns, C});
  return reshape(concat({by_row, by_column}, 2), {rows * columns, R + C});
}

// Rows of cosines, or of sines with the sign they have in the rotation: negative for the first of each pair. Features that are
// not rotated have the angle 0.
PositionTable rotary_table(int64_t positions, int64_t D, int64_t rotated, const RotaryOptions& options, bool sines) {
  return {positions, D, [=]() -> PositionTable::Fill {
            const std::vector<double> frequencies =
                options.frequencies.empty() ? rotary_frequencies(rotated, options.base, options.rounded) : options.frequencies;
            return [=](int64_t position, std::span<float> row) {
              for (size_t i = 0; i < frequencies.size(); ++i) {
                const double exact = static_cast<double>(position) * frequencies[i],
                             angle = options.rounded ? static_cast<float>(exact) : exact;
                const auto [first, second] = pair_in(row, i, frequencies.size(), options.pairing);
                second = static_cast<float>(sines ? std::sin(angle) : std::cos(angle)) * options.scale;
                first = sines ? -second : second;
              }
              for (float& unrotated : row.subspan(2 * frequencies.size())) unrotated = sines ? 0 : 1;
            };
          }};
}

int64_t checked_features(int64_t D, const RotaryOptions& options) {
  const int64_t rotated = options.rotated == 0 ? D : options.rotated;
  check(rotated <= D, "rotary: ", rotated, " rotated features, expected at most the head width of ", D);
  check_features(rotated);
  check(options.frequencies.empty() || std::ssize(options.frequencies) * 2 == rotated, "rotary: ", options.frequencies.size(),
        " frequencies for ", rotated, " features, expected half");
  return rotated;
}

constexpr ParameterOptions kPosition{.decays = false};

}  // namespace

// The frequencies of the last long text; layers that share a Rotary share them.
struct Rotary::LongTexts {
  LongTexts(int64_t N, int64_t width, const RotaryOptions& rotary) : positions(N), D(width), options(rotary) {}

  int64_t positions, D;
  RotaryOptions options;
  std::mutex mutex = {};
  std::shared_ptr<const Rotary> last = {};

  std::shared_ptr<const Rotary> at(int64_t length) {
    std::vector<double> frequencies = options.long_frequencies(length);
    const std::lock_guard lock(mutex);
    if (!last || frequencies != options.frequencies) {
      options.frequencies = std::move(frequencies);
      RotaryOptions fixed = options;
      fixed.long_frequencies = {};
      last = std::make_shared<const Rotary>(positions, D, fixed);
    }
    return last;
  }
};

PositionTable sinusoidal_table(int64_t N, int64_t D, Pairing pairing, double base) {
  check_features(D);
  return {N, D, [=] { return sinusoids_of(D, pairing, base); }};
}

Tensor sinusoidal_positions(int64_t N, int64_t D, Pairing pairing, double base) {
  return sinusoidal_table(N, D, pairing, base).rows(N, kCpu);
}

SinusoidalPositions2d::SinusoidalPositions2d(int64_t rows, int64_t columns, int64_t D)
    : row((check(D % 4 == 0, "positions: ", D, " features on a grid, expected a multiple of 4"), sinusoidal_table(rows, D / 2))),
      column(sinusoidal_table(columns, D / 2)) {}

Tensor SinusoidalPositions2d::operator()(Device device) const {
  return on_grid(row.rows(row.positions(), device), column.rows(column.positions(), device));
}

LearnedPositions::LearnedPositions(const Scope& scope, int64_t N, int64_t D)
    : weight(scope.get("weight", {N, D}, scope.initializer().position, kPosition)) {}

LearnedPositions2d::LearnedPositions2d(const Scope& scope, int64_t rows, int64_t columns, int64_t D) {
  check(D % 2 == 0, "positions: ", D, " features on a grid, expected an even number");
  row = scope.get("row", {rows, D / 2}, scope.initializer().position, kPosition);
  column = scope.get("column", {columns, D / 2}, scope.initializer().position, kPosition);
}

Tensor LearnedPositions2d::operator()() const { return on_grid(row, column); }

std::vector<double> rotary_frequencies(int64_t D, double base, bool rounded) {
  if (!rounded) return frequencies_of(D, base);
  std::vector<double> out;
  for (int64_t i = 0; i < D / 2; ++i)
    out.push_back(1 / std::pow(static_cast<float>(base), 2 * static_cast<float>(i) / static_cast<float>(D)));
  return out;
}

Rotary::Rotary(int64_t positions, int64_t D, const RotaryOptions& options)
    : cosine(rotary_table(positions, D, checked_features(D, options), options, false)),
      sine(rotary_table(positions, D, checked_features(D, options), options, true)),
      rotated(checked_features(D, options)),
      pairing(options.pairing) {
  if (options.long_frequencies) long_texts = std::make_shared<LongTexts>(positions, D, options);
}

// (a, b) becomes (a cos - b sin, b cos + a sin): features times cosines plus their partners times signed sines.
Tensor Rotary::operator()(const Tensor& x, const Positions& positions) const {
  check(x.rank() >= 2 && x.size(-1) == cosine.width(), "rotary: x has shape ", x.shape(), ", expected (..., N, ", cosine.width(), ")");
  const int64_t N = x.size(-2), D = x.size(-1), half = rotated / 2, first = positions.first;
  const bool arbitrary = positions.each.defined();
  check(arbitrary || (first >= 0 && first + N <= cosine.positions()), "rotary: tokens ", first, " to ", first + N, ", the table has ",
        cosine.positions());
  check(!arbitrary || (x.rank() == 4 && positions.each.shape() == Shape{x.size(0), N}), "rotary: x has shape ", x.shape(),
        ", its positions ", positions.each.shape(), ", expected (B, H, N, D) and (B, N)");
  if (long_texts) {
    int64_t length = first + N;
    if (arbitrary) {
      const std::vector<int64_t> all = positions.each.to_vector<int64_t>();
      length = all.empty() ? 0 : *std::max_element(all.begin(), all.end()) + 1;
    }
    if (length > long_texts->options.usual_length) return (*long_texts->at(length))(x, positions);
  }
  const auto rows = [&](const PositionTable& table) {
    return arbitrary ? reshape(table.at(positions.each, x.device()), {x.size(0), 1, N, D})
                     : slice(table.rows(first + N, x.device()), 0, first, first + N);
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

Term position_term(const Scope& scope, const TermInfo& info, int64_t heads, const TermPlace& place, const TermValues& given) {
  TermInput input{.values = given, .tensors = {}, .place = place};
  complete_settings(info, input.values, place);
  for (const TermParameter& each : info.parameters) {
    const Shape shape = each.shape(heads, input.values);
    Rng none(0);
    input.tensors.push_back(each.learned
                                ? scope.get(each.name, shape, each.initial ? each.initial : scope.initializer().position, kPosition)
                                : each.initial(shape, none).to(scope.device()));
  }
  return make_term(info, input);
}

Gaussian2d gaussian_positions(const Scope& scope, int64_t heads, int64_t width) {
  return std::get<Gaussian2d>(position_term(scope, *find_term("gaussian"), heads, {.columns = width}));
}

RelativeBias relative_positions(const Scope& scope, int64_t heads, int64_t reach) {
  return std::get<RelativeBias>(position_term(scope, *find_term("relative"), heads, {}, {{"reach", static_cast<double>(reach)}}));
}

RelativeBias2d relative_positions_2d(const Scope& scope, int64_t heads, int64_t rows, int64_t columns) {
  return std::get<RelativeBias2d>(position_term(scope, *find_term("relative_2d"), heads, {.rows = rows, .columns = columns}));
}

RelativeContent::RelativeContent(const Scope& scope, int64_t heads, int64_t head_width, int64_t R, std::optional<TokenGrid> on_grid)
    : position(
          (check(!on_grid || R % 4 == 0, "relative_content: ", R, " sinusoids on a grid, expected a multiple of 4"), scope / "position"), R,
          heads * head_width, {.bias = false}),
      key_bias(scope.get("key_bias", {heads, head_width}, initializer::zeros(), kPosition)),
      position_bias(scope.get("position_bias", {heads, head_width}, initializer::zeros(), kPosition)),
      grid(on_grid) {}

std::pair<Tensor, Term> RelativeContent::operator()(const Tensor& q, int64_t M, float beta) const {
  const int64_t H = key_bias.size(0), N = q.size(2), D = key_bias.size(1), R = position.inputs();
  check(q.size(1) == H && q.size(3) == D, "relative_content: q ", q.shape(), ", expected ", H, " heads of width ", D);
  const Tensor keyed = q + reshape(key_bias, {1, H, 1, D}), queries = (q + reshape(position_bias, {1, H, 1, D})) * beta;
  // Row r of distance_sinusoids() is for j - i = r - reach, so for the distance reach - r.
  const auto projected = [&](const Tensor& sinusoids) {
    return permute(reshape(position(sinusoids), {sinusoids.size(0), H, D}), {1, 0, 2});
  };
  if (!grid) return {keyed, RelativeKeys{queries, projected(distance_sinusoids(std::max(N, M) - 1, R, q.device()))}};
  const auto [rows, columns] = *grid;
  check(N == rows * columns && M == N, "relative_content: ", N, " queries and ", M, " keys on a grid of ", rows, " x ", columns);
  const Tensor by_row = distance_sinusoids(rows - 1, R / 2, q.device()), by_column = distance_sinusoids(columns - 1, R / 2, q.device());
  const auto none = [&](const Tensor& other) { return Tensor::zeros(other.shape(), q.device()); };
  const Tensor table = projected(concat({concat({by_row, none(by_row)}, 1), concat({none(by_column), by_column}, 1)}, 0));
  return {keyed, RelativeKeys2d{queries, table, rows - 1, columns}};
}

}  // namespace heed
