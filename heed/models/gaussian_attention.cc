// One layer of attention to places alone, on the pixels of a picture (Cordonnier et al. 2020): with a head for every tap it is a
// convolution. `heed lab convolution` makes checkpoints of this kind.
#include "heed/models/architecture.h"
#include "heed/models/parts.h"

namespace heed {
namespace {

struct PictureEdges {
  int64_t top = 0, left = 0, bottom = 0, right = 0;
};
PictureEdges edges_in(const Config& config, std::string_view key) {
  const Config edges = config.below(key);
  constexpr int64_t most = 1024;  // pixels
  const auto at = [&](const char* side) {
    const int64_t pixels = edges.size(side, 0, 0);
    if (pixels > most) edges.refuse(side, "at most " + std::to_string(most) + " pixels");
    return pixels;
  };
  return {at("top"), at("left"), at("bottom"), at("right")};
}

struct PlaceAttention {
  MultiHeadAttention attention;  // of H heads; the pixels themselves are the values of each
  Gaussian2d places;             // whose grid is the picture's
  int64_t channels = 0;
  PictureEdges zeros, margin;  // zeros: added around the picture; margin: pixels near the edge of what is then there that do not ask
  std::vector<int64_t> stride;

  // (B, C, Y, X) -> (B, O, Y', X')
  Tensor operator()(const Tensor& pixels) const {
    check(pixels.rank() == 4 && pixels.size(1) == channels, "gaussian_attention: pixel_values of shape ", pixels.shape(), ", expected (B, ",
          channels, ", Y, X)");
    const std::array<std::array<int64_t, 2>, 4> around{{{0, 0}, {0, 0}, {zeros.top, zeros.bottom}, {zeros.left, zeros.right}}};
    const Tensor x = pad(pixels, around);
    const int64_t B = x.size(0), Y = x.size(2), X = x.size(3), H = attention.heads;
    check(margin.top + margin.bottom < Y && margin.left + margin.right < X, "gaussian_attention: a picture of ", Y, " x ", X,
          " pixels, expected more than the margins of ", margin.top + margin.bottom, " and ", margin.left + margin.right);
    MultiHeadAttention here = attention;
    Gaussian2d term = places;
    term.width = X;
    here.positions = {Term(term)};
    const Tensor tokens = reshape(permute(x, {0, 2, 3, 1}), {B, Y * X, channels});
    const Tensor all = reshape(here.attend(here.project(tokens)), {B, H, Y, X, channels});
    const Tensor asked = slice(slice(all, 2, margin.top, Y - margin.bottom, stride[0]), 3, margin.left, X - margin.right, stride[1]);
    const int64_t rows = asked.size(2), columns = asked.size(3);
    const Tensor out = here.join(reshape(asked, {B, H, rows * columns, channels}));  // (B, N', O)
    return permute(reshape(out, {B, rows, columns, out.size(2)}), {0, 3, 1, 2});
  }
};

Network make_gaussian_layer(const Scope& root, const Config& config) {
  const Scope scope = root.with(beginning(config, "initializer_range", true)) / "attention";
  const int64_t channels = config.size("num_channels", 3), heads = config.size("num_attention_heads", 9);
  PlaceAttention layer{.attention = make_multi_head(scope, {.width = channels,
                                                            .heads = heads,
                                                            .output_width = config.size("output_channels", channels),
                                                            .output_bias = config.flag("output_bias", true),
                                                            .content = false,
                                                            .project_values = false}),
                       .places = gaussian_positions(scope / "positions.gaussian", heads, 1),
                       .channels = channels,
                       .zeros = edges_in(config, "zero_padding"),
                       .margin = edges_in(config, "margin"),
                       .stride = config.sizes("stride", {1})};
  layer.stride.resize(2, layer.stride[0]);
  return {.run =
              [layer](const Named& inputs, const Ask& ask) {
                Named out;
                Witness witness(ask);
                out["last_hidden_state"] = layer(needed(inputs, "pixel_values"));
                witness.tell(out, 1);
                return out;
              },
          .inputs = {"pixel_values"}};
}

}  // namespace

Architectures gaussian_attention_architectures() {
  return {{.name = "GaussianAttentionModel", .base = "gaussian_attention", .bare = true, .make = make_gaussian_layer}};
}

}  // namespace heed
