// Position encodings: added to tokens (sinusoidal, learned), rotating queries and keys (rotary), or added to scores (Gaussian,
// relative). The last are terms of attention, or modules that create them.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "heed/attention/pooled_keys.h"
#include "heed/attention/terms.h"
#include "heed/core/api.h"
#include "heed/nn/linear.h"
#include "heed/nn/position_table.h"

namespace HEED_API heed {

// Which two features share a frequency: (2i, 2i + 1) as in the papers, or (i, i + D / 2) as in Hugging Face's rotate_half.
enum class Pairing { interleaved, halves };

// sin and cos of position / base^(2i / D): Vaswani et al. 2017. N positions, D features.
PositionTable sinusoidal_table(int64_t N, int64_t D, Pairing pairing = Pairing::interleaved, double base = 10000);
// All rows of the table. -> (N, D)
Tensor sinusoidal_positions(int64_t N, int64_t D, Pairing pairing = Pairing::interleaved, double base = 10000);
// On a grid, row by row: the first half of the features encodes the row, the second the column.
struct SinusoidalPositions2d {
  PositionTable row, column;  // of D / 2 features each

  // For a grid of rows and columns.
  SinusoidalPositions2d(int64_t rows, int64_t columns, int64_t D);
  Tensor operator()(Device device) const;  // (rows columns, D)
};
// All positions of a grid. -> (rows columns, D)
inline Tensor sinusoidal_positions_2d(int64_t rows, int64_t columns, int64_t D) { return SinusoidalPositions2d(rows, columns, D)(kCpu); }

// A learned vector for each of N positions, added to the tokens.
struct LearnedPositions {
  Tensor weight;  // (N, D)

  LearnedPositions() = default;
  // With the parameter "weight" of the scope.
  LearnedPositions(const Scope& scope, int64_t N, int64_t D);
  Tensor operator()(int64_t count, int64_t first = 0) const { return slice(weight, 0, first, first + count); }  // (count, D)
};

struct LearnedPositions2d {  // half of the features for rows, half for columns: Dosovitskiy et al. 2021, appendix D.4
  Tensor row;                // (rows, D / 2)
  Tensor column;             // (columns, D / 2)

  LearnedPositions2d() = default;
  // With the parameters "row" and "column" of the scope.
  LearnedPositions2d(const Scope& scope, int64_t rows, int64_t columns, int64_t D);
  Tensor operator()() const;  // (rows columns, D)
};

// Options of rotary positions: which features form a pair, and their frequencies.
struct RotaryOptions {
  Pairing pairing = Pairing::interleaved;
  double base = 10000;
  int64_t rotated = 0;                   // number of leading features that are rotated; 0: all
  std::vector<double> frequencies = {};  // of the pairs, instead of base^(-2i / rotated)
  bool rounded = false;                  // angles are rounded to f32, as in PyTorch implementations
  float scale = 1;                       // of cosines and sines, so that scores are scaled by its square
  // Texts of more than `usual_length` tokens have other frequencies, by their length. Unset: all texts have the same
  std::function<std::vector<double>(int64_t length)> long_frequencies = {};
  int64_t usual_length = 0;
};
std::vector<double> rotary_frequencies(int64_t D, double base, bool rounded);  // base^(-2i / D) of every pair

// Token positions: first, first + 1, ... or arbitrary ones.
struct Positions {
  int64_t first = 0;
  Tensor each = {};  // (B, N) i64

  // From a number, or from a tensor.
  Positions(int64_t first_one) : first(first_one) {}
  Positions(Tensor every_one) : each(std::move(every_one)) {}
};

// Rotates each pair of features by an angle proportional to the position, so that q.k depends on the distance: Su et al. 2021.
struct Rotary {
  PositionTable cosine, sine;  // of D features
  int64_t rotated;
  Pairing pairing;
  struct LongTexts;
  std::shared_ptr<LongTexts> long_texts = {};  // null: all texts have the same frequencies

  // For at most so many positions and heads of width D.
  Rotary(int64_t positions, int64_t D, const RotaryOptions& options = {});
  Tensor operator()(const Tensor& x, const Positions& positions = 0) const;  // x: (..., N, D); (B, H, N, D) with positions.each
};

// --- positions in the scores -----------------------------------------------------------------------------------------
// A term with the parameters that its descriptor names.
Term position_term(const Scope& scope, const TermInfo& info, int64_t heads, const TermPlace& place, const TermValues& given = {});

// Cordonnier et al. 2020: parameters "alpha", initially about 1, and "center", normal with deviation 2. width: of the grid
Gaussian2d gaussian_positions(const Scope& scope, int64_t heads, int64_t width);
// A bias per head and distance up to `reach`: Shaw et al. 2018 in the form of Raffel et al. 2020. "table": (H, 2 reach + 1)
RelativeBias relative_positions(const Scope& scope, int64_t heads, int64_t reach);
// A bias per head and distance on a grid: Liu et al. 2021 (Swin). "table": (H, 2 rows - 1, 2 columns - 1)
RelativeBias2d relative_positions_2d(const Scope& scope, int64_t heads, int64_t rows, int64_t columns);

// Scores q.k + q.r + u.k + v.r with r = W r_delta, r_delta the sinusoids of the distance i - j: Dai et al. 2019
// (Transformer-XL). On a grid the first half of r_delta has those of the distance in rows, the second in columns: Cordonnier et al. 2020.
struct RelativeContent {
  Linear position;       // (H D, R), no bias: W
  Tensor key_bias;       // (H, D): u
  Tensor position_bias;  // (H, D): v
  std::optional<TokenGrid> grid = {};

  RelativeContent() = default;
  // With parameters of the scope. R: number of sinusoids, on a grid a multiple of 4
  RelativeContent(const Scope& scope, int64_t heads, int64_t head_width, int64_t R, std::optional<TokenGrid> on_grid = {});
  // q: (B, H, N, D), M keys; both start at the same position -> queries that replace q, and the term
  std::pair<Tensor, Term> operator()(const Tensor& q, int64_t M, float beta) const;
};

// What adds positions to scores.
using ScorePositions = std::variant<Term, RelativeContent>;

}  // namespace heed
