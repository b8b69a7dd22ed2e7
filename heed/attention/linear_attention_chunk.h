// Linear attention's chunk of tokens: features, their gradient, and the state (S, z) that holds all keys so far.
// Included like lanes.h by linear_attention_cpu.cc, which says how chunks make up a call.
//
// Random features of key j are c_j e^(gain_j). A sum that query i reads is stored relative to e^(top_i), the largest gain that i
// can see: every exponent below is at most zero, and no later key changes an earlier result.
#include <vector>

#include "heed/attention/linear_attention_kernels.h"
#include "heed/core/raw.h"

#ifndef HEED_ATTENTION_LINEAR_ATTENTION_CHUNK_TYPES
#define HEED_ATTENTION_LINEAR_ATTENTION_CHUNK_TYPES
namespace heed {

// Everything a task needs. Widths are padded to whole registers.
struct LinearAttentionWork {
  LinearAttentionSizes sizes{};
  int64_t width_d = 0, width_e = 0, width_r = 0;
  TokenSplit query_split, key_split;
  const int64_t* lengths = nullptr;
  const float *projection = nullptr, *projection_transposed = nullptr;
  const float *q = nullptr, *k = nullptr, *v = nullptr;
  float *gains = nullptr, *tops = nullptr, *states = nullptr;
  float* sums = nullptr;  // (B G, query segments + 1, state): backward's sums over the queries from there on
  const float *g = nullptr, *out = nullptr, *total = nullptr;
  float *new_out = nullptr, *new_total = nullptr;
  float *dq = nullptr, *dk = nullptr, *dv = nullptr;

  explicit LinearAttentionWork(const LinearAttentionArgs& a)
      : sizes(a.sizes),
        width_d(a.layout.width_d),
        width_e(a.layout.width_e),
        width_r(a.layout.width_r),
        query_split(a.layout.queries),
        key_split(a.layout.keys),
        lengths(a.lengths),
        projection(a.projection),
        projection_transposed(a.projection_transposed),
        q(a.q),
        k(a.k),
        v(a.v),
        gains(a.gains),
        tops(a.largest_gain),
        states(a.states) {}

  int64_t state() const { return width_r * (width_e + 1); }
  int64_t keys_of(int64_t head) const { return lengths ? std::clamp<int64_t>(lengths[head / sizes.G], 0, sizes.M) : sizes.M; }
  float* state_at(int64_t head, int64_t slot) const { return states + (head * (key_split.segments + 1) + slot) * state(); }
  float* sum_at(int64_t head, int64_t slot) const { return sums + (head * (query_split.segments + 1) + slot) * state(); }
  // The largest gain among the first `keys` keys, and the one that query i may see.
  float top_after(int64_t head, int64_t keys) const { return tops ? tops[head * (sizes.M + 1) + std::min(keys, sizes.M)] : 0; }
  float query_top(int64_t head, int64_t i) const { return top_after(head, sizes.causal ? i + 1 : sizes.M); }
};

// Memory of one task.
class ScratchBlocks {
 public:
  float* take(int64_t floats) {
    blocks_.push_back(Tensor::empty({floats}, kCpu));
    return raw<float>(blocks_.back());
  }

 private:
  Tensors blocks_;
};

}  // namespace heed
#endif

#if defined(HEED_ATTENTION_LINEAR_ATTENTION_CHUNK_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEED_ATTENTION_LINEAR_ATTENTION_CHUNK_H_
#undef HEED_ATTENTION_LINEAR_ATTENTION_CHUNK_H_
#else
#define HEED_ATTENTION_LINEAR_ATTENTION_CHUNK_H_
#endif

#include "heed/attention/tile.h"
#include "heed/ops/row_reduce.h"

