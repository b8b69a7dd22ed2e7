#include "heed/attention/hopper_case.h"

#include <algorithm>

namespace heed {
namespace {

// The copy engine reads rows at addresses and strides that are multiples of 16 bytes; outputs are written 16 bytes at a time.
bool is_readable(const TokenRows& x, int64_t items, int64_t heads, int64_t tokens) {
  const auto fits = [](int64_t size, int64_t stride) { return size == 1 || (stride > 0 && stride % 8 == 0 && stride < int64_t{1} << 38); };
  return reinterpret_cast<uintptr_t>(x.data) % 16 == 0 && fits(items, x.item) && fits(heads, x.head) && fits(tokens, x.token);
}

std::optional<HopperCase> case_of(const ScoreArgs& scores, DType dtype) {
  const AttentionSizes& z = scores.sizes;
  constexpr int64_t kMost = int64_t{1} << 22;  // of queries and keys
  if (dtype != DType::bf16 || scores.hard || scores.dropout > 0 || !(scores.beta > 1e-6f && scores.beta < 1e6f)) return std::nullopt;
  if (z.D != z.E || (z.D != 32 && z.D != 64 && z.D != 128)) return std::nullopt;
  if (z.B < 1 || z.H < 1 || z.N < 1 || z.M < 1 || z.N > kMost || z.M > kMost || z.B * z.H > kMost) return std::nullopt;
  if (z.B * z.H * (std::max(z.N, z.M) / 64 + 1) > int64_t{1} << 30) return std::nullopt;

  HopperCase out;
  bool has_term = false;
  for (int i = 0; i < scores.terms.count; ++i) {
    const TermArgs& term = scores.terms[i];
    if (term.kind == TermKind::key_lengths) {
      if (out.lengths) return std::nullopt;
      out.lengths = term.key_lengths.lengths;
      continue;
    }
    if (has_term) return std::nullopt;
    has_term = true;
    out.index = i;
    switch (term.kind) {
      case TermKind::causal:
        out.term = HopperTerm::causal;
        out.causal_offset = static_cast<int>(std::clamp(term.causal.offset + z.first_query, -2 * kMost, 2 * kMost));
        break;
      case TermKind::gaussian_2d: {  // bf16 has the coordinates of up to 256 rows and columns from the grid's middle exactly
        const int64_t width = term.gaussian_2d.width;
        if (z.D < 64 || z.first_query != 0 || width > 256 || (z.M - 1) / width >= 256) return std::nullopt;
        out.term = HopperTerm::gaussian;
        break;
      }
      case TermKind::relative_bias:
        if (z.D < 64 || z.first_query != 0) return std::nullopt;
        out.term = HopperTerm::table;
        break;
      case TermKind::relative_bias_2d:
        if (z.D < 64 || z.first_query != 0 || term.relative_bias_2d.width != hopper::kTableWidth) return std::nullopt;
        out.term = HopperTerm::table;
        out.table_width = static_cast<int>(term.relative_bias_2d.width);
        break;
      default: return std::nullopt;
    }
  }
  if (out.lengths && out.table_width) return std::nullopt;
  return out;
}

}  // namespace

std::optional<HopperCase> hopper_case(const AttentionForward& args) {
  const AttentionSizes& z = args.scores.sizes;
  const bool readable = is_readable(args.q, z.B, z.H, z.N) && is_readable(args.k, z.B, z.G, z.M) && is_readable(args.v, z.B, z.G, z.M) &&
                        is_readable(args.out, z.B, z.H, z.N);
  return readable && args.log_sum && args.width_e == z.E ? case_of(args.scores, args.dtype) : std::nullopt;
}

std::optional<HopperCase> hopper_case(const AttentionBackward& args) {
  const AttentionSizes& z = args.scores.sizes;
  const bool readable = is_readable(args.q, z.B, z.H, z.N) && is_readable(args.k, z.B, z.G, z.M) && is_readable(args.v, z.B, z.G, z.M) &&
                        is_readable(args.g, z.B, z.H, z.N) && is_readable(args.dq, z.B, z.H, z.N) && is_readable(args.dk, z.B, z.G, z.M) &&
                        is_readable(args.dv, z.B, z.G, z.M);
  if (!readable || !args.log_sum || !args.delta || args.parts != 1 || args.width_d != z.D || args.width_e != z.E) return std::nullopt;
  const auto out = case_of(args.scores, args.dtype);
  if (out && out->term == HopperTerm::table) {
    constexpr int64_t kMostBytes = int64_t{1} << 30;
    if (z.D != 64 || HopperWorkspace(*out, z, true).bytes > kMostBytes) return std::nullopt;
  }
  return out;
}

HopperWorkspace::HopperWorkspace(const HopperCase& which, const AttentionSizes& z, bool backward) {
  const auto take = [&](int64_t count, int64_t size) {
    const int64_t at = bytes;
    bytes += hopper::round_up(count * size, 256);
    return at;
  };
  const bool gaussian = which.term == HopperTerm::gaussian, tabled = which.term == HopperTerm::table;
  if (gaussian) {
    query_features = take(z.H * z.N * hopper::kFeatures, 2);
    key_features = take(z.M * hopper::kFeatures, 2);
  }
  if (tabled) table = take(z.H * 8 * hopper::table_reach(z.N, z.M, which.table_width), 4);
  if (!backward) return;
  const int64_t rows = z.B * z.H * hopper::padded_queries(z.N), tiles = hopper::round_up(z.N, hopper::kQueryTile) / hopper::kQueryTile;
  log_sum = take(rows, 4);
  delta = take(rows, 4);
  if (gaussian) parts = take(z.B * z.H * tiles * 8 * 3, 4);
  if (tabled) {
    const HopperDistances d = hopper_distances(z, which.table_width);
    parts = take(z.B * z.H * tiles * 2 * hopper::diagonal_count(z.M, which.table_width), 4);
    diagonals = take(z.H * d.rows() * d.columns(), 4);
  }
}

HopperDistances hopper_distances(const AttentionSizes& z, int table_width) {
  const auto N = static_cast<int>(z.N), M = static_cast<int>(z.M);
  if (table_width == 0) return {0, 0, 1 - N, M - 1};
  return {-((N - 1) / table_width), (M - 1) / table_width, 1 - table_width, table_width - 1};
}

int64_t hopper_forward_workspace(const AttentionForward& args) {
  const auto which = hopper_case(args);
  return which ? HopperWorkspace(*which, args.scores.sizes, false).bytes : 0;
}
int64_t hopper_backward_workspace(const AttentionBackward& args) {
  const auto which = hopper_case(args);
  return which ? HopperWorkspace(*which, args.scores.sizes, true).bytes : 0;
}

}  // namespace heed
