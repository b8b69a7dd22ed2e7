#include "heed/models/inspect.h"

#include <algorithm>
#include <numeric>

#include "heed/models/architecture.h"

namespace heed {
namespace {

// The maps of all layers: (B, H, N, M) each.
Tensors maps_of_layers(const TensorMap& outputs, const std::string& prefix) {
  Tensors out;
  for (auto found = outputs.find(prefix + "0"); found != outputs.end(); found = outputs.find(prefix + std::to_string(out.size())))
    out.push_back(found->second);
  check(!out.empty(), "inspect: the model has no output \"", prefix, "0\"; it has no layers, or none with attention");
  return out;
}

std::vector<int64_t> chosen(const std::vector<int64_t>& choice, int64_t all, const char* what) {
  std::vector<int64_t> out = choice;
  if (out.empty()) {
    out.resize(static_cast<size_t>(all));
    std::iota(out.begin(), out.end(), 0);
  }
  for (int64_t each : out) check<UsageError>(each >= 0 && each < all, "inspect: ", what, " ", each, ", expected 0 to ", all - 1);
  return out;
}

// (B, H, N, M) -> the first item, (H, N, M)
std::vector<float> first_item(const Tensor& maps) { return slice(maps, 0, 0, 1).to_vector<float>(); }

}  // namespace

std::span<const float> AttentionMaps::map(size_t layer, size_t head) const {
  const size_t each = static_cast<size_t>(N * M);
  return std::span(weights).subspan((layer * heads.size() + head) * each, each);
}

std::vector<float> AttentionMaps::mean(size_t layer) const {
  std::vector<float> out(static_cast<size_t>(N * M));
  for (size_t head = 0; head < heads.size(); ++head) {
    const std::span<const float> one = map(layer, head);
    for (size_t i = 0; i < out.size(); ++i) out[i] += one[i] / static_cast<float>(heads.size());
  }
  return out;
}

bool AttentionMaps::causal() const {
  if (N != M || N < 2) return false;
  for (size_t i = 0; i < weights.size(); ++i) {
    const int64_t index = static_cast<int64_t>(i) % (N * M);
    if (index % M > index / M && weights[i] != 0) return false;
  }
  return true;
}

std::vector<float> scaled_by_row(std::span<const float> map, int64_t M) {
  std::vector<float> out(map.begin(), map.end());
  for (auto row = out.begin(); row != out.end(); row += M)
    if (const float most = *std::max_element(row, row + M); most > 0)
      for (auto weight = row; weight != row + M; ++weight) *weight /= most;
  return out;
}

AttentionMaps maps_in(const TensorMap& outputs, const std::string& prefix, const std::string& kind, const MapChoice& choice, bool lenient) {
  const Tensors layers = maps_of_layers(outputs, prefix);
  std::vector<int64_t> wanted = choice.layers;
  if (lenient) std::erase_if(wanted, [&](int64_t layer) { return layer >= std::ssize(layers); });
  AttentionMaps out{
      .kind = kind, .all_layers = std::ssize(layers), .all_heads = layers[0].size(1), .N = layers[0].size(2), .M = layers[0].size(3)};
  if (!lenient || choice.layers.empty() || !wanted.empty()) out.layers = chosen(wanted, out.all_layers, "layer");
  out.heads = chosen(choice.heads, out.all_heads, "head");
  const size_t each = static_cast<size_t>(out.N * out.M);
  for (int64_t layer : out.layers) {
    const std::vector<float> all = first_item(layers[static_cast<size_t>(layer)]);
    for (int64_t head : out.heads) {
      const auto begin = all.begin() + static_cast<int64_t>(static_cast<size_t>(head) * each);
      out.weights.insert(out.weights.end(), begin, begin + static_cast<int64_t>(each));
    }
  }
  return out;
}

bool has_maps(const Model& model) { return choices("attention").in(Config(model.config(), "config.json").below("heed")).has_map; }

std::array<int64_t, 2> patch_grid(const Model& model, const Image& image) {
  const std::array<int64_t, 2> patch = patch_sides(model);
  return {image.height / patch[0], image.width / patch[1]};
}

std::vector<float> patches_seen(std::span<const float> map, int64_t N, int64_t patches) {
  check(std::ssize(map) == N * N && 0 < patches && patches <= N, "patches: a map of ", map.size(), " weights, expected ", N, " x ", N,
        " tokens with ", patches, " patches");
  const int64_t first = N - patches, queries = first > 0 ? 1 : N;
  std::vector<float> out(static_cast<size_t>(patches));
  for (int64_t q = 0; q < queries; ++q)
    for (int64_t k = 0; k < patches; ++k)
      out[static_cast<size_t>(k)] += map[static_cast<size_t>(q * N + first + k)] / static_cast<float>(queries);
  return out;
}

std::vector<float> rollout(const TensorMap& outputs, const std::string& prefix) {
  const Tensors layers = maps_of_layers(outputs, prefix);
  const int64_t N = layers[0].size(2);
  check(layers[0].size(3) == N, "rollout: maps of ", N, " queries and ", layers[0].size(3), " keys, expected equal numbers");
  Tensor sum;  // (1, N, N)
  for (const Tensor& layer : layers) {
    std::vector<float> half = (mean(slice(layer, 0, 0, 1), {1}) * 0.5f).to_vector<float>();
    for (int64_t i = 0; i < N; ++i) half[static_cast<size_t>(i * N + i)] += 0.5f;
    const Tensor mixed = Tensor::from(half, {1, N, N}, kCpu);
    sum = sum.defined() ? matmul(mixed, sum) : mixed;
  }
  return sum.to_vector<float>();
}

}  // namespace heed
