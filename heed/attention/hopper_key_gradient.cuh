// The second pass of hopper_backward.cuh: two warpgroups with 64 keys each, over blocks of queries, of all heads that share the keys.
#pragma once

#include "heed/attention/hopper_backward.cuh"

namespace heed::cuda {

template <int D_, int kQueries_, int kStages_, class Term_>
struct KeyGradientTile {
  using Term = Term_;
  static constexpr int D = D_, kQueries = kQueries_, kStages = kStages_, kKeys = hopper::kKeyTile, kThreads = 384;
  static constexpr bool kPersistent = !Term::kMask;  // a block loops over tiles
  static constexpr int kWidth = D < 64 ? 64 : D, kSlabs = kWidth / 64;
  static constexpr int kQueryBytes = kQueries * kWidth * 2, kKeyBytes = kKeys * kWidth * 2;
  static constexpr int kQuerySlab = kQueries * 128, kKeySlab = kKeys * 128;
  static constexpr int kQueryFeatureBytes = Term::kFeatures ? kQueries * 32 : 0, kKeyFeatureBytes = Term::kFeatures ? kKeys * 32 : 0;
  static constexpr int kSliceBytes = 8 * kSlice<Term, kKeys, kQueries>, kSliceFloats = kSliceCopies<Term, kKeys, kQueries>;
  static constexpr int kStatisticBytes = kQueries * 4;  // each
  static constexpr int kShared =
      2 * kKeyBytes + kKeyFeatureBytes + kStages * (2 * kQueryBytes + kQueryFeatureBytes + 4 * kSliceFloats + 2 * kStatisticBytes) + 256;
  static constexpr bool kHeld = D <= 64;  // keys and values stay in registers, their place in shared memory is free at once
  static_assert(kShared <= kMostShared);
};

template <class T>
struct KeyGradientShared {
  uint8_t *k, *v, *q, *g, *key_features, *query_features;
  float *log_sum, *delta, *slices;
  Barrier *k_full, *k_free, *full, *free;

