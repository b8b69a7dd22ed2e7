#include "heed/attention/cached_attention.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <vector>

#include "heed/core/parallel.h"
#include "heed/core/raw.h"

namespace heed {
namespace {

// Elements of the cache.
struct CacheRow {
  void* data;
  int64_t at;
  DType dtype;

  float operator[](int64_t d) const {
    if (dtype == DType::f32) return static_cast<const float*>(data)[at + d];
    return to_float(static_cast<const Bf16*>(data)[at + d]);
  }
  void set(int64_t d, float x) const {
    if (dtype == DType::f32)
      static_cast<float*>(data)[at + d] = x;
    else
      static_cast<Bf16*>(data)[at + d] = to_bf16(x);
  }
};

void attend_cached_head(const CachedAttention& p, int64_t b, int64_t h) {
  const int64_t group = p.H / p.G, g = h / group, length = p.lengths[b];
  const float* const from = p.qkv + b * (p.H + 2 * p.G) * p.D;
  const auto row = [&](void* data, int64_t j) { return CacheRow{data, ((b * p.G + g) * p.capacity + j) * p.D, p.dtype}; };
  const int64_t first = p.before < 0 ? 0 : std::max<int64_t>(0, length - p.before);
  std::vector<double> weights;
  for (int64_t j = first; j <= length; ++j) {
    double score = 0;
    for (int64_t d = 0; d < p.D; ++d) score += static_cast<double>(p.rotated_feature(from + h * p.D, d, length)) * row(p.keys, j)[d];
    weights.push_back(score * static_cast<double>(p.beta));
  }
  const double most = *std::max_element(weights.begin(), weights.end());
  double total = 0;
  for (double& weight : weights) total += weight = std::exp(weight - most);
  for (int64_t d = 0; d < p.D; ++d) {
    double sum = 0;
    for (int64_t j = first; j <= length; ++j) sum += weights[static_cast<size_t>(j - first)] * row(p.values, j)[d];
    p.out[(b * p.H + h) * p.D + d] = static_cast<float>(sum / total);
  }
}

}  // namespace

bool cached_attention_supports(int64_t D, DType dtype) {
  const int64_t vectors = D * static_cast<int64_t>(bytes_of(dtype)) / 16;  // of 16 bytes, one per lane of a warp
  return (dtype == DType::f32 || dtype == DType::bf16) && D * static_cast<int64_t>(bytes_of(dtype)) % 16 == 0 && vectors <= 32 &&
         std::has_single_bit(static_cast<uint64_t>(vectors));
}

std::pair<Tensor, Tensor> cached_attention_scratch(const Tensor& keys, int64_t H) {
  const int64_t B = keys.size(0), chunks = CachedAttention::chunks_of(keys.size(2));
  return {Tensor::zeros({B * keys.size(1)}, DType::i32, keys.device()),
          Tensor::empty({B, H, chunks, keys.size(3) + 2}, DType::f32, keys.device())};
}

void cached_attention(const CachedHeads& heads, const Tensor& qkv, const Tensor& out) {
  const Tensor& keys = heads.keys;
  const int64_t B = keys.size(0), G = keys.size(1), capacity = keys.size(2), D = keys.size(3), H = out.size(1) / std::max<int64_t>(D, 1);
  check(heads.values.shape() == keys.shape() && cached_attention_supports(D, keys.dtype()), "cached_attention: keys ", keys.shape(),
        ", values ", heads.values.shape(), ", expected equal shapes and a head width of 16 bytes times a power of two up to 32");
  check(out.shape() == Shape{B, H * D} && H > 0 && G > 0 && H % G == 0 && qkv.shape() == Shape{B, (H + 2 * G) * D},
        "cached_attention: qkv ", qkv.shape(), ", out ", out.shape(), ", keys ", keys.shape());
  const Shape parts{B, H, CachedAttention::chunks_of(capacity), D + 2};
  check(heads.lengths.shape() == Shape{B} && heads.tickets.shape() == Shape{B * G} && heads.parts.shape() == parts,
        "cached_attention: lengths ", heads.lengths.shape(), ", tickets ", heads.tickets.shape(), ", parts ", heads.parts.shape(),
        ", expected ", Shape{B}, ", ", Shape{B * G}, ", ", parts);
  const Device device = common_device("cached_attention", {&keys, &heads.values, &heads.lengths, &heads.tickets, &heads.parts, &qkv, &out});
  launch(cached_attention_forward, device,
         {.qkv = raw<float>(qkv),
          .keys = Raw::bytes(keys),
          .values = Raw::bytes(heads.values),
          .lengths = raw<int64_t>(heads.lengths),
          .tickets = raw<int32_t>(heads.tickets),
          .parts = raw<float>(heads.parts),
          .cosine = raw_or_null<float>(heads.cosine),
          .sine = raw_or_null<float>(heads.sine),
          .out = raw<float>(out),
          .B = B,
          .H = H,
          .G = G,
          .D = D,
          .capacity = capacity,
          .rotated = heads.rotated,
          .before = heads.before,
          .halves = heads.halves,
          .beta = heads.beta,
          .dtype = keys.dtype()});
}

void cpu::cached_attention_forward(const CachedAttention& p) {
  for (int64_t b = 0; b < p.B; ++b) {
    check(0 <= p.lengths[b] && p.lengths[b] < p.capacity, "cached_attention: ", p.lengths[b],
          " tokens before the new one, there is room for ", p.capacity);
    for (int64_t g = 0; g < p.G; ++g)
      for (int64_t d = 0; d < p.D; ++d) {
        const float* const from = p.qkv + (b * (p.H + 2 * p.G) + p.H + g) * p.D;
        const int64_t at = ((b * p.G + g) * p.capacity + p.lengths[b]) * p.D;
        CacheRow{p.keys, at, p.dtype}.set(d, p.rotated_feature(from, d, p.lengths[b]));
        CacheRow{p.values, at, p.dtype}.set(d, from[p.G * p.D + d]);
      }
  }
  parallel_for(p.B * p.H, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) attend_cached_head(p, i / p.H, i % p.H);
  });
}

}  // namespace heed
