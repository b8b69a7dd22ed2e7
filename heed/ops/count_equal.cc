#include "heed/ops/count_equal.h"

#include "heed/core/copy.h"
#include "heed/core/raw.h"

namespace heed {

void cpu::count_equal_elements(const CountEqual& args) {
  int64_t equal = 0;
  for (int64_t i = 0; i < args.count; ++i) equal += args.a[i] == args.b[i];
  *args.equal = static_cast<float>(equal);
}

Tensor count_equal(const Tensor& a, const Tensor& b) {
  check(a.shape() == b.shape() && a.dtype() == DType::i64 && b.dtype() == DType::i64, "count_equal: ", name_of(a.dtype()), " ", a.shape(),
        " and ", name_of(b.dtype()), " ", b.shape(), ", expected i64 of one shape");
  const Device device = common_device("count_equal", {&a, &b});
  const Tensor x = contiguous(a), y = contiguous(b), out = Tensor::empty({}, device);
  launch(count_equal_elements, device, {.a = raw<int64_t>(x), .b = raw<int64_t>(y), .count = x.count(), .equal = raw<float>(out)});
  return out;
}

}  // namespace heed
