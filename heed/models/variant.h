// The object "heed" in config.json: changes positions, attention, patterns, pooling and norms of any architecture.
// docs/models.md lists the keys.
#pragma once

#include <map>
#include <memory>
#include <optional>

#include "heed/models/choices.h"
#include "heed/nn/encoder.h"
#include "heed/nn/pooling.h"

namespace heed {

// Positions added to tokens: a learned table, a computed one, positions on a grid, or none.
struct AddedPositions {
  Tensor table = {};                           // (P, D) or (1, P, D)
  std::optional<PositionTable> computed = {};  // replaces the table
  std::function<Tensor(Device)> grid = {};     // -> (P, D)
  int64_t fixed = 0;                           // leading tokens that are the same in every input, as the class token of images

  bool has_table() const { return table.defined() || computed; }

  // x: (B, N, D); position_ids: (B, N) i64, or undefined: first, first + 1, ...
  Tensor operator()(const Tensor& x, const Tensor& position_ids = {}, int64_t first = 0) const;
  // The tokens before positions are added: x, or what MovedTokens makes of it. x: (B, N, D)
  Tensor content(const Tensor& x) const;
};

// While one of these lives, tokens on this thread move before positions are added: `turn` counts through the rotations of the tokens of an
// input, all of them if it has at most kRotations, otherwise as many with equal distances. Leading tokens that are the same in every input
// stay in their place.
class MovedTokens {
 public:
  static constexpr int64_t kRotations = 16;

  explicit MovedTokens(int64_t turn) : turn_(turn), outer_(newest_) { newest_ = this; }
  ~MovedTokens() { newest_ = outer_; }
  MovedTokens(const MovedTokens&) = delete;
  MovedTokens& operator=(const MovedTokens&) = delete;

  int64_t longest() const { return longest_; }  // the most tokens that moved so far; 0: no positions were added to tokens

 private:
  friend struct AddedPositions;
  static inline thread_local MovedTokens* newest_ = nullptr;

  int64_t turn_, longest_ = 0;
  MovedTokens* outer_;
};

class Variant {
 public:
  // tokens: the maximum. grid: rows and columns of patches, if there is no class token before them
  Variant(const Config& config, int64_t tokens, std::optional<TokenGrid> grid = {});

  bool replaces_positions() const { return !positions_.empty(); }  // of the architecture
  Pooling pooling() const;                                         // default: the class token
  NormPlace place(NormPlace fallback) const;
  // The options of layer `layer`, from 0, changed by config.json. Some patterns alternate, and stochastic depth grows with the layer.
  LayerOptions apply(LayerOptions options, int64_t layer = 0, int64_t layers = 1) const;
  // The positions added to tokens. own: creates those of the architecture, also used for "learned"
  AddedPositions added_positions(const Scope& scope, int64_t D, const std::function<AddedPositions()>& own) const;
  Pool pool(const Scope& scope, const LayerOptions& options) const;

 private:
  bool uses(std::string_view position) const;
  const TokenGrid& grid(std::string_view key) const;  // an error naming the key if there is none
  std::vector<ScorePositions> in_scores(const Scope& scope, const MultiHeadOptions& options, int64_t layer) const;
  Term term(const Scope& scope, const Chosen& chosen, int64_t heads, int64_t layer) const;
  AttentionKind kind(int64_t head_width) const;
  int64_t heads_left(int64_t heads, int64_t layer) const;  // of a layer, after pruning

  Config own_;
  int64_t tokens_;
  std::optional<TokenGrid> grid_;
  std::vector<Chosen> positions_ = {}, patterns_ = {};      // no positions: the architecture's own
  std::shared_ptr<std::map<int64_t, Tensor>> projections_;  // random features by head width, shared by the layers
};

}  // namespace heed
