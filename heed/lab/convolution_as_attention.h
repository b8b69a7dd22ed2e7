// Convolutions as attention (Cordonnier et al. 2020): a head for every tap of the kernel. Its Gaussian, sharp enough, sees one place
// beside the query alone; the taps are the weights of the output.
#pragma once

#include <array>
#include <string>

#include "heed/io/picture.h"
#include "heed/models/model.h"

namespace heed::lab {

struct Convolution {
  Tensor weight;     // (O, C / groups, KY, KX)
  Tensor bias = {};  // (O) or undefined
  int64_t dilation = 1, stride = 1, groups = 1;

  int64_t outputs() const { return weight.size(0); }
  int64_t channels() const { return weight.size(1) * groups; }
  int64_t taps() const { return weight.size(2) * weight.size(3); }
};
std::string kernel_text(const Convolution& convolution);  // "5 × 5"

// What lies beyond the edges of a picture: zeros, the pixels at the edge, or nothing, so that only places answer whose taps are all inside.
enum class Border { zero, replicate, none };
inline constexpr std::array<Border, 3> kBorders{Border::replicate, Border::zero, Border::none};
std::string name_of(Border border);
Border border_named(const std::string& name);

// How far taps reach from the place that they answer for: half of them to either side, rounded as "same" padding is.
struct Reach {
  int64_t top = 0, left = 0, bottom = 0, right = 0;
};
Reach reach_of(const Convolution& convolution);
Tensor padded_by(const Tensor& x, const Reach& reach, Border border);  // x: (B, C, Y, X)

// The convolution itself, by conv2d. x: (B, C, Y, X) -> (B, O, Y', X')
Tensor convolved(const Convolution& convolution, const Tensor& x, Border border);

// The centre of every head: query - key for the pixel that its tap reads. -> (H, 2) rows and columns
Tensor head_centers(const Convolution& convolution);

// Where heads look on a grid of Y x X, from those queries alone. alpha: (H), center: (H, 2) -> (H, queries, Y X)
Tensor head_maps(const Tensor& alpha, const Tensor& center, int64_t Y, int64_t X, const std::vector<int64_t>& queries);

struct LayerChoice {
  float alpha = 40;
  Border border = Border::replicate;
  int64_t rings = -1;  // of zeros around a picture for Border::zero; -1: as far as taps reach
};
// The attention layer, a GaussianAttentionModel, for pictures of Y x X (others will do as well).
Model attention_layer(const Convolution& convolution, const LayerChoice& choice, int64_t Y, int64_t X);
Tensor attended(const Model& layer, const Tensor& x);              // x: (B, C, Y, X) -> (B, O, Y', X')
Tensor parameter_of(const Model& model, const std::string& name);  // by its end; to read and to change
// A folder for heed load, with io.safetensors for heed parity: x and what the convolution makes of it.
void write_layer(const Path& folder, const Model& layer, const Tensor& x, const Tensor& expected);

inline constexpr double kRoundingError = 1e-5;    // of a layer that is the convolution, as a share of the largest output
inline constexpr double kAnotherFunction = 0.05;  // an error that says that the layer is not the convolution

// The largest distance from the convolution, as a share of its largest output: of places whose taps are all inside, and of the others.
struct LayerError {
  double inside = 0, border = 0;
  double worst() const { return inside > border ? inside : border; }
};
LayerError layer_error(const Convolution& convolution, const LayerChoice& choice, const Tensor& x);
LayerError error_between(const Convolution& convolution, Border border, const Tensor& x, const Tensor& found, const Tensor& expected);

// --- where convolutions come from
Convolution random_convolution(int64_t channels, int64_t outputs, int64_t kernel, Rng& rng);  // outputs vary by about 1
// The first layer of a small network that has learned to name shapes for so many steps.
struct TrainedConvolution {
  Convolution convolution;
  double first_loss = 0, last_loss = 0;
};
TrainedConvolution trained_convolution(int64_t kernel, int64_t steps, uint64_t seed);
// From a file of tensors, or a folder that holds one. name: of the weight, with or without ".weight"; empty: the only one that can be
// meant. bias: empty: the one beside the weight, where there is one
Convolution convolution_in(const Path& file, const std::string& name, const std::string& bias);

Tensor picture_tensor(const Picture& picture);  // (1, 3, Y, X), from -1 to 1

}  // namespace heed::lab
