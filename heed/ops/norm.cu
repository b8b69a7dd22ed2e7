// Layer norm (Ba et al. 2016), with a residual added on the way, and rms norm (Zhang and Sennrich 2019). A row of whole 16-byte packs stays
// in the registers of a warp, or of a block if it is wide; other rows are read again from a cache. norm_backward.cu has the gradients.
#include "heed/ops/norm.cuh"

namespace heed::cuda {
namespace {

// One formula wherever y is computed: computed again, it has the same bits.
template <bool centred>
__device__ float scaled(float x, float mean, float rstd, float weight, float bias) {
  const float normal = __fmul_rn(__fsub_rn(x, mean), rstd);
  return centred ? fmaf(normal, weight, bias) : __fmul_rn(normal, weight);
}

// `values`: elements of a row that one thread holds.
template <class T, bool centred, class Group, int values>
__global__ void __launch_bounds__(std::is_same_v<Group, WarpGroup> ? 128 : kMostThreads) norm_rows(NormForward n) {
  wait_for_previous();
  allow_next();
  constexpr int size = Pack<T>::kCount, packs = values / size;
  __shared__ float scratch[32];
  const Group group(scratch);
  const int D = static_cast<int>(n.D);
  const auto place = [&](int p) { return (p * group.threads + group.thread) * size; };
  for (int64_t row = group.first_row(); row < n.rows; row += group.row_step()) {
    Floats<size> x[packs];
#pragma unroll
    for (int p = 0; p < packs; ++p) {
      x[p] = {};
      if (place(p) < D) x[p] = load_some<size>(static_cast<const T*>(n.x) + row * n.D + place(p));
    }
    float mean = 0, rstd = 0;
    if (n.known) {
      if constexpr (centred) mean = n.mean[row];
      rstd = n.rstd[row];
    } else {
      if (n.residual) {
#pragma unroll
        for (int p = 0; p < packs; ++p) {
          if (place(p) >= D) continue;
          const auto residual = load_some<size>(static_cast<const T*>(n.residual) + row * n.D + place(p));
#pragma unroll
          for (int k = 0; k < size; ++k) x[p].values[k] = rounded_to(x[p].values[k] + residual.values[k], T());
          store_some(static_cast<T*>(n.sum) + row * n.D + place(p), x[p]);
        }
      }
      if constexpr (centred) {
        float total = 0;
#pragma unroll
        for (int p = 0; p < packs; ++p)
#pragma unroll
          for (float v : x[p].values) total += v;
        mean = group.sum(total) / static_cast<float>(D);
      }
      float squares = 0;
#pragma unroll
      for (int p = 0; p < packs; ++p) {
        if (place(p) >= D) continue;
#pragma unroll
        for (float v : x[p].values) squares = fmaf(v - mean, v - mean, squares);
      }
      rstd = 1 / sqrtf(group.sum(squares) / static_cast<float>(D) + n.eps);
      if (group.thread == 0) {
        if constexpr (centred) n.mean[row] = mean;
        n.rstd[row] = rstd;
      }
    }
#pragma unroll
    for (int p = 0; p < packs; ++p) {
      const int i = place(p);
      if (i >= D) continue;
      const auto weight = load_some<size>(n.weight + i);
      Floats<size> bias{};
      if constexpr (centred) bias = load_some<size>(n.bias + i);
#pragma unroll
      for (int k = 0; k < size; ++k) x[p].values[k] = scaled<centred>(x[p].values[k], mean, rstd, weight.values[k], bias.values[k]);
      store_some(static_cast<T*>(n.y) + row * n.D + i, x[p]);
    }
  }
}

// The same for any width and any addresses.
template <class T, bool centred, class Group>
__global__ void norm_any_rows(NormForward n) {
  __shared__ float scratch[32];
  const Group group(scratch);
  const int64_t D = n.D;
  const bool add = n.residual && !n.known;
  for (int64_t row = group.first_row(); row < n.rows; row += group.row_step()) {
    const T *const given = static_cast<const T*>(n.x) + row * D, *const residual =
                                                                     add ? static_cast<const T*>(n.residual) + row * D : nullptr;
    T *const sum = add ? static_cast<T*>(n.sum) + row * D : nullptr, *const y = static_cast<T*>(n.y) + row * D;
    const T* const x = add ? sum : given;  // of sum, a thread reads what it wrote itself
    const int64_t head = unaligned_head(D, given, residual, static_cast<const T*>(sum), static_cast<const T*>(y));
    const auto each = [&](const auto& body) { for_elements<T>(D, head, group.thread, group.threads, body); };
    if (add)
      each([&](int64_t i, auto count) {
        auto a = load_some<count.value>(given + i);
        const auto b = load_some<count.value>(residual + i);
#pragma unroll
        for (int k = 0; k < count.value; ++k) a.values[k] += b.values[k];
        store_some(sum + i, a);
      });
    float mean = 0, rstd = 0;
    if (n.known) {
      if constexpr (centred) mean = n.mean[row];
      rstd = n.rstd[row];
    } else {
      if constexpr (centred) {
        float total = 0;
        each([&](int64_t i, auto count) {
          for (float v : load_some<count.value>(x + i).values) total += v;
        });
        mean = group.sum(total) / static_cast<float>(D);
      }
      float squares = 0;
      each([&](int64_t i, auto count) {
        for (float v : load_some<count.value>(x + i).values) squares = fmaf(v - mean, v - mean, squares);
      });
      rstd = 1 / sqrtf(group.sum(squares) / static_cast<float>(D) + n.eps);
      if (group.thread == 0) {
        if constexpr (centred) n.mean[row] = mean;
        n.rstd[row] = rstd;
      }
    }
    each([&](int64_t i, auto count) {
      auto value = load_some<count.value>(x + i);
#pragma unroll
      for (int k = 0; k < count.value; ++k)
        value.values[k] = scaled<centred>(value.values[k], mean, rstd, n.weight[i + k], centred ? n.bias[i + k] : 0.0f);
      store_some(y + i, value);
    });
  }
}

}  // namespace

void norm_forward(const NormForward& n) {
  if (n.rows == 0 || n.D == 0) return;
  with_norm(n, [&]<class T, class Centred>(T, Centred) {
    if (fits_registers<T>(n.D, n.x, n.residual, n.weight, n.bias, n.sum, n.y))
      return with_registers(n.D, [&]<class Group, int values>(std::type_identity<Group>, Count<values>, unsigned threads) {
        constexpr bool warp = std::is_same_v<Group, WarpGroup>;
        start_early(norm_rows<T, Centred::value, Group, values>, warp ? block_count(n.rows, 4, 64) : block_count(n.rows, 1, 32),
                    warp ? 128 : threads, 0, n);
      });
    with_group(n.rows, n.D, [&]<class Group>(std::type_identity<Group>, unsigned blocks, unsigned threads) {
      start(norm_any_rows<T, Centred::value, Group>, blocks, threads, 0, n);
    });
  });
}

}  // namespace heed::cuda
