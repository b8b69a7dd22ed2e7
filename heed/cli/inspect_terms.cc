// heed inspect --terms: how much content and positions contribute to the scores of every head, and the scores of one query.
#include <algorithm>
#include <cmath>
#include <iomanip>
#include <numeric>
#include <sstream>

#include "heed/cli/inspection.h"
#include "heed/cli/module_tree.h"

namespace heed::cli {
namespace {

using Rows = std::vector<std::vector<std::string>>;

std::string with_digits(double number, int digits) {
  const double unit = std::pow(10.0, digits), rounded = std::round(number * unit) / unit;
  std::ostringstream out;
  out << std::fixed << std::setprecision(digits) << (rounded == 0 ? 0.0 : rounded);  // no "-0.0"
  return out.str();
}

void add_shares(std::ostream& out, const Inspection& inspection, const AttentionMaps& maps) {
  Rows rows{{"layer", "head"}};
  rows[0].insert(rows[0].end(), kScoreTermNames.begin(), kScoreTermNames.end());
  for (const int64_t layer : maps.layers)
    for (const int64_t head : maps.heads) {
      rows.push_back({std::to_string(layer), std::to_string(head)});
      for (const double share : terms_of(inspection, maps, layer).shares(head)) rows.back().push_back(with_digits(100 * share, 1) + "%");
    }
  out << "shares of the terms in the variance of the scores over the keys, of all queries:\n";
  print_rows(out, rows, {false, false, false, false, false, false});
}

// The keys that the query sees: all in their order if they are few, otherwise those with the largest weights.
std::vector<size_t> keys_to_show(std::span<const float> weights, std::span<const uint8_t> seen) {
  constexpr size_t few = 32, most = 20;
  std::vector<size_t> out;
  for (size_t j = 0; j < seen.size(); ++j)
    if (seen[j]) out.push_back(j);
  if (out.size() <= few) return out;
  std::stable_sort(out.begin(), out.end(), [&](size_t a, size_t b) { return weights[a] > weights[b]; });
  out.resize(most);
  return out;
}

// Every term over the patches, less its mean, with one scale for all four.
void add_grids(std::ostream& out, const Inspection& inspection, const std::array<std::vector<float>, 4>& terms) {
  std::array<std::vector<float>, 4> patches;
  float least = 0, most = 0;
  for (size_t t = 0; t < terms.size(); ++t) {
    patches[t].assign(terms[t].begin() + inspection.first, terms[t].end());
    const float mean = std::accumulate(patches[t].begin(), patches[t].end(), 0.0f) / static_cast<float>(patches[t].size());
    for (float& each : patches[t]) each -= mean, least = std::min(least, each), most = std::max(most, each);
  }
  out << "\nthe terms over the patches, each less its mean: blank for " << with_digits(least, 2) << ", @ for " << with_digits(most, 2)
      << '\n';
  for (size_t t = 0; t < terms.size(); ++t) {
    out << "\n" << kScoreTermNames[t] << ":\n";
    add_grid(out, inspection, patches[t], least, most);
  }
}

void add_scores(std::ostream& out, const Inspection& inspection, const AttentionMaps& maps, int64_t query) {
  const ScoreTerms& split = terms_of(inspection, maps, maps.layers[0]);
  const std::array<std::vector<float>, 4> terms = split.of(maps.heads[0], {query});
  const auto M = static_cast<size_t>(maps.M), first = static_cast<size_t>(query) * M;
  const std::vector<uint8_t> sees = split.seen(maps.heads[0]);
  const std::span<const float> weights = maps.map(0, 0).subspan(first, M);
  const std::vector<size_t> keys = keys_to_show(weights, std::span(sees).subspan(first, M));
  Rows rows{{"key"}};
  rows[0].insert(rows[0].end(), kScoreTermNames.begin(), kScoreTermNames.end());
  rows[0].insert(rows[0].end(), {"score", "weight"});
  for (const size_t j : keys) {
    rows.push_back({token_text(maps.columns[j])});
    double score = 0;
    for (const std::vector<float>& term : terms) {
      rows.back().push_back(with_digits(term[j], 2));
      score += term[j];
    }
    rows.back().insert(rows.back().end(), {with_digits(score, 2), with_digits(weights[j], 3)});
  }
  out << (maps.kind == "attention" ? "" : maps.kind + ", ") << "layer " << maps.layers[0] << ", head " << maps.heads[0] << ", query "
      << query << " (" << token_text(maps.rows[static_cast<size_t>(query)]) << "):\n";
  print_rows(out, rows, {true, false, false, false, false, false, false});
  const int64_t others =
      std::count(sees.begin() + static_cast<int64_t>(first), sees.begin() + static_cast<int64_t>(first + M), 1) - std::ssize(keys);
  if (others > 0) out << others << " keys with smaller weights: --json\n";
  if (inspection.rows > 0 && inspection.first + inspection.rows * inspection.columns == maps.M) add_grids(out, inspection, terms);
}

}  // namespace

std::string terms_view(const Inspection& inspection, int64_t query) {
  std::ostringstream out;
  const AttentionMaps& maps = inspection.maps[0];
  out << inspection.architecture << ", " << token_text(inspection.input) << "\n\n";
  add_shares(out, inspection, maps);
  out << '\n';
  if (maps.layers.size() == 1 && maps.heads.size() == 1)
    add_scores(out, inspection, maps, query);
  else
    out << "--layers L --heads H shows the terms of one head, for the query --query\n";
  return out.str();
}

}  // namespace heed::cli
