// How many vectors of an item each module of a model sees: all tokens, some, one, or the pixels that are left.
#pragma once

#include <array>
#include <string>

#include "heed/models/config.h"
#include "heed/models/cost.h"

namespace heed {

// Whether one of the words stands between the dots of a name.
bool has_word(const std::string& name, std::initializer_list<const char*> words);
inline bool has_word(const std::string& name, const char* word) { return has_word(name, {word}); }

class CostRows {
 public:
  CostRows(const Model& model, InputSize size);

  const InputSize& size() const { return size_; }
  InputKind kind() const { return kind_; }
  const std::array<int64_t, 2>& grid() const { return grid_; }  // of patches

  int64_t of(const std::string& module) const;  // in a call that is asked for everything
  // In a step of training, which leaves out what its loss does not need: tokens of the last layer that no head reads, words without label.
  int64_t in_training(const std::string& module) const;

 private:
  void settle();
  bool leaves_out() const;

  const Model& model_;
  const Config config_;
  InputSize size_;
  InputKind kind_ = InputKind::text;
  int64_t patches_ = 0;
  std::array<int64_t, 2> grid_{};
  std::string last_layer_ = {};  // which gives only some tokens in training; empty: all
  int64_t read_ = 0, told_ = 0;  // tokens that it gives, tokens whose words are learned
};

}  // namespace heed
