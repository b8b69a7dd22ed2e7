// Fused attention forward on Hopper, after FlashAttention-3 (Shah et al. 2024). One thread of the last warpgroup keeps copies of queries,
// keys and values under way; each other warpgroup has 64 queries. While a group computes the softmax of a block of keys, its product of
// weights and values of the block before runs; the groups take turns at starting products.
#pragma once

#include "heed/attention/hopper_table.cuh"

namespace heed::cuda {

struct ForwardMaps {
  CUtensorMap q, k, v, query_features, key_features;
};

template <int D_, int kGroups_, int kKeys_, int kStages_, class Term_>
struct ForwardTile {
  using Term = Term_;
  static constexpr int D = D_, kGroups = kGroups_, kKeys = kKeys_, kStages = kStages_;
  static constexpr bool kPersistent = !Term::kMask && D <= 64;  // at D 128 overlapping tiles cost the prototype 4%
  static constexpr int kQueries = 64 * kGroups, kThreads = 128 * (kGroups + 1);
  static constexpr int kRegisters = kGroups == 2 ? 240 : 160, kProducerRegisters = kGroups == 2 ? 24 : 32;
  static constexpr int kWidth = D < 64 ? 64 : D;  // in shared memory: narrower rows are filled with zeros
  static constexpr int kQueryBytes = kQueries * kWidth * 2, kKeyBytes = kKeys * kWidth * 2, kSlabs = kWidth / 64;
  static constexpr int kQuerySlab = kQueries * 128, kKeySlab = kKeys * 128;
  static constexpr int kQueryFeatureBytes = Term::kFeatures ? kQueries * 32 : 0, kKeyFeatureBytes = Term::kFeatures ? kKeys * 32 : 0;
  static constexpr int kSliceBytes = 8 * kSlice<Term, kQueries, kKeys>, kSliceFloats = kSliceCopies<Term, kQueries, kKeys>;
  static constexpr int kQueryStages = 2 * kQueryBytes + kStages * 2 * kKeyBytes > 225000 ? 1 : 2;
  static constexpr int kShared =
      kQueryStages * (kQueryBytes + kQueryFeatureBytes) + kStages * (2 * kKeyBytes + kKeyFeatureBytes + 4 * kSliceFloats) + 256;
  static_assert(kShared <= kMostShared);
};

template <class T>
struct ForwardShared {
  uint8_t *q, *k, *v, *query_features, *key_features;
  float* slices;
  Barrier *q_full, *q_free, *k_full, *k_free, *v_full, *v_free;

  __device__ __forceinline__ explicit ForwardShared(uint8_t* base) {
    q = base;
    k = q + T::kQueryStages * T::kQueryBytes;
    v = k + T::kStages * T::kKeyBytes;
    query_features = v + T::kStages * T::kKeyBytes;
    key_features = query_features + T::kQueryStages * T::kQueryFeatureBytes;
    slices = reinterpret_cast<float*>(key_features + T::kStages * T::kKeyFeatureBytes);
    q_full = reinterpret_cast<Barrier*>(slices + T::kStages * T::kSliceFloats);
    q_free = q_full + 2;
    k_full = q_free + 2;
    k_free = k_full + T::kStages;
    v_full = k_free + T::kStages;
    v_free = v_full + T::kStages;
  }
  __device__ __forceinline__ void init_barriers() const {
    for (int s = 0; s < 2; ++s) {
      q_full[s].init(1);
      q_free[s].init(T::kGroups);
    }
    for (int s = 0; s < T::kStages; ++s) {
      k_full[s].init(1);
      v_full[s].init(1);
      k_free[s].init(T::kGroups);
      v_free[s].init(T::kGroups);
    }
    publish_barriers();
  }
};

// Blocks of keys are taken from the last to the first.
template <class T>
__device__ __forceinline__ void forward_copies(const ForwardShared<T>& shared, const ForwardMaps& maps, const HopperSizes& z,
                                               const typename T::Term& term, int tiles) {
  using Term = typename T::Term;
  RingPlace<T::kStages> at;
  RingPlace<T::kQueryStages> q_at;
  for (int t = blockIdx.x; t < tiles; t += gridDim.x, q_at.advance()) {
    const QueryTile x = query_tile<T::kQueries, T::kKeys, false>(t, z, term);
    const int key_head = x.h / z.heads_per_key_head();
    Barrier& q_full = shared.q_full[q_at.index];
    shared.q_free[q_at.index].wait(q_at.parity ^ 1);
    q_full.expect(T::kQueryBytes + T::kQueryFeatureBytes);
    for (int s = 0; s < T::kSlabs; ++s)
      load_box(shared.q + q_at.index * T::kQueryBytes + s * T::kQuerySlab, maps.q, q_full, 64 * s, x.i0, x.h, x.b);
    if constexpr (Term::kFeatures)
      load_box(shared.query_features + q_at.index * T::kQueryFeatureBytes, maps.query_features, q_full, 0, x.i0, x.h, 0);
    for (int n = x.blocks - 1; n >= 0; --n, at.advance()) {
      const int j0 = n * T::kKeys;
      Barrier &k_full = shared.k_full[at.index], &v_full = shared.v_full[at.index];
      shared.k_free[at.index].wait(at.parity ^ 1);
      k_full.expect(T::kKeyBytes + T::kKeyFeatureBytes + T::kSliceBytes);
      if constexpr (Term::kTable)
        load_slice<Term, T::kQueries, T::kKeys>(shared.slices + at.index * T::kSliceFloats, term, x.h, false, x.i0, j0, k_full);
      for (int s = 0; s < T::kSlabs; ++s)
        load_box(shared.k + at.index * T::kKeyBytes + s * T::kKeySlab, maps.k, k_full, 64 * s, j0, key_head, x.b);
      if constexpr (Term::kFeatures) load_box(shared.key_features + at.index * T::kKeyFeatureBytes, maps.key_features, k_full, 0, j0, 0, 0);
      shared.v_free[at.index].wait(at.parity ^ 1);
      v_full.expect(T::kKeyBytes);
      for (int s = 0; s < T::kSlabs; ++s)
        load_box(shared.v + at.index * T::kKeyBytes + s * T::kKeySlab, maps.v, v_full, 64 * s, j0, key_head, x.b);
    }
  }
}

// The softmax of a thread's two rows, block by block.
template <int kKeys>
struct SoftmaxOfRows {
  float row_max[2], row_sum[2], rescale[2];  // rescale: what earlier sums are multiplied by after the last block

