// The number of vectors per item that each module of a model processes: all tokens, some, one, or pixels.
#pragma once

#include <array>
#include <string>

#include "heed/models/config.h"
#include "heed/models/cost.h"

namespace heed {

// Whether a dotted name has one of these parts.
bool has_part(const std::string& name, std::initializer_list<const char*> choices);
inline bool has_part(const std::string& name, const char* part) { return has_part(name, {part}); }

class CostRows {
 public:
  CostRows(const Model& model, InputSize size);

  const InputSize& size() const { return size_; }
  InputKind kind() const { return kind_; }
  const std::array<int64_t, 2>& grid() const { return grid_; }  // of patches

  int64_t of(const std::string& module) const;  // in a full forward pass
  // In a training step, which skips what the loss does not need: tokens of the last layer that no head reads, logits without label.
  int64_t in_training(const std::string& module) const;

 private:
  void resolve_size();
  bool skips_tokens() const;

  const Model& model_;
  const Config config_;
  InputSize size_;
  InputKind kind_ = InputKind::text;
  int64_t patches_ = 0;
  std::array<int64_t, 2> grid_{};
  std::string last_layer_ = {};    // computes only some tokens in training; empty: all
  int64_t last_layer_tokens_ = 0;  // that it computes in training
  int64_t predicted_tokens_ = 0;   // tokens with a label, for language models
};

}  // namespace heed
