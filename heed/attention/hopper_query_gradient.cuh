// The first pass of hopper_backward.cuh: two warpgroups with 64 queries each, over blocks of keys from the last to the first.
#pragma once

#include "heed/attention/hopper_backward.cuh"

namespace heed::cuda {

template <int D_, int kKeys_, int kStages_, class Term_>
struct QueryGradientTile {
  using Term = Term_;
  using Sums = Diagonals<Term::kWidth>;
  static constexpr int D = D_, kKeys = kKeys_, kStages = kStages_, kQueries = hopper::kQueryTile, kThreads = 384;
  static constexpr bool kPersistent = !Term::kMask;  // a block loops over tiles
  static constexpr int kWidth = D < 64 ? 64 : D, kSlabs = kWidth / 64;
  static constexpr int kQueryBytes = kQueries * kWidth * 2, kKeyBytes = kKeys * kWidth * 2;
  static constexpr int kQuerySlab = kQueries * 128, kKeySlab = kKeys * 128;
  static constexpr int kQueryFeatureBytes = Term::kFeatures ? kQueries * 32 : 0, kKeyFeatureBytes = Term::kFeatures ? kKeys * 32 : 0;
  static constexpr int kSliceBytes = 8 * kSlice<Term, kQueries, kKeys>, kSliceFloats = kSliceCopies<Term, kQueries, kKeys>;
  static constexpr int kDiagonalFloats = Term::kTable ? 2 * Sums::kFloats : 0;
  static constexpr int kQueryStages = D == 128 && Term::kFeatures ? 1 : 2;
  static constexpr int kShared = kQueryStages * (2 * kQueryBytes + kQueryFeatureBytes) +
                                 kStages * (2 * kKeyBytes + kKeyFeatureBytes + 4 * kSliceFloats) + 4 * kDiagonalFloats + 256;
  static constexpr int kProducerRegisters = Term::kTable ? 56 : 24, kRegisters = Term::kTable ? 224 : 240;
  static_assert(kShared <= kMostShared && (!Term::kTable || kKeys == Sums::kKeys));

  static __device__ __forceinline__ QueryTile tile(int t, const HopperSizes& z, const Term& term) {
    return query_tile<kQueries, kKeys, Term::kTable>(t, z, term);  // sums along diagonals are written for all keys
  }
};

template <class T>
struct QueryGradientShared {
  uint8_t *q, *g, *k, *v, *query_features, *key_features;
  float *slices, *diagonals;
  Barrier *q_full, *q_free, *full, *free, *diagonals_full, *diagonals_free;