  __device__ __forceinline__ void clear() {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      row_max[r] = -INFINITY;
      row_sum[r] = 0;
    }
  }
  // Scores become weights, 2^(scale (s - row_max)). The sum is over the thread's own columns; the rows' sums are joined at the end.
  __device__ __forceinline__ void add(float (&s)[kKeys / 2], float scale) {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      float largest = row_max[r];
#pragma unroll
      for (int n = 0; n < kKeys / 8; ++n) largest = fmaxf(largest, fmaxf(s[4 * n + 2 * r], s[4 * n + 2 * r + 1]));
      largest = quad_max(largest);
      const float shift = largest == -INFINITY ? 0.0f : largest * scale;
      rescale[r] = exp2_fast(row_max[r] * scale - shift);
      row_max[r] = largest;
      float sum = 0;
#pragma unroll
      for (int n = 0; n < kKeys / 8; ++n)
#pragma unroll
        for (int e = 0; e < 2; ++e) {
          float& weight = s[4 * n + 2 * r + e];
          weight = exp2_fast(fmaf(weight, scale, -shift));
          sum += weight;
        }
      row_sum[r] = fmaf(row_sum[r], rescale[r], sum);
    }
  }
};

template <class T>
__global__ void __launch_bounds__(T::kThreads, 1)
    hopper_forward(const __grid_constant__ ForwardMaps maps, const TokenRows out, float* __restrict__ log_sum, const HopperSizes z,
                   const typename T::Term term) {
  using Term = typename T::Term;
  constexpr int D = T::D, kKeys = T::kKeys, kGroups = T::kGroups;
  const ForwardShared<T> shared(tile_memory());
  if (threadIdx.x == 0) shared.init_barriers();
  __syncthreads();
  const int group = threadIdx.x / 128, tiles = divide_up(z.N, T::kQueries) * z.B * z.H;
  if (group == kGroups) {
    lower_registers<T::kProducerRegisters>();
    if (threadIdx.x == 128 * kGroups) forward_copies(shared, maps, z, term, tiles);
    return;
  }

  raise_registers<T::kRegisters>();
  const SumPlace place;
  const bool speaker = threadIdx.x % 128 == 0;  // for its group
  const uint32_t q = shared_address(shared.q) + group * 64 * 128, k = shared_address(shared.k), v = shared_address(shared.v);
  const uint32_t query_features = shared_address(shared.query_features) + group * 64 * 32,
                 key_features = shared_address(shared.key_features);
  RingPlace<T::kStages> k_at, v_at;
  RingPlace<T::kQueryStages> q_at;
  float o[D / 2], s[kKeys / 2];
  uint32_t p[kKeys / 4];
  SoftmaxOfRows<kKeys> softmax;
  QueryTile x;
  int i;  // the thread's first query

  const auto my_turn = [&] { sync_threads(1 + group, 256); };
  const auto next_turn = [&] { arrive_threads(1 + (group + 1) % kGroups, 256); };
  const auto begin = [&](int t) {
    x = query_tile<T::kQueries, kKeys, false>(t, z, term);
    i = x.i0 + group * 64 + place.row;
    softmax.clear();
  };
  [[maybe_unused]] const float* slice = shared.slices;
  if constexpr (Term::kTable) slice += slice_start<Term, T::kQueries, kKeys>(group * 64 + place.row, place.column);
  const auto initial_scores = [&] {
    if constexpr (Term::kTable) slice_to_sums<Term>(s, slice + k_at.index * T::kSliceFloats);
  };
  const auto scores = [&] {
    multiply_along<kKeys, D>(s, q + q_at.index * T::kQueryBytes, T::kQuerySlab, k + k_at.index * T::kKeyBytes, T::kKeySlab, Term::kTable);
    if constexpr (Term::kFeatures)
      Wgmma<kKeys, false>::from_shared(s, narrow_tile(query_features + q_at.index * T::kQueryFeatureBytes),
                                       narrow_tile(key_features + k_at.index * T::kKeyFeatureBytes), true);
    commit_products();
  };
  const auto add_values = [&](bool add) {
    multiply_across<D, kKeys>(o, p, v + v_at.index * T::kKeyBytes, T::kKeySlab, add);
    commit_products();
  };
  // Only a tile's last block, the first one taken, has keys past the end.
  const auto mask = [&](int j0, bool last_block) {
    const bool past_end = last_block && j0 + kKeys > x.keys, masked = Term::kMask && !term.sees_all(x.i0 + group * 64, j0 + kKeys);
    if (past_end || masked) {
      const int keys_left = x.keys - j0 - place.column, most_ahead = term.most_ahead - (j0 + place.column - i);
#pragma unroll
      for (int n = 0; n < kKeys / 2; ++n) {
        const int j = 8 * (n / 4) + n % 2, row = 8 * (n / 2 % 2);
        if ((last_block && j >= keys_left) || (Term::kMask && j - row > most_ahead)) s[n] = -INFINITY;
      }
    }
  };
  const auto k_done = [&] {
    if (speaker) shared.k_free[k_at.index].arrive();
    k_at.advance();
  };
  const auto v_done = [&] {
    if (speaker) shared.v_free[v_at.index].arrive();
    v_at.advance();
  };
  const auto finish = [&](const QueryTile& tile, int row, const float(&row_max)[2], const float(&row_sum)[2]) {
    RowTarget rows[2];
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const int query = row + 8 * r;
      const float sum = quad_sum(row_sum[r]);
      rows[r] = {out.at<Bf16>(tile.b, tile.h, query), sum > 0 ? 1 / sum : 0.0f, query < z.N, false};
      if (place.column == 0 && query < z.N)
        log_sum[(static_cast<int64_t>(tile.b) * z.H + tile.h) * z.N + query] =
            sum > 0 ? fmaf(row_max[r], z.scale, log2f(sum)) * kLogE2 : INFINITY;
    }
    store_rows<D>(o, rows);
  };

  if (group == kGroups - 1) arrive_threads(1, 256);
  begin(blockIdx.x);
  shared.q_full[q_at.index].wait(q_at.parity);
  shared.k_full[k_at.index].wait(k_at.parity);
  initial_scores();
  my_turn();
  pin(s);
  fence_products();
  scores();
  next_turn();
  wait_products<0>();
  pin(s);
  k_done();
  mask((x.blocks - 1) * kKeys, true);
  softmax.add(s, z.scale);
  pack_factor<kKeys / 2>(p, s);
  for (int t = blockIdx.x;;) {
    bool add = false;
    for (int n = x.blocks - 2; n >= 0; --n) {
      shared.k_full[k_at.index].wait(k_at.parity);
      initial_scores();
      my_turn();
      pin(s);
      pin(o);
      pin(p);
      fence_products();
      scores();
      shared.v_full[v_at.index].wait(v_at.parity);
      add_values(add);
      add = true;
      next_turn();
      wait_products<1>();
      pin(s);
      k_done();
      mask(n * kKeys, false);
      softmax.add(s, z.scale);
      wait_products<0>();
      pin(o);
      pin(p);
      v_done();
#pragma unroll
      for (int d = 0; d < D / 2; ++d) o[d] *= softmax.rescale[d / 2 % 2];
      pack_factor<kKeys / 2>(p, s);
    }
    if constexpr (!T::kPersistent) break;
    if (speaker) shared.q_free[q_at.index].arrive();
    q_at.advance();
    t += gridDim.x;
    if (t >= tiles) break;
    // The last values of this tile are added while the first scores of the next one are computed.
    const QueryTile old = x;
    const int old_i = i;
    const float old_max[2] = {softmax.row_max[0], softmax.row_max[1]}, old_sum[2] = {softmax.row_sum[0], softmax.row_sum[1]};
    begin(t);
    shared.q_full[q_at.index].wait(q_at.parity);
    shared.k_full[k_at.index].wait(k_at.parity);
    initial_scores();
    my_turn();
    pin(s);
    pin(o);
    pin(p);
    fence_products();
    scores();
    shared.v_full[v_at.index].wait(v_at.parity);
    add_values(add);
    next_turn();
    wait_products<1>();
    pin(s);
    k_done();
    mask((x.blocks - 1) * kKeys, true);
    softmax.add(s, z.scale);
    wait_products<0>();
    pin(o);
    pin(p);
    v_done();
    finish(old, old_i, old_max, old_sum);
    pack_factor<kKeys / 2>(p, s);
  }
  shared.v_full[v_at.index].wait(v_at.parity);
  pin(o);
  pin(p);
  fence_products();
  add_values(x.blocks > 1);
  wait_products<0>();
  pin(o);
  finish(x, i, softmax.row_max, softmax.row_sum);
}

}  // namespace heed::cuda
