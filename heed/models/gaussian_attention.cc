// One layer of position-only attention on the pixels of an image (Cordonnier et al. 2020): with a head per kernel tap it is a
// convolution. `heed lab convolution` writes checkpoints of this kind.
#include "heed/models/architecture.h"
#include "heed/models/parts.h"

namespace heed {
namespace {

struct ImageEdges {
  int64_t top = 0, left = 0, bottom = 0, right = 0;
};
ImageEdges edges_in(const Config& config, std::string_view key) {
  const Config edges = config.below(key);
  constexpr int64_t most = 1024;  // pixels
  const auto at = [&](const char* side) {
    const int64_t pixels = edges.size(side, 0, 0);
    if (pixels > most) edges.refuse(side, "at most " + std::to_string(most) + " pixels");
    return pixels;
  };
  return {at("top"), at("left"), at("bottom"), at("right")};
}

struct GaussianAttention {
  MultiHeadAttention attention;  // H heads; their values are the pixels
  Gaussian2d positions;          // on the grid of pixels
  int64_t channels = 0;
  ImageEdges zeros, margin;  // zeros: zero padding; margin: pixels at the edge of the padded image without query
  std::vector<int64_t> stride;

  // (B, C, Y, X) -> (B, O, Y', X')
  Tensor operator()(const Tensor& pixels) const {
    check(pixels.rank() == 4 && pixels.size(1) == channels, "gaussian_attention: pixel_values of shape ", pixels.shape(), ", expected (B, ",
          channels, ", Y, X)");
    const std::array<std::array<int64_t, 2>, 4> around{{{0, 0}, {0, 0}, {zeros.top, zeros.bottom}, {zeros.left, zeros.right}}};
    const Tensor x = pad(pixels, around);
    const int64_t B = x.size(0), Y = x.size(2), X = x.size(3), H = attention.heads;
    check(margin.top + margin.bottom < Y && margin.left + margin.right < X, "gaussian_attention: an image of ", Y, " x ", X,
          " pixels, expected more than the margins of ", margin.top + margin.bottom, " and ", margin.left + margin.right);
    MultiHeadAttention here = attention;
    Gaussian2d term = positions;
    term.width = X;
    here.positions = {Term(term)};
    const Tensor tokens = reshape(permute(x, {0, 2, 3, 1}), {B, Y * X, channels});
    const Tensor all = reshape(here.attend(here.project(tokens)), {B, H, Y, X, channels});
    const Tensor inner = slice(slice(all, 2, margin.top, Y - margin.bottom, stride[0]), 3, margin.left, X - margin.right, stride[1]);
    const int64_t rows = inner.size(2), columns = inner.size(3);
    const Tensor out = here.join(reshape(inner, {B, H, rows * columns, channels}));  // (B, N', O)
    return permute(reshape(out, {B, rows, columns, out.size(2)}), {0, 3, 1, 2});
  }
};

Network make_gaussian_layer(const Scope& root, const Config& config) {
  const Scope scope = root.with(initializer_from(config, "initializer_range", true)) / "attention";
  const int64_t channels = config.size("num_channels", 3), heads = config.size("num_attention_heads", 9);
  GaussianAttention layer{.attention = make_multi_head(scope, {.width = channels,
                                                               .heads = heads,
                                                               .output_width = config.size("output_channels", channels),
                                                               .output_bias = config.flag("output_bias", true),
                                                               .content = false,
                                                               .project_values = false}),
                          .positions = gaussian_positions(scope / "positions.gaussian", heads, 1),
                          .channels = channels,
                          .zeros = edges_in(config, "zero_padding"),
                          .margin = edges_in(config, "margin"),
                          .stride = config.sizes("stride", {1})};
  layer.stride.resize(2, layer.stride[0]);
  return {.run =
              [layer](const TensorMap& inputs, const ForwardOptions& options) {
                TensorMap out;
                OutputCollector collector(options);
                out["last_hidden_state"] = layer(required_input(inputs, "pixel_values"));
                collector.add_outputs(out, 1);
                return out;
              },
          .inputs = {"pixel_values"}};
}

}  // namespace

Architectures gaussian_attention_architectures() {
  return of_family({.model_type = "gaussian_attention", .base = "gaussian_attention", .pixels = true},
                   {{"GaussianAttentionModel", ModelTask::features, make_gaussian_layer}});
}

}  // namespace heed
