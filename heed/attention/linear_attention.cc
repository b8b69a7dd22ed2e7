// The op: shapes are checked, operands made dense; forward saves one number per query and a few states. Also the composed
// form, which multiplies in the other order, the random projection, and the state for decoding.
#include "heed/attention/linear_attention.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "heed/attention/work.h"
#include "heed/ops/ops.h"
#include "heed/ops/storage.h"

namespace heed {
namespace {

float scale_of(const LinearAttentionOptions& options, int64_t D) {
  const float usual = options.map == FeatureMap::random ? 1 / std::sqrt(static_cast<float>(D)) : 1.0f;
  const float beta = options.beta.value_or(usual);
  check(beta >= 0, "linear_attention: beta is ", beta, ", expected 0 or more");
  return std::sqrt(beta);
}

// (R, D) of random features; R is D for the other maps.
int64_t feature_count(const LinearAttentionOptions& options, int64_t D) {
  if (options.map != FeatureMap::random) return D;
  const Tensor& w = options.projection;
  check(w.defined() && w.rank() == 2 && w.size(1) == D && w.size(0) > 0, "linear_attention: the projection has shape ",
        w.defined() ? w.shape() : Shape{}, ", expected (R, ", D, ")");
  return w.size(0);
}

LinearAttentionSizes linear_sizes_of(const Tensor& q, const Tensor& k, const Tensor& v, const LinearAttentionOptions& options) {
  check(q.rank() == 4 && k.rank() == 4 && v.rank() == 4, "linear_attention: q ", q.shape(), ", k ", k.shape(), ", v ", v.shape(),
        ", expected (B, H, N, D), (B, G, M, D), (B, G, M, E)");
  const LinearAttentionSizes s{.B = q.size(0),
                               .H = q.size(1),
                               .G = k.size(1),
                               .N = q.size(2),
                               .M = k.size(2),
                               .D = q.size(3),
                               .E = v.size(3),
                               .R = feature_count(options, q.size(3)),
                               .map = options.map,
                               .causal = options.causal,
                               .scale = scale_of(options, q.size(3))};
  check(k.size(0) == s.B && v.size(0) == s.B, "linear_attention: batches of ", s.B, ", ", k.size(0), " and ", v.size(0));
  check(k.size(3) == s.D, "linear_attention: queries have ", s.D, " numbers, keys ", k.size(3));
  check(v.size(2) == s.M && v.size(1) == s.G, "linear_attention: k ", k.shape(), " and v ", v.shape(), " differ in heads or keys");
  check(s.G > 0 && s.H % s.G == 0, "linear_attention: ", s.H, " query heads do not share ", s.G, " key heads evenly");
  check(!s.causal || s.N == s.M, "linear_attention: causal with ", s.N, " queries and ", s.M, " keys, expected as many");
  return s;
}

Tensor dense_projection(const LinearAttentionOptions& options) {
  return options.map == FeatureMap::random ? dense_f32("linear_attention", widen(options.projection).detach()) : Tensor();
}

Tensor checked_lengths(const LinearAttentionOptions& options, int64_t B) {
  if (!options.lengths.defined()) return {};
  check(options.lengths.shape() == Shape{B}, "linear_attention: lengths have shape ", options.lengths.shape(), ", expected ", Shape{B});
  return contiguous(converted(options.lengths, DType::i64));
}

LinearAttentionLayout layout_of(const LinearAttentionSizes& z, Device device) {
  const bool on_cpu = cuda::computing_device(device) == kCpu;
  const auto split = [&](int64_t tokens) { return on_cpu ? split_tokens(z.B * z.G, tokens) : cuda_split_tokens(tokens, z.causal); };
  return {.width_d = padded_width(z.D, device),
          .width_e = padded_width(z.E, device),
          .width_r = padded_width(z.R, device),
          .queries = split(z.N),
          .keys = split(z.M)};
}

// A call, with the tensors that its arguments point to.
struct LinearAttentionCall {
  LinearAttentionSizes sizes;
  LinearAttentionLayout layout;
  Tensor q, k, v, lengths, projection, projection_transposed;  // dense; q and lengths may be undefined
  Tensor out, total;                                           // (B, H, N, E); (B, H, N): phi(q).z
  Tensor gains, largest_gain;  // (B, G, M), (B, G, M + 1) for random features: log of every key's scale, and the largest so far
  Tensor states;               // (B G, segments + 1, padded S and z): sums before every segment of keys, and over all

