// Tables that are computed from positions alone: sinusoids, and the angles of rotary positions. A config may allow any number of
// positions, so rows are computed when somebody asks for them.
#pragma once

#include <functional>
#include <memory>
#include <span>

#include "heed/core/tensor.h"

namespace heed {

class PositionTable {
 public:
  using Fill = std::function<void(int64_t position, std::span<float> row)>;

  // positions: how many there may be. prepare: called before the first row is computed; gives a function that writes one row of
  // `width` numbers and may be called from several threads
  PositionTable(int64_t positions, int64_t width, std::function<Fill()> prepare);

  int64_t positions() const { return positions_; }
  int64_t width() const { return width_; }
  // The first rows. Copies of a table share what is computed. In a dry run the rows have a shape alone. -> (count, width)
  Tensor rows(int64_t count) const;
  // The rows of any positions, an error where one lies outside. places: (B, N) i64 -> (B, N, width)
  Tensor at(const Tensor& places) const;

 private:
  struct Computed;

  int64_t positions_, width_;
  std::shared_ptr<Computed> computed_;
};

}  // namespace heed
