#include "heed/ops/all_finite.h"

#include <algorithm>
#include <cmath>

#include "heed/ops/ops.h"

namespace heed {

bool all_finite(const Tensor& x) {
  if (!is_floating(x.dtype()) || x.count() == 0) return true;
  if (std::isfinite(sum(x.detach()).item())) return true;  // one NaN or infinity makes the sum one
  const std::vector<float> values = x.to_vector<float>();  // but a sum of large numbers may be infinite too
  return std::all_of(values.begin(), values.end(), [](float value) { return std::isfinite(value); });
}

}  // namespace heed