  __device__ __forceinline__ explicit KeyGradientShared(uint8_t* base) {
    k = base;
    v = k + T::kKeyBytes;
    q = v + T::kKeyBytes;
    g = q + T::kStages * T::kQueryBytes;
    key_features = g + T::kStages * T::kQueryBytes;
    query_features = key_features + T::kKeyFeatureBytes;
    log_sum = reinterpret_cast<float*>(query_features + T::kStages * T::kQueryFeatureBytes);
    delta = log_sum + T::kStages * T::kQueries;
    slices = delta + T::kStages * T::kQueries;
    k_full = reinterpret_cast<Barrier*>(slices + T::kStages * T::kSliceFloats);
    k_free = k_full + 1;
    full = k_free + 1;
    free = full + T::kStages;
  }
  __device__ __forceinline__ void init_barriers() const {
    k_full->init(1);
    k_free->init(2);
    for (int s = 0; s < T::kStages; ++s) {
      full[s].init(1);
      free[s].init(2);
    }
    publish_barriers();
  }
};

template <class T>
__device__ __forceinline__ void key_gradient_copies(const KeyGradientShared<T>& shared, const BackwardMaps& maps,
                                                    const RowStatistics& statistics, const HopperSizes& z, const typename T::Term& term,
                                                    int tiles) {
  using Term = typename T::Term;
  RingPlace<T::kStages> at;
  int k_parity = 1;
  for (int t = blockIdx.x; t < tiles; t += gridDim.x, k_parity ^= 1) {
    const KeyTile x = key_tile<T::kKeys, T::kQueries>(t, z, term);
    shared.k_free->wait(k_parity);
    shared.k_full->expect(2 * T::kKeyBytes + T::kKeyFeatureBytes);
    if constexpr (Term::kFeatures) load_box(shared.key_features, maps.key_features, *shared.k_full, 0, x.j0, 0, 0);
    for (int s = 0; s < T::kSlabs; ++s) {
      load_box(shared.k + s * T::kKeySlab, maps.k, *shared.k_full, 64 * s, x.j0, x.g, x.b);
      load_box(shared.v + s * T::kKeySlab, maps.v, *shared.k_full, 64 * s, x.j0, x.g, x.b);
    }
    const int group = z.heads_per_key_head();
    for (int h = x.g * group; h < (x.g + 1) * group; ++h) {
      const int64_t row = (static_cast<int64_t>(x.b) * z.H + h) * statistics.stride;
      for (int n = 0; n < x.blocks; ++n, at.advance()) {
        const int i0 = (x.first + n) * T::kQueries;
        Barrier& full = shared.full[at.index];
        shared.free[at.index].wait(at.parity ^ 1);
        full.expect(2 * T::kQueryBytes + T::kQueryFeatureBytes + T::kSliceBytes + 2 * T::kStatisticBytes);
        if constexpr (Term::kTable)
          load_slice<Term, T::kKeys, T::kQueries>(shared.slices + at.index * T::kSliceFloats, term, h, true, x.j0, i0, full);
        if constexpr (Term::kFeatures)
          load_box(shared.query_features + at.index * T::kQueryFeatureBytes, maps.query_features, full, 0, i0, h, 0);
        for (int s = 0; s < T::kSlabs; ++s) {
          const int to = at.index * T::kQueryBytes + s * T::kQuerySlab;
          load_box(shared.q + to, maps.q, full, 64 * s, i0, h, x.b);
          load_box(shared.g + to, maps.g, full, 64 * s, i0, h, x.b);
        }
        load_bytes(shared.log_sum + at.index * T::kQueries, statistics.log_sum + row + i0, T::kStatisticBytes, full);
        load_bytes(shared.delta + at.index * T::kQueries, statistics.delta + row + i0, T::kStatisticBytes, full);
      }
    }
  }
}

template <class T>
__global__ void __launch_bounds__(T::kThreads, 1)
    hopper_key_gradient(const __grid_constant__ BackwardMaps maps, const TokenRows dk, const TokenRows dv, const RowStatistics statistics,
                        const HopperSizes z, const typename T::Term term) {
  using Term = typename T::Term;
  constexpr int D = T::D, kQueries = T::kQueries;
  const KeyGradientShared<T> shared(tile_memory());
  if (threadIdx.x == 0) shared.init_barriers();
  __syncthreads();
  const int group = threadIdx.x / 128, tiles = divide_up(z.M, T::kKeys) * z.B * z.G;
  if (group == 2) {
    lower_registers<24>();
    if (threadIdx.x == 256) key_gradient_copies(shared, maps, statistics, z, term, tiles);
    return;
  }

  raise_registers<240>();
  const SumPlace place;
  const bool speaker = threadIdx.x % 128 == 0;
  const uint32_t k = shared_address(shared.k) + group * 64 * 128, v = shared_address(shared.v) + group * 64 * 128;
  const uint32_t q = shared_address(shared.q), g = shared_address(shared.g);
  const uint32_t key_features = shared_address(shared.key_features) + group * 64 * 32,
                 query_features = shared_address(shared.query_features);
  RingPlace<T::kStages> at;
  int k_parity = 0;
  [[maybe_unused]] const float* slice = shared.slices;
  if constexpr (Term::kTable) slice += slice_start<Term, T::kKeys, kQueries>(group * 64 + place.row, place.column);
  if (group == 1) arrive_threads(1, 256);
  const auto my_turn = [&] { sync_threads(1 + group, 256); };
  const auto next_turn = [&] { arrive_threads(1 + (group ^ 1), 256); };

  for (int t = blockIdx.x; t < tiles; t += gridDim.x, k_parity ^= 1) {
    const KeyTile x = key_tile<T::kKeys, kQueries>(t, z, term);
    const int steps = x.blocks * z.heads_per_key_head();
    [[maybe_unused]] int i0 = x.first * kQueries;  // of the current block; each head begins there again
    float s[kQueries / 2], dp[kQueries / 2], k_sum[D / 2], v_sum[D / 2];
    uint32_t p[kQueries / 4], ds[kQueries / 4];
    [[maybe_unused]] uint32_t held_k[T::kHeld ? D / 4 : 4], held_v[T::kHeld ? D / 4 : 4], held_features[4];
    shared.k_full->wait(k_parity);
    if constexpr (T::kHeld) {
      load_factor<D>(held_k, k, T::kKeySlab);
      load_factor<D>(held_v, v, T::kKeySlab);
      if constexpr (Term::kFeatures) {
        load_narrow_factor(held_features, key_features);
        pin(held_features);
      }
      pin(held_k);
      pin(held_v);
      sync_threads(4 + group, 128);
      if (speaker) shared.k_free->arrive();
    }
    const auto initial_scores = [&] {
      if constexpr (Term::kTable) slice_to_sums<Term>(s, slice + at.index * T::kSliceFloats);
    };
    const auto products = [&] {
      const uint32_t q_tile = q + at.index * T::kQueryBytes, g_tile = g + at.index * T::kQueryBytes;
      const uint64_t features = narrow_tile(query_features + at.index * T::kQueryFeatureBytes);
      if constexpr (T::kHeld) {
        multiply_along<kQueries, D>(s, held_k, q_tile, T::kQuerySlab, Term::kTable);
        if constexpr (Term::kFeatures) Wgmma<kQueries, false>::from_registers(s, held_features, features, true);
        commit_products();
        multiply_along<kQueries, D>(dp, held_v, g_tile, T::kQuerySlab);
      } else {
        multiply_along<kQueries, D>(s, k, T::kKeySlab, q_tile, T::kQuerySlab, Term::kTable);
        if constexpr (Term::kFeatures) Wgmma<kQueries, false>::from_shared(s, narrow_tile(key_features), features, true);
        commit_products();
        multiply_along<kQueries, D>(dp, v, T::kKeySlab, g_tile, T::kQuerySlab);
      }
      commit_products();
    };
    const auto free_previous = [&] {
      if (speaker) shared.free[(at.index + T::kStages - 1) % T::kStages].arrive();
    };
    shared.full[at.index].wait(at.parity);
    initial_scores();
    my_turn();
    pin(s);
    pin(dp);
    fence_products();
    products();
    next_turn();

    // Step n, whose products run; starts those of the next.
    const auto step = [&](int n, auto is_last) {
      constexpr bool kLast = decltype(is_last)::value;
      const int now = at.index;
      wait_products<0>();
      pin(s);
      pin(dp);
      pin(k_sum);
      pin(v_sum);
      if (n > 0) free_previous();
      const float *log_sum = shared.log_sum + now * kQueries + place.column, *delta = shared.delta + now * kQueries + place.column;
      [[maybe_unused]] const int j0 = x.j0 + group * 64;
      [[maybe_unused]] const int most_ahead = term.most_ahead - (j0 + place.row - i0 - place.column);
      const bool masked = Term::kMask && !term.sees_all(i0, j0 + 64);
#pragma unroll
      for (int m = 0; m < kQueries / 8; ++m) {
        const float2 sums = *reinterpret_cast<const float2*>(log_sum + 8 * m);
#pragma unroll
        for (int e = 0; e < 4; ++e) {
          float& weight = s[4 * m + e];
          weight = exp2_fast(fmaf(weight, z.scale, e % 2 ? -sums.y : -sums.x));
          if (masked && 8 * (e / 2) - 8 * m - e % 2 > most_ahead) weight = 0;
        }
      }
      pack_factor<kQueries / 2>(p, s);
#pragma unroll
      for (int m = 0; m < kQueries / 8; ++m) {
        const float2 deltas = *reinterpret_cast<const float2*>(delta + 8 * m);
#pragma unroll
        for (int e = 0; e < 4; ++e) s[4 * m + e] *= dp[4 * m + e] - (e % 2 ? deltas.y : deltas.x);
      }
      pack_factor<kQueries / 2>(ds, s);
      if constexpr (Term::kMask) i0 = i0 + kQueries < z.N ? i0 + kQueries : x.first * kQueries;
      at.advance();
      if constexpr (!kLast) {
        shared.full[at.index].wait(at.parity);
        initial_scores();
      }
      my_turn();
      pin(p);
      pin(ds);
      pin(s);
      pin(dp);
      pin(k_sum);
      pin(v_sum);
      fence_products();
      multiply_across<D, kQueries>(v_sum, p, g + now * T::kQueryBytes, T::kQuerySlab, n > 0);
      multiply_across<D, kQueries>(k_sum, ds, q + now * T::kQueryBytes, T::kQuerySlab, n > 0);
      if constexpr (kLast) {
        commit_products();
      } else {
        products();
      }
      next_turn();
    };
    for (int n = 0; n < steps - 1; ++n) step(n, std::false_type{});
    step(steps - 1, std::true_type{});
    wait_products<0>();
    pin(k_sum);
    pin(v_sum);
    free_previous();
    if (!T::kHeld && speaker) shared.k_free->arrive();

    // A key that no query sees, past the item's length, takes no gradient.
    const KeyTile y = key_tile<T::kKeys, kQueries>(recomputed(t), z, term);
    RowTarget v_rows[2], k_rows[2];
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const int key = y.j0 + group * 64 + place.row + 8 * r;
      v_rows[r] = {dv.at<Bf16>(y.b, y.g, key), 1.0f, key < z.M, key >= y.keys};
      k_rows[r] = {dk.at<Bf16>(y.b, y.g, key), z.beta, key < z.M, key >= y.keys};
    }
    store_rows<D>(v_sum, v_rows);
    store_rows<D>(k_sum, k_rows);
  }
}

}  // namespace heed::cuda