HWY_BEFORE_NAMESPACE();
namespace heed {
namespace HWY_NAMESPACE {

static HWY_INLINE float rescale(const LinearAttentionWork& w, float difference) {
  return w.gains ? std::exp(std::min(difference, 0.0f)) : 1.0f;
}

// (rows, columns) -> (columns, stride), zero after the last row up to a whole register.
static void transpose(const float* from, int64_t rows, int64_t columns, float* to, int64_t stride) {
  const int64_t strip = lane_count();
  for (int64_t r0 = 0; r0 < rows; r0 += strip)
    for (int64_t c = 0; c < columns; ++c)
      for (int64_t r = r0; r < r0 + strip; ++r) to[c * stride + r] = r < rows ? from[r * columns + c] : 0.0f;
}

static void copy_rows(const float* from, int64_t width, float* to, int64_t padded, int64_t rows) {
  for (int64_t r = 0; r < rows; ++r) {
    std::copy_n(from + r * width, width, to + r * padded);
    std::fill_n(to + r * padded + width, padded - width, 0.0f);
  }
}

static void scale_row(float* row, int64_t width, float factor) {
  for_lanes(width, [&](int64_t i, auto load, auto store) HEED_LANES { store(row + i, load(row + i) * Lanes(factor)); });
}

// phi of some tokens: x (rows, D) -> y (rows, width_r). Random ones are divided by e^shift, the gain without |x|^2 / 2.
static void features(const LinearAttentionWork& w, const float* x, int64_t rows, float* y, float* gain = nullptr) {
  const int64_t D = w.sizes.D, R = w.sizes.R, width = w.width_r;
  const Lanes scale = w.sizes.scale;
  if (w.sizes.map == FeatureMap::random) tile_product({x, D, 1}, w.projection_transposed, width, y, width, rows, width, D, false);
  for (int64_t r = 0; r < rows; ++r, x += D, y += width) {
    if (w.sizes.map == FeatureMap::elu) {
      for_lanes(R, [&](int64_t i, auto load, auto store) HEED_LANES {
        const Lanes t = load(x + i) * scale;
        store(y + i, select(t > Lanes(0), t + 1, exp_below(t)));
      });
    } else if (w.sizes.map == FeatureMap::relu) {
      for_lanes(R, [&](int64_t i, auto load, auto store) HEED_LANES {
        const Lanes t = load(x + i) * scale;
        store(y + i, select(t < Lanes(0), Lanes(0), t) + kReluFloor);
      });
    } else {
      const float shift = max_over(R, [&](int64_t i, auto load) HEED_LANES { return load(y + i); });
      for_lanes(R, [&](int64_t i, auto load, auto store) HEED_LANES { store(y + i, exp_below(load(y + i) - Lanes(shift))); });
      if (gain)
        gain[r] = shift - 0.5f * sum_over(D, [&](int64_t i, auto load) HEED_LANES {
                            const Lanes t = load(x + i) * scale;
                            return t * t;
                          });
    }
    std::fill_n(y + R, width - R, 0.0f);
  }
}

// Back through phi: dy (rows, width_r), overwritten, -> dx (rows, D). A query's |x|^2 cancels between numerator and denominator.
static void features_back(const LinearAttentionWork& w, const float* x, const float* y, float* dy, int64_t rows, float* dx, bool keys,
                          float* wide) {
  const int64_t D = w.sizes.D, R = w.sizes.R, width = w.width_r;
  const Lanes scale = w.sizes.scale;
  if (w.sizes.map != FeatureMap::random) {
    const bool elu = w.sizes.map == FeatureMap::elu;
    for (int64_t r = 0; r < rows; ++r, y += width, dy += width, dx += D)
      for_lanes(R, [&](int64_t i, auto load, auto store) HEED_LANES {
        const Lanes value = load(y + i), slope = elu ? min(value, Lanes(1)) : select(value > Lanes(kReluFloor), Lanes(1), Lanes(0));
        store(dx + i, load(dy + i) * slope * scale);
      });
    return;
  }
  float sums[kChunkTokens];
  for (int64_t r = 0; r < rows; ++r) {
    const float* value = y + r * width;
    float* change = dy + r * width;
    sums[r] = sum_stored(R, change, [&](int64_t i, auto load) HEED_LANES { return load(value + i) * load(change + i); });
  }
  tile_product({dy, width, 1}, w.projection, w.width_d, wide, w.width_d, rows, w.width_d, R, false);
  for (int64_t r = 0; r < rows; ++r) {
    const Lanes share = keys ? sums[r] * w.sizes.scale * w.sizes.scale : 0.0f;
    for_lanes(D, [&](int64_t i, auto load, auto store)
                     HEED_LANES { store(dx + r * D + i, load(wide + r * w.width_d + i) - share * load(x + r * D + i)); });
  }
}

// The keys of a chunk, and the state and the weights of one task.
struct LinearAttentionChunk {
  const LinearAttentionWork& w;
  const int64_t head;
  ScratchBlocks scratch{};
  int64_t first = 0, rows = 0, keys = 0;  // tokens of this chunk, and how many of them are keys to be seen
  float* c = scratch.take(kChunkTokens * w.width_r);
  float* v = scratch.take(kChunkTokens * w.width_e);
  float* transposed = scratch.take(std::max(w.width_r, w.width_e) * kChunkTokens);
  float* state = scratch.take(w.state());
  float* z = state + w.width_r * w.width_e;
  float* a = scratch.take(kChunkTokens * w.width_r);
  float* s = scratch.take(kChunkTokens * kChunkTokens);
  float* o = scratch.take(kChunkTokens * w.width_e);
  float gain[kChunkTokens] = {}, total[kChunkTokens] = {};

