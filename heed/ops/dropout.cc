// Dropout (Srivastava et al. 2014). The mask is a function of the random key and the element's place: backward computes it again.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "heed/ops/dropout.cc"
#include "hwy/foreach_target.h"
// after foreach_target
#include "heed/core/philox_lanes.h"

#include "heed/core/parallel.h"
#include "heed/core/raw.h"
#include "heed/ops/dropout.h"
#include "heed/ops/ops.h"
#include "heed/ops/storage.h"

HWY_BEFORE_NAMESPACE();
namespace heed {
namespace HWY_NAMESPACE {

// 64 elements share 16 blocks of 4 words: element e takes word e / 16 of block e % 16, for any register width.
template <class T>
void drop_typed(const DropoutForward& f, const T* x, T* y) {
  constexpr int64_t group = 64, row = 16;
  const int64_t step = std::min<int64_t>(lane_count(), row);
  const bool streaming = f.count >= kStreamFrom;
  parallel_for(f.count, 1 << 13, [&](int64_t begin, int64_t end) HWY_ATTR {
    const Lanes factor = f.scale;
    const Words limit = hn::Set(WordTag(), f.threshold);
    for (int64_t at = begin; at < end; at += group) {
      for (int64_t lane = 0; lane < row; lane += step) {
        Words words[4];
        philox_lanes(f.key, static_cast<uint64_t>(at / 4 + lane), words);
        for (int64_t word = 0; word < 4; ++word) {
          const int64_t i = at + word * row + lane;
          if (i >= end) break;
          const auto keep = hn::RebindMask(FloatTag(), hn::Not(hn::Lt(words[word], limit)));
          const Lanes in = i + step <= end ? Lanes::load(x + i) : load_some(x + i, end - i);
          const Lanes out = hn::IfThenElseZero(keep, (in * factor).v);
          if (i + step > end) {
            store_some(out, y + i, end - i);
          } else if (streaming) {
            stream(out, y + i);
          } else {
            out.store(y + i);
          }
        }
      }
    }
  });
}

void drop_all(const DropoutForward& f) {
  with_storage(f.dtype, [&]<class T>(T) { drop_typed(f, static_cast<const T*>(f.x), static_cast<T*>(f.y)); });
}

}  // namespace HWY_NAMESPACE
}  // namespace heed
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace heed {

HWY_EXPORT(drop_all);

void cpu::dropout_forward(const DropoutForward& args) { HWY_DYNAMIC_DISPATCH(drop_all)(args); }

namespace {

Tensor dropped(const Tensor& x, RandomKey key, float p) {
  const Tensor y = Tensor::empty(x.shape(), x.dtype(), x.device());
  launch(dropout_forward, x.device(),
         {.x = Raw::bytes(x),
          .y = Raw::bytes(y),
          .count = x.count(),
          .key = key,
          .threshold = static_cast<uint32_t>(static_cast<double>(p) * 0x1p32),
          .scale = 1 / (1 - p),
          .dtype = x.dtype()});
  return y;
}

}  // namespace

Tensor dropout(const Tensor& input, float p, Rng& rng) {
  check(p >= 0 && p < 1, "dropout: probability ", p, ", expected 0 or more and below 1");
  if (p == 0) return input;
  if (input.dtype() == DType::f16) return in_f32(input, [&](const Tensor& wide) { return dropout(wide, p, rng); });
  const RandomKey key = rng.next();
  const Tensor x = dense_storage("dropout", input);
  Tensor out =
      record(op::dropout, dropped(x, key, p), {input}, [key, p](const Tensor& g) { return Grads{dropped(contiguous(g), key, p)}; });
  if (!has_recompute(input)) return out;  // else x would be saved instead
  return with_recompute(std::move(out), [kept = SavedInput(input, x), key, p] { return dropped(contiguous(kept.get()), key, p); });
}

}  // namespace heed
#endif