  // projection: (R, D)
  LinearAttentionCall(const LinearAttentionSizes& z, const Tensor& dense_projection, const Tensor& key_lengths, const Tensor& query,
                      const Tensor& key, const Tensor& value)
      : sizes(z), layout(layout_of(z, key.device())), q(query), k(key), v(value), lengths(key_lengths) {
    if (z.map != FeatureMap::random) return;
    const Tensor scaled = scale(dense_projection, z.scale);
    projection = Tensor::zeros({z.R, layout.width_d}, DType::f32, k.device());
    projection_transposed = Tensor::zeros({z.D, layout.width_r}, DType::f32, k.device());
    copy_into(scaled, projection.view({z.R, z.D}, projection.strides()));
    copy_into(scaled, projection_transposed.view({z.R, z.D}, {1, layout.width_r}));
  }

  LinearAttentionArgs args() const {
    return {.sizes = sizes,
            .layout = layout,
            .lengths = raw_or_null<int64_t>(lengths),
            .projection = raw_or_null<float>(projection),
            .projection_transposed = raw_or_null<float>(projection_transposed),
            .q = raw_or_null<float>(q),
            .k = raw<float>(k),
            .v = raw<float>(v),
            .gains = raw_or_null<float>(gains),
            .largest_gain = raw_or_null<float>(largest_gain),
            .states = raw<float>(states),
            .device = k.device()};
  }

  // S and z of one slot of the states, without the padding.
  std::pair<Tensor, Tensor> state_views(int64_t slot) const {
    const LinearAttentionSizes& z = sizes;
    const int64_t head = (layout.keys.segments + 1) * layout.state(), at = slot * layout.state();
    return {states.view({z.B, z.G, z.R, z.E}, {z.G * head, head, layout.width_e, 1}, at),
            states.view({z.B, z.G, z.R}, {z.G * head, head, 1}, at + layout.width_r * layout.width_e)};
  }

  // start: sums of keys that came before, or undefined ones.
  void forward(const LinearAttentionState& start) {
    const NoGrad quiet;
    const LinearAttentionSizes& z = sizes;
    const Device device = k.device();
    states = Tensor::zeros({z.B * z.G, layout.keys.segments + 1, layout.state()}, DType::f32, device);
    if (start.sums.defined()) {
      const auto [sums, weights] = state_views(0);
      copy_into(start.sums, sums);
      copy_into(start.weights, weights);
    }
    if (z.map == FeatureMap::random) {
      gains = Tensor::empty({z.B, z.G, z.M}, DType::f32, device);
      largest_gain = Tensor::full({z.B, z.G, z.M + 1}, kNoGain, DType::f32, device);
      if (start.top.defined()) copy_into(start.top, largest_gain.view({z.B, z.G}, {z.G * (z.M + 1), z.M + 1}));
    }
    if (q.defined()) {
      out = Tensor::empty({z.B, z.H, z.N, z.E}, DType::f32, device);
      total = Tensor::empty({z.B, z.H, z.N}, DType::f32, device);
    }
    launch(linear_attention_forward, device, {.in = args(), .out = raw_or_null<float>(out), .total = raw_or_null<float>(total)});
  }