  __device__ __forceinline__ explicit QueryGradientShared(uint8_t* base) {
    q = base;
    g = q + T::kQueryStages * T::kQueryBytes;
    k = g + T::kQueryStages * T::kQueryBytes;
    v = k + T::kStages * T::kKeyBytes;
    query_features = v + T::kStages * T::kKeyBytes;
    key_features = query_features + T::kQueryStages * T::kQueryFeatureBytes;
    slices = reinterpret_cast<float*>(key_features + T::kStages * T::kKeyFeatureBytes);
    diagonals = slices + T::kStages * T::kSliceFloats;
    q_full = reinterpret_cast<Barrier*>(diagonals + T::kDiagonalFloats);
    q_free = q_full + 2;
    diagonals_full = q_free + 2;
    diagonals_free = diagonals_full + 2;
    full = diagonals_free + 2;
    free = full + T::kStages;
  }
  __device__ __forceinline__ void init_barriers() const {
    for (int s = 0; s < 2; ++s) {
      q_full[s].init(1);
      q_free[s].init(2);
      diagonals_full[s].init(4);  // warps of a group
      diagonals_free[s].init(3);  // adding warps
    }
    for (int s = 0; s < T::kStages; ++s) {
      full[s].init(1);
      free[s].init(2);
    }
    publish_barriers();
  }
};

template <class T>
__device__ __forceinline__ void query_gradient_copies(const QueryGradientShared<T>& shared, const BackwardMaps& maps, const HopperSizes& z,
                                                      const typename T::Term& term, int tiles) {
  using Term = typename T::Term;
  RingPlace<T::kStages> at;
  RingPlace<T::kQueryStages> q_at;
  for (int t = blockIdx.x; t < tiles; t += gridDim.x, q_at.advance()) {
    const QueryTile x = T::tile(t, z, term);
    const int key_head = x.h / z.heads_per_key_head();
    Barrier& q_full = shared.q_full[q_at.index];
    shared.q_free[q_at.index].wait(q_at.parity ^ 1);
    q_full.expect(2 * T::kQueryBytes + T::kQueryFeatureBytes);
    if constexpr (Term::kFeatures)
      load_box(shared.query_features + q_at.index * T::kQueryFeatureBytes, maps.query_features, q_full, 0, x.i0, x.h, 0);
    for (int s = 0; s < T::kSlabs; ++s) {
      const int to = q_at.index * T::kQueryBytes + s * T::kQuerySlab;
      load_box(shared.q + to, maps.q, q_full, 64 * s, x.i0, x.h, x.b);
      load_box(shared.g + to, maps.g, q_full, 64 * s, x.i0, x.h, x.b);
    }
    for (int n = x.blocks - 1; n >= 0; --n, at.advance()) {
      const int j0 = n * T::kKeys;
      Barrier& full = shared.full[at.index];
      shared.free[at.index].wait(at.parity ^ 1);
      full.expect(2 * T::kKeyBytes + T::kKeyFeatureBytes + T::kSliceBytes);
      if constexpr (Term::kTable)
        load_slice<Term, T::kQueries, T::kKeys>(shared.slices + at.index * T::kSliceFloats, term, x.h, false, x.i0, j0, full);
      if constexpr (Term::kFeatures) load_box(shared.key_features + at.index * T::kKeyFeatureBytes, maps.key_features, full, 0, j0, 0, 0);
      for (int s = 0; s < T::kSlabs; ++s) {
        const int to = at.index * T::kKeyBytes + s * T::kKeySlab;
        load_box(shared.k + to, maps.k, full, 64 * s, j0, key_head, x.b);
        load_box(shared.v + to, maps.v, full, 64 * s, j0, key_head, x.b);
      }
    }
  }
}

// parts: with features (B, H, tiles, 8 warps, 3), with a table (B, H, tiles, 2 groups, diagonal_count)
template <class T>
__global__ void __launch_bounds__(T::kThreads, 1)
    hopper_query_gradient(const __grid_constant__ BackwardMaps maps, const TokenRows dq, const RowStatistics statistics,
                          float* __restrict__ parts, const HopperSizes z, const typename T::Term term) {
  using Term = typename T::Term;
  using Sums = typename T::Sums;
  constexpr int D = T::D, kKeys = T::kKeys;
  const QueryGradientShared<T> shared(tile_memory());
  if (threadIdx.x == 0) shared.init_barriers();
  if constexpr (Term::kTable)  // places that no thread writes
    for (int n = threadIdx.x; n < T::kDiagonalFloats; n += T::kThreads) shared.diagonals[n] = 0;
  __syncthreads();
  const int group = threadIdx.x / 128, tiles_per_head = divide_up(z.N, T::kQueries), tiles = tiles_per_head * z.B * z.H;
  if (group == 2) {
    lower_registers<T::kProducerRegisters>();
    if (threadIdx.x == 256) query_gradient_copies(shared, maps, z, term, tiles);
    if constexpr (Term::kTable) {
      if (threadIdx.x >= 288) {
        const int blocks = divide_up(z.M, kKeys), count = static_cast<int>(hopper::diagonal_count(z.M, Term::kWidth));
        int parity = 0;
        for (int t = blockIdx.x; t < tiles; t += gridDim.x)  // tiles are numbered as parts are stored
          add_diagonals<Term::kWidth>(shared.diagonals, shared.diagonals_full, shared.diagonals_free, parity, threadIdx.x / 32 - 9, blocks,
                                      parts + static_cast<int64_t>(t) * 2 * count, count);
      }
    }
    return;
  }

  raise_registers<T::kRegisters>();
  const SumPlace place;
  const int lane = threadIdx.x % 32;
  const bool speaker = threadIdx.x % 128 == 0;
  const uint32_t q = shared_address(shared.q) + group * 64 * 128, g = shared_address(shared.g) + group * 64 * 128;
  const uint32_t k = shared_address(shared.k), v = shared_address(shared.v);
  const uint32_t query_features = shared_address(shared.query_features) + group * 64 * 32,
                 key_features = shared_address(shared.key_features);
  RingPlace<T::kStages> at;
  RingPlace<T::kQueryStages> q_at;
  [[maybe_unused]] const float* slice = shared.slices;
  [[maybe_unused]] float* diagonals = shared.diagonals;
  [[maybe_unused]] int diagonals_parity = 1;
  if constexpr (Term::kTable) {
    slice += slice_start<Term, T::kQueries, kKeys>(group * 64 + place.row, place.column);
    diagonals += group * Sums::kFloats + Sums::thread_start(threadIdx.x % 128 / 32, lane);
  }
  if (group == 1) arrive_threads(1, 256);
  const auto my_turn = [&] { sync_threads(1 + group, 256); };
  const auto next_turn = [&] { arrive_threads(1 + (group ^ 1), 256); };

  for (int t = blockIdx.x; t < tiles; t += gridDim.x, q_at.advance()) {
    const QueryTile x = T::tile(t, z, term);
    const int i = x.i0 + group * 64 + place.row;
    float log_sum[2], delta[2];
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const int64_t row = (static_cast<int64_t>(x.b) * z.H + x.h) * statistics.stride + i + 8 * r;
      log_sum[r] = statistics.log_sum[row];
      delta[r] = statistics.delta[row];
    }
    float s[kKeys / 2], dp[kKeys / 2], sum[D / 2];
    [[maybe_unused]] float feature_sums[8];  // of dS times features of keys
    uint32_t ds[kKeys / 4];
    const auto initial_scores = [&] {
      if constexpr (Term::kTable) slice_to_sums<Term>(s, slice + at.index * T::kSliceFloats);
    };
    const auto products = [&] {
      multiply_along<kKeys, D>(s, q + q_at.index * T::kQueryBytes, T::kQuerySlab, k + at.index * T::kKeyBytes, T::kKeySlab, Term::kTable);
      if constexpr (Term::kFeatures)
        Wgmma<kKeys, false>::from_shared(s, narrow_tile(query_features + q_at.index * T::kQueryFeatureBytes),
                                         narrow_tile(key_features + at.index * T::kKeyFeatureBytes), true);
      multiply_along<kKeys, D>(dp, g + q_at.index * T::kQueryBytes, T::kQuerySlab, v + at.index * T::kKeyBytes, T::kKeySlab);
    };
    const auto free_previous = [&] {
      if (speaker) shared.free[(at.index + T::kStages - 1) % T::kStages].arrive();
    };
    shared.q_full[q_at.index].wait(q_at.parity);
    shared.full[at.index].wait(at.parity);
    initial_scores();
    my_turn();
    pin(s);
    pin(dp);
    fence_products();
    products();
    commit_products();
    next_turn();

    // Block n, whose products run; starts those of block n - 1.
    const auto step = [&](int n, auto is_last) {
      constexpr bool kLast = decltype(is_last)::value;
      const int j0 = n * kKeys;
      const bool add = n < x.blocks - 1;
      wait_products<0>();
      pin(s);
      pin(dp);
      pin(sum);
      if constexpr (Term::kFeatures) pin(feature_sums);
      if (add) free_previous();
      const bool masked = j0 + kKeys > x.keys || (Term::kMask && !term.sees_all(x.i0 + group * 64, j0 + kKeys));
      const int keys_left = x.keys - j0 - place.column;
      [[maybe_unused]] const int most_ahead = term.most_ahead - (j0 + place.column - i);
#pragma unroll
      for (int m = 0; m < kKeys / 2; ++m) {
        const int r = m / 2 % 2, j = 8 * (m / 4) + m % 2;
        float weight = exp2_fast(fmaf(s[m], z.scale, -log_sum[r]));
        if (masked && (j >= keys_left || (Term::kMask && j - 8 * r > most_ahead))) weight = 0;
        s[m] = weight * (dp[m] - delta[r]);
      }
      pack_factor<kKeys / 2>(ds, s);
      if constexpr (Term::kTable) {
        shared.diagonals_free[group].wait(diagonals_parity);
        Sums::put(diagonals, s, lane);
        __syncwarp();
        shared.diagonals_full[group].arrive_if(lane == 0);
        diagonals_parity ^= 1;
      }
      const int now = at.index;
      at.advance();
      if constexpr (!kLast) {
        shared.full[at.index].wait(at.parity);
        initial_scores();
      }
      my_turn();
      pin(ds);
      pin(sum);
      pin(s);
      pin(dp);
      fence_products();
      multiply_across<D, kKeys>(sum, ds, k + now * T::kKeyBytes, T::kKeySlab, add);
      if constexpr (Term::kFeatures) {
#pragma unroll
        for (int m = 0; m < kKeys / 16; ++m)
          Wgmma<16, true>::from_registers(feature_sums, ds + 4 * m, narrow_tile(key_features + now * T::kKeyFeatureBytes + m * 512),
                                          add || m > 0);
      }
      if constexpr (!kLast) products();
      commit_products();
      next_turn();
    };
    for (int n = x.blocks - 1; n > 0; --n) step(n, std::false_type{});
    step(0, std::true_type{});
    wait_products<0>();
    pin(sum);
    free_previous();
    if (speaker) shared.q_free[q_at.index].arrive();

    const QueryTile y = T::tile(recomputed(t), z, term);  // x again: it need not stay in registers
    const int first = y.i0 + group * 64 + place.row;
    if constexpr (Term::kFeatures) {
      pin(feature_sums);
      float sums[kGaussianSums] = {};
#pragma unroll
      for (int r = 0; r < 2; ++r)
        if (first + 8 * r < z.N)
          add_feature_sums(sums, feature_sums[2 * r], feature_sums[2 * r + 1], query_point(term, y.h, first + 8 * r), lane % 4);
      const int64_t tile = (static_cast<int64_t>(y.b) * z.H + y.h) * tiles_per_head + y.i0 / T::kQueries;
#pragma unroll
      for (int n = 0; n < kGaussianSums; ++n) {
        const float total = warp_sum(sums[n]);
        if (lane == 0) parts[(tile * 8 + threadIdx.x / 32) * kGaussianSums + n] = total;
      }
    }
    RowTarget rows[2];
#pragma unroll
    for (int r = 0; r < 2; ++r) rows[r] = {dq.at<Bf16>(y.b, y.h, first + 8 * r), z.beta, first + 8 * r < z.N, false};
    store_rows<D>(sum, rows);
  }
}

}  // namespace heed::cuda
