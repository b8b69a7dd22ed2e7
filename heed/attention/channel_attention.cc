// Two products and a softmax between them: the map of a group has as many rows as the group has channels, so nothing is fused.
#include "heed/attention/channel_attention.h"

#include <cmath>

#include "heed/ops/ops.h"
#include "heed/ops/storage.h"

namespace heed {

Tensor channel_attention(const Tensor& q, const Tensor& k, const Tensor& v, const ChannelOptions& options) {
  if (is_half(q) || is_half(k) || is_half(v))
    return in_f32(q, [&](const Tensor& wide) { return channel_attention(wide, widen(k), widen(v), options); });
  check(q.rank() == 4 && k.rank() == 4 && v.rank() == 4, "channel_attention: q ", q.shape(), ", k ", k.shape(), ", v ", v.shape(),
        ", expected (B, G, N, C), (B, G, N, D), (B, G, M, D)");
  check(k.size(0) == q.size(0) && v.size(0) == q.size(0), "channel_attention: batches of ", q.size(0), ", ", k.size(0), " and ", v.size(0));
  check(k.size(1) == q.size(1) && v.size(1) == q.size(1), "channel_attention: groups of ", q.size(1), ", ", k.size(1), " and ", v.size(1));
  check(k.size(2) == q.size(2), "channel_attention: queries have ", q.size(2), " tokens, keys ", k.size(2));
  check(v.size(3) == k.size(3), "channel_attention: keys have ", k.size(3), " channels, values ", v.size(3));
  const float beta = options.beta.value_or(1 / std::sqrt(static_cast<float>(k.size(3))));
  const Tensor map = softmax(scale(matmul(transpose(q, 2, 3), k), beta));
  return matmul(v, transpose(map, 2, 3));
}

}  // namespace heed