  Grads backward(const Tensor& g) const {  // (B, H, N, E) -> the gradients of q, k and v
    const auto like = [](const Tensor& x) { return Tensor::empty(x.shape(), DType::f32, x.device()); };
    const Tensor dq = like(q), dk = like(k), dv = like(v);
    launch(linear_attention_backward, k.device(),
           {.in = args(),
            .g = raw<float>(g),
            .out = raw<float>(out),
            .total = raw<float>(total),
            .dq = raw<float>(dq),
            .dk = raw<float>(dk),
            .dv = raw<float>(dv)});
    return {dq, dk, dv};
  }
};

// True where query i must not see key j. -> (B or 1, 1, 1, N, M), or undefined when all see all.
Tensor hidden(const LinearAttentionSizes& z, const Tensor& lengths, Device device) {
  if (!z.causal && !lengths.defined()) return {};
  const std::vector<int64_t> counts = lengths.defined() ? lengths.to_vector<int64_t>() : std::vector<int64_t>{z.M};
  std::vector<uint8_t> mask;
  for (const int64_t keys : counts)
    for (int64_t i = 0; i < z.N; ++i)
      for (int64_t j = 0; j < z.M; ++j) mask.push_back(j >= keys || (z.causal && j > i));
  return converted(Tensor::from(mask, {static_cast<int64_t>(counts.size()), 1, 1, z.N, z.M}, kCpu).to(device), DType::boolean);
}

Tensor quadratic_order(const LinearAttentionSizes& z, const Tensor& lengths, const Tensor& q, const Tensor& k, const Tensor& v,
                       const LinearAttentionOptions& options) {
  const Tensor a = reshape(linear_attention_features(q, options).features, {z.B, z.G, z.H / z.G, z.N, z.R});
  const LinearAttentionFeatures keys = linear_attention_features(k, options);
  Tensor c = keys.features;
  if (keys.gain.defined() && z.M > 0) c = c * exp(keys.gain - max(keys.gain, {2}, true));
  Tensor map = matmul(a, transpose(reshape(c, {z.B, z.G, 1, z.M, z.R}), 3, 4));
  if (const Tensor mask = hidden(z, lengths, q.device()); mask.defined()) map = masked_fill(map, mask, 0);
  constexpr float least = 1e-37f;  // what sees nothing is divided by this: zero, not NaN
  const Tensor total = scale(relu(scale(sum(map, {4}, true), 1, -least)), 1, least);
  return reshape(matmul(map, reshape(v, {z.B, z.G, 1, z.M, z.E})) / total, {z.B, z.H, z.N, z.E});
}

// Adds keys to a state and answers queries, if any.
Tensor continue_from(const Tensor& q, const Tensor& k, const Tensor& v, LinearAttentionState& state) {
  const NoGrad quiet;
  LinearAttentionOptions options = state.options;
  options.causal = q.defined();
  LinearAttentionSizes sizes = linear_sizes_of(q.defined() ? q : k, k, v, options);
  if (!q.defined()) sizes.N = 0;
  const Shape shape{sizes.B, sizes.G, sizes.R, sizes.E};
  check(!state.sums.defined() || state.sums.shape() == shape, "linear_attention: the state has sums of shape ",
        state.sums.defined() ? state.sums.shape() : shape, ", new keys and values need ", shape);
  const auto dense = [](const Tensor& x) { return x.defined() ? dense_f32("linear_attention", widen(x)) : x; };
  LinearAttentionCall call(sizes, dense_projection(options), {}, dense(q), dense(k), dense(v));
  call.forward(state);
  const auto [sums, weights] = call.state_views(call.layout.keys.segments);
  state.sums = contiguous(sums);
  state.weights = contiguous(weights);
  const Tensor& gain = call.largest_gain;
  state.top = gain.defined() ? contiguous(reshape(slice(gain, 2, sizes.M, sizes.M + 1), {sizes.B, sizes.G}))
                             : Tensor::zeros({sizes.B, sizes.G}, DType::f32, k.device());
  return call.out;
}

}  // namespace

// Every key is added to the sums, every query is multiplied with them. Lengths are read only where the host can.
int64_t LinearAttentionArgs::multiply_adds() const {
  const LinearAttentionSizes& z = sizes;
  int64_t all_keys = z.B * z.M;
  if (lengths && device.kind == Device::Kind::cpu && !DryRun::newest())
    all_keys =
        std::accumulate(lengths, lengths + z.B, int64_t{0}, [&](int64_t sum, int64_t n) { return sum + std::clamp<int64_t>(n, 0, z.M); });
  const int64_t projected = z.map == FeatureMap::random ? z.D : 0, queries = q ? z.B * z.H * z.N : 0;
  return all_keys * z.G * z.R * (z.E + projected) + queries * z.R * (z.E + 1 + projected);
}

LinearAttentionFeatures linear_attention_features(const Tensor& x, const LinearAttentionOptions& options) {
  const Tensor t = scale(x, scale_of(options, x.size(-1)));
  if (options.map == FeatureMap::relu) return {scale(relu(t), 1, kReluFloor), {}};
  if (options.map == FeatureMap::elu) {
    const Tensor above = relu(t);
    return {exp(t - above) + above, {}};
  }
  feature_count(options, x.size(-1));
  const Tensor exponent = matmul(t, transpose(dense_projection(options), 0, 1)) - scale(sum(t * t, {-1}, true), 0.5f);
  const Tensor gain = max(exponent.detach(), {-1}, true);
  return {exp(exponent - gain), gain};
}

Tensor linear_attention(const Tensor& query, const Tensor& key, const Tensor& value, const LinearAttentionOptions& options) {
  if (is_half(query) || is_half(key) || is_half(value))
    return in_f32(query, [&](const Tensor& wide) { return linear_attention(wide, widen(key), widen(value), options); });
  const LinearAttentionSizes sizes = linear_sizes_of(query, key, value, options);
  const Tensor lengths = checked_lengths(options, sizes.B);
  if (options.quadratic) return quadratic_order(sizes, lengths, query, key, value, options);
  common_device("linear_attention", {&query, &key, &value, &options.projection, &options.lengths});
  const auto dense = [](const Tensor& x) { return dense_f32("linear_attention", x); };
  LinearAttentionCall call(sizes, dense_projection(options), lengths, dense(query), dense(key), dense(value));
  call.forward({});
  return record(op::linear_attention, call.out, {query, key, value}, [call](const Tensor& g) { return call.backward(contiguous(g)); });
}

Tensor random_projection(int64_t features, int64_t width, Rng& rng, bool orthogonal) {
  check(features >= 1 && width >= 1, "random_projection: ", features, " features of ", width, " numbers, expected 1 or more");
  const Tensor normal = random_normal({features, width}, 0, 1, rng, kCpu);
  if (!orthogonal) return normal;
  // Gram-Schmidt in blocks of `width` rows; then every row gets back the length of a normal vector.
  std::vector<float> rows = normal.to_vector<float>(), other = random_normal({features, width}, 0, 1, rng, kCpu).to_vector<float>();
  const auto product = [&](const std::vector<float>& x, int64_t a, int64_t b) {
    double sum = 0;
    for (int64_t d = 0; d < width; ++d)
      sum += static_cast<double>(x[static_cast<size_t>(a * width + d)]) * x[static_cast<size_t>(b * width + d)];
    return sum;
  };
  const auto add = [&](int64_t to, int64_t from, double factor) {
    for (int64_t d = 0; d < width; ++d)
      rows[static_cast<size_t>(to * width + d)] += static_cast<float>(factor * rows[static_cast<size_t>(from * width + d)]);
  };
  for (int64_t r = 0; r < features; ++r) {
    for (int64_t pass = 0; pass < 2; ++pass)  // once more for what rounding left
      for (int64_t before = r / width * width; before < r; ++before) add(r, before, -product(rows, r, before));
    add(r, r, 1 / std::sqrt(product(rows, r, r)) - 1);
  }
  for (int64_t r = 0; r < features; ++r) add(r, r, std::sqrt(product(other, r, r)) - 1);
  return Tensor::from(rows, {features, width}, kCpu);
}

void LinearAttentionState::append(const Tensor& k, const Tensor& v) { continue_from({}, k, v, *this); }

Tensor linear_attention_step(const Tensor& q, const Tensor& k, const Tensor& v, LinearAttentionState& state) {
  return cast(continue_from(q, k, v, state), q.dtype());
}

}  // namespace heed
