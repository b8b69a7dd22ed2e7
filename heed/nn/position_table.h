// Tables that depend on the position only: sinusoids, cos and sin of rotary positions. Rows are computed on first use, as a
// config may allow any number of positions.
#pragma once

#include <functional>
#include <memory>
#include <span>

#include "heed/core/api.h"
#include "heed/core/tensor.h"

namespace HEED_API heed {

// A table (positions, width) of which only the rows that are used are computed.
class PositionTable {
 public:
  // Writes the row of a position.
  using Fill = std::function<void(int64_t position, std::span<float> row)>;

  // positions: the maximum. prepare: called before the first row is computed; returns a function that writes one row of
  // `width` numbers and is called from several threads
  PositionTable(int64_t positions, int64_t width, std::function<Fill()> prepare);

  // Its sizes.
  int64_t positions() const { return positions_; }
  int64_t width() const { return width_; }
  // The first rows. Copies of a table share computed rows. In a dry run the result has a shape but no values. -> (count, width)
  Tensor rows(int64_t count, Device device) const;
  // The rows of the given positions; an error if one is out of range. positions: (B, N) i64 -> (B, N, width)
  Tensor at(const Tensor& positions, Device device) const;

 private:
  struct Computed;

  int64_t positions_, width_;
  std::shared_ptr<Computed> computed_;
};

}  // namespace heed