  void start_from(const float* other) { std::copy_n(other, w.state(), state); }

  void take_keys(int64_t begin, int64_t end) {
    first = begin;
    rows = end - begin;
    keys = std::clamp<int64_t>(w.keys_of(head) - begin, 0, rows);
    features(w, w.k + (head * w.sizes.M + first) * w.sizes.D, keys, c, gain);
    copy_rows(w.v + (head * w.sizes.M + first) * w.sizes.E, w.sizes.E, v, w.width_e, keys);
  }

  // state = state e^(before - after) + the keys of this chunk; c is scaled too.
  void add_keys(float before, float after) {
    if (w.gains && before != after) scale_row(state, w.state(), rescale(w, before - after));
    for (int64_t j = 0; j < keys; ++j) {
      float* row = c + j * w.width_r;
      if (w.gains) scale_row(row, w.width_r, rescale(w, gain[j] - after));
      for_lanes(w.width_r, [&](int64_t i, auto load, auto store) HEED_LANES { store(z + i, load(z + i) + load(row + i)); });
    }
    tile_product({c, 1, w.width_r}, v, w.width_e, state, w.width_e, w.sizes.R, w.width_e, keys, true);
  }

  // Row i of a chunk's product (rows, kChunkTokens) keeps j <= i, less `shift`, times e^(gain_j - top_i). Returns its sum.
  float weight_row(float* row, int64_t r, float shift) {
    const int64_t seen = std::min(r + 1, keys);
    const Lanes top = w.query_top(head, first + r), less = shift;
    std::fill(row + seen, row + keys, 0.0f);
    if (!w.gains) return sum_stored(seen, row, [&](int64_t j, auto load) HEED_LANES { return load(row + j) - less; });
    return sum_stored(seen, row, [&](int64_t j, auto load) HEED_LANES {
      return (load(row + j) - less) * exp_below(min(load(gain + j) - top, Lanes(0)));
    });
  }

  // s = a c^T, masked and weighted: what the queries of a head give to the keys of this chunk.
  void weight_keys() {
    tile_product({a, w.width_r, 1}, transposed, kChunkTokens, s, kChunkTokens, rows, whole_registers(keys), w.sizes.R, false);
    for (int64_t r = 0; r < rows; ++r) total[r] = weight_row(s + r * kChunkTokens, r, 0);
  }
};

}  // namespace HWY_NAMESPACE
}  // namespace heed
HWY_AFTER_NAMESPACE();

#endif
