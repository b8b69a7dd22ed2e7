// Reductions on the CPU. Sums are blocked: f32 keeps its digits.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "heed/ops/reduce_cpu.cc"
#include "hwy/foreach_target.h"
// after foreach_target
#include "heed/core/lanes.h"

#include <limits>

#include "heed/core/parallel.h"
#include "heed/ops/reduce.h"

HWY_BEFORE_NAMESPACE();
namespace heed {
namespace HWY_NAMESPACE {

// The operations of a fold: on each element and the `about` of its output, on two results, and, if it has a gradient, the gradient of an
// element from that of its output.
struct Sum {
  static constexpr bool has_about = false;
  static HWY_INLINE Lanes start() { return 0.0f; }
  static HWY_INLINE Lanes take(Lanes x, Lanes) { return x; }
  static HWY_INLINE Lanes join(Lanes a, Lanes b) { return a + b; }
  static HWY_INLINE float across(Lanes a) { return sum(a); }
};
struct SquaredDeviations : Sum {
  static constexpr bool has_about = true;
  static HWY_INLINE Lanes take(Lanes x, Lanes mean) { return (x - mean) * (x - mean); }
  static HWY_INLINE Lanes back(Lanes x, Lanes mean, Lanes g) { return 2 * (x - mean) * g; }
};
struct Ties : Sum {  // how many elements are the largest; where that is NaN, how many are NaN
  static constexpr bool has_about = true;
  static HWY_INLINE Lanes take(Lanes x, Lanes largest) { return back(x, largest, 1.0f); }
  static HWY_INLINE Lanes back(Lanes x, Lanes largest, Lanes g) { return select(x == x, select(x == largest, g, 0.0f), g); }
};
struct Max {  // a NaN wins
  static constexpr bool has_about = false;
  static HWY_INLINE Lanes start() { return -HUGE_VALF; }
  static HWY_INLINE Lanes take(Lanes x, Lanes) { return x; }
  static HWY_INLINE Lanes join(Lanes a, Lanes b) { return select(a == a, select(a > b, a, b), a); }
  static HWY_INLINE float across(Lanes a) {
    return hn::AllTrue(FloatTag(), (a == a).m) ? largest(a) : std::numeric_limits<float>::quiet_NaN();
  }
};

// Four registers step through the elements.
template <class F, class T>
HWY_INLINE Lanes fold_chunk(const T* x, Lanes about, int64_t count) {
  const int64_t step = lane_count();
  Lanes a = F::start(), b = a, c = a, d = a;
  int64_t i = 0;
  for (; i + 4 * step <= count; i += 4 * step) {
    a = F::join(a, F::take(Lanes::load(x + i), about));
    b = F::join(b, F::take(Lanes::load(x + i + step), about));
    c = F::join(c, F::take(Lanes::load(x + i + 2 * step), about));
    d = F::join(d, F::take(Lanes::load(x + i + 3 * step), about));
  }
  for (; i + step <= count; i += step) a = F::join(a, F::take(Lanes::load(x + i), about));
  if (i < count) {
    const LaneMask inside{hn::FirstN(FloatTag(), static_cast<size_t>(count - i))};
    b = F::join(b, select(inside, F::take(load_some(x + i, count - i), about), F::start()));
  }
  return F::join(F::join(a, b), F::join(c, d));
}

// The results of chunks are joined as a tree, so that no chain of roundings grows long: level k holds 2^k chunks, as
// the bits of a counter do.
template <class F, class T>
float fold_row(const T* x, float about, int64_t count) {
  const int64_t chunk = 64 * lane_count();
  if (count <= chunk) return F::across(fold_chunk<F>(x, about, count));
  Lanes level[16];  // up to 2^16 chunks: far more than a block has
  int64_t chunks = 0;
  for (int64_t begin = 0; begin < count; begin += chunk, ++chunks) {
    Lanes whole = fold_chunk<F>(x + begin, about, std::min(chunk, count - begin));
    int k = 0;
    for (; chunks >> k & 1; ++k) whole = F::join(level[k], whole);
    level[k] = whole;
  }
  Lanes total = F::start();
  for (int k = 0; chunks >> k; ++k)
    if (chunks >> k & 1) total = F::join(level[k], total);
  return F::across(total);
}

// x: (rows, width) with `stride` elements between rows -> y: (width). Eight rows at a time are joined as a tree.
template <class F, class T>
void fold_columns(const T* x, const float* about, float* y, int64_t rows, int64_t width, int64_t stride) {
  for (int64_t first = 0; first < rows; first += 8) {
    const int64_t some = std::min<int64_t>(8, rows - first);
    const T* from = x + first * stride;
    for_lanes(width, [&](int64_t i, auto load, auto store) HEED_LANES {
      Lanes middle = 0.0f, result = first > 0 ? load(y + i) : F::start();
      if constexpr (F::has_about) middle = load(about + i);
      const auto row = [&](int64_t k) HWY_ATTR { return F::take(load(from + k * stride + i), middle); };
      if (some == 8) {
        const Lanes low = F::join(F::join(row(0), row(1)), F::join(row(2), row(3)));
        const Lanes high = F::join(F::join(row(4), row(5)), F::join(row(6), row(7)));
        result = F::join(result, F::join(low, high));
      } else {
        for (int64_t k = 0; k < some; ++k) result = F::join(result, row(k));
      }
      store(y + i, result);
    });
  }
}

// Blocks, and strips of the inner axis, are folded in parallel.
template <class F, class T>
void fold_blocks(const FoldForward& f) {
  const T* x = static_cast<const T*>(f.x);
  const int64_t reduced = f.reduced, inner = f.inner, blocks = f.blocks;
  const int64_t strips = even_parts(inner, kFoldStrip), width = (inner + strips - 1) / strips, rows = (reduced + blocks - 1) / blocks;
  parallel_for(f.outer * blocks * strips, kFoldBlock / (rows * width), [&](int64_t begin, int64_t end) HWY_ATTR {
    if (inner == 1 && blocks == 1) {  // rows may be short: no divisions for them
      for (int64_t o = begin; o < end; ++o) f.y[o] = fold_row<F>(x + o * reduced, F::has_about ? f.about[o] : 0, reduced);
      return;
    }
    for (int64_t unit = begin; unit < end; ++unit) {
      const int64_t strip = unit % strips, block = unit / strips % blocks, o = unit / strips / blocks;
      const int64_t column = strip * width, row = block * rows;
      const T* from = x + (o * reduced + row) * inner + column;
      const float* middle = F::has_about ? f.about + o * inner + column : nullptr;
      float* result = f.y + (o * blocks + block) * inner + column;
      const int64_t here = std::min(rows, reduced - row);
      if (inner == 1) {
        *result = fold_row<F>(from, F::has_about ? *middle : 0, here);
      } else {
        fold_columns<F>(from, middle, result, here, std::min(width, inner - column), inner);
      }
    }
  });
}

void fold_all(const FoldForward& f) {
  with_storage(f.dtype, [&]<class T>(T) {
    switch (f.kind) {
      case Fold::sum: return fold_blocks<Sum, T>(f);
      case Fold::max: return fold_blocks<Max, T>(f);
      case Fold::squared_deviations: return fold_blocks<SquaredDeviations, T>(f);
      case Fold::ties: return fold_blocks<Ties, T>(f);
    }
  });
}

template <class F, class T>
void spread(const FoldBackward& f) {
  const int64_t outer = f.outer, reduced = f.reduced, inner = f.inner;
  const int64_t length = inner == 1 ? reduced : inner, lines = inner == 1 ? outer : outer * reduced;
  const int64_t strips = even_parts(length, kFoldBlock), width = (length + strips - 1) / strips;
  parallel_for(lines * strips, kFoldBlock / width, [&](int64_t begin, int64_t end) HWY_ATTR {
    for (int64_t unit = begin; unit < end; ++unit) {
      const int64_t line = unit / strips, column = unit % strips * width, here = std::min(width, length - column);
      const T* from = static_cast<const T*>(f.x) + line * length + column;
      T* to = static_cast<T*>(f.dx) + line * length + column;
      if (inner == 1) {
        const Lanes middle = f.about[line], share = f.g[line];
        for_lanes(here, [&](int64_t i, auto load, auto store) HEED_LANES { store(to + i, F::back(load(from + i), middle, share)); });
      } else {
        const int64_t output = line / reduced * inner + column;
        for_lanes(here, [&](int64_t i, auto load, auto store)
                            HEED_LANES { store(to + i, F::back(load(from + i), load(f.about + output + i), load(f.g + output + i))); });
      }
    }
  });
}

void spread_all(const FoldBackward& f) {
  with_storage(f.dtype, [&]<class T>(T) { f.kind == Fold::ties ? spread<Ties, T>(f) : spread<SquaredDeviations, T>(f); });
}

}  // namespace HWY_NAMESPACE
}  // namespace heed
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace heed {

HWY_EXPORT(fold_all);
HWY_EXPORT(spread_all);

void cpu::fold_forward(const FoldForward& args) { HWY_DYNAMIC_DISPATCH(fold_all)(args); }
void cpu::fold_backward(const FoldBackward& args) { HWY_DYNAMIC_DISPATCH(spread_all)(args); }

void cpu::argmax_forward(const Argmax& a) {
  with_storage(a.dtype, [&]<class T>(T) {
    parallel_for(a.outer * a.inner, kFoldBlock / a.reduced, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const T* element = static_cast<const T*>(a.x) + i / a.inner * a.reduced * a.inner + i % a.inner;
        a.y[i] = 0;
        for (float value = convert<float>(*element); value == value && value != a.maximum[i]; value = convert<float>(*element)) {
          element += a.inner;
          ++a.y[i];
        }
      }
    });
  });
}

}  // namespace heed
#endif
