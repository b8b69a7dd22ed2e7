// heed's own part of config.json, the object "heed": other positions, attention, patterns, pooling and norms for any
// architecture. docs/models.md lists the keys. Without it nothing changes.
#pragma once

#include <map>
#include <memory>
#include <optional>

#include "heed/models/config.h"
#include "heed/nn/encoder.h"
#include "heed/nn/pooling.h"

namespace heed {

// Positions that are added to tokens: a table, two tables on a grid, either learned or computed, or none.
struct AddedPositions {
  Tensor table = {};                           // (P, D) or (1, P, D)
  std::optional<PositionTable> computed = {};  // in place of the table
  std::function<Tensor()> grid = {};           // -> (P, D)

  bool has_table() const { return table.defined() || computed; }

  // x: (B, N, D); position_ids: (B, N) i64, or undefined: first, first + 1, ...
  Tensor operator()(const Tensor& x, const Tensor& position_ids = {}, int64_t first = 0) const;
};

class Variant {
 public:
  // tokens: how many there may be. grid: rows and columns of pictures; what stands before them is no part of it.
  Variant(const Config& config, int64_t tokens, std::optional<TokenGrid> grid = {});

  Pooling pooling() const;  // the class token unless config.json says otherwise
  NormPlace place(NormPlace otherwise) const;
  // The options of a layer, from 0, with what config.json says: some patterns alternate, and stochastic depth grows from layer to layer.
  LayerOptions changed(LayerOptions options, int64_t layer = 0, int64_t layers = 1) const;
  // The positions that are added to tokens. own: makes those of the architecture, which are "learned" as well unless it has others
  AddedPositions added(const Scope& scope, int64_t D, const std::function<AddedPositions()>& own) const;
  Pool pool(const Scope& scope, const LayerOptions& options) const;

 private:
  bool says(std::string_view position) const;
  const TokenGrid& grid(std::string_view key) const;  // an error that names the key where there is none
  std::vector<ScorePositions> in_scores(const Scope& scope, const MultiHeadOptions& options, int64_t layer) const;
  void add_pattern(std::vector<ScorePositions>& out, const Config& pattern, int64_t layer) const;
  AttentionKind kind(int64_t head_width) const;

  Config own_;
  int64_t tokens_;
  std::optional<TokenGrid> grid_;
  std::vector<std::string> positions_ = {};                 // empty: the architecture's own
  std::shared_ptr<std::map<int64_t, Tensor>> projections_;  // random features by the width of heads; layers share them
};

}  // namespace heed
