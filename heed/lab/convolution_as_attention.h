// Convolutions as attention (Cordonnier et al. 2020): one head per kernel tap. A sharp Gaussian attends to one pixel at a fixed offset from
// the query; the taps are the output weights.
#pragma once

#include <array>
#include <string>

#include "heed/io/image.h"
#include "heed/lab/report.h"
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

// Padding: zeros, the nearest edge pixel, or none (only outputs whose taps are all inside).
enum class Border { zero, replicate, none };
inline constexpr std::array<Border, 3> kBorders{Border::replicate, Border::zero, Border::none};
std::string name_of(Border border);
Border border_named(const std::string& name);

// How far taps extend beyond the output pixel on each side, rounded as in "same" padding.
struct Reach {
  int64_t top = 0, left = 0, bottom = 0, right = 0;
};
Reach reach_of(const Convolution& convolution);
Tensor padded_by(const Tensor& x, const Reach& reach, Border border);  // x: (B, C, Y, X)

// Reference: conv2d with that padding. x: (B, C, Y, X) -> (B, O, Y', X')
Tensor convolved(const Convolution& convolution, const Tensor& x, Border border);

// The centre of each head: query - key of the pixel its tap reads. -> (H, 2) rows and columns
Tensor head_centers(const Convolution& convolution);

// Attention maps of Gaussian heads on a Y x X grid, for these queries only. alpha: (H), center: (H, 2) -> (H, queries, Y X)
Tensor head_maps(const Tensor& alpha, const Tensor& center, int64_t Y, int64_t X, const std::vector<int64_t>& queries);

struct LayerChoice {
  float alpha = 40;
  Border border = Border::replicate;
  int64_t rings = -1;  // zero padding around the image for Border::zero; -1: as far as the taps reach
};
// The attention layer, a GaussianAttentionModel for images of Y x X. It also runs on other sizes.
Model attention_layer(const Convolution& convolution, const LayerChoice& choice, int64_t Y, int64_t X);
Tensor attended(const Model& layer, const Tensor& x);              // x: (B, C, Y, X) -> (B, O, Y', X')
Tensor parameter_of(const Model& model, const std::string& name);  // the parameter whose name ends with `name`
// Writes a model folder, with io.safetensors (x and the expected output) for heed parity.
void write_layer(const Path& folder, const Model& layer, const Tensor& x, const Tensor& expected);

inline constexpr double kRoundingError = 1e-5;    // relative to the largest output: the layer equals the convolution up to rounding
inline constexpr double kAnotherFunction = 0.05;  // above this the layer computes another function
inline constexpr double kSharpAlpha = 16;         // from here on heads are one-hot up to rounding

// The largest difference from the convolution, relative to its largest output: at pixels whose taps are all inside, and at the border.
struct LayerError {
  double inside = 0, border = 0;
  double worst() const { return inside > border ? inside : border; }
};
LayerError layer_error(const Convolution& convolution, const LayerChoice& choice, const Tensor& x);
LayerError error_between(const Convolution& convolution, Border border, const Tensor& x, const Tensor& found, const Tensor& expected);

// Claims about sharp heads cannot be decided with heads that blur: measurements that fail for a smaller alpha are replaced by the error.
void excuse_blur(Report& report, double alpha);

// --- sources of convolutions
Convolution random_convolution(int64_t channels, int64_t outputs, int64_t kernel, Rng& rng);  // outputs have a variance of about 1
// The first layer of a small network trained to classify shapes.
struct TrainedConvolution {
  Convolution convolution;
  double first_loss = 0, last_loss = 0;
};
TrainedConvolution trained_convolution(int64_t kernel, int64_t steps, uint64_t seed);
// Reads a convolution from a .safetensors file or a folder with one. name: of the weight, with or without ".weight"; empty: the only rank-4
// tensor. bias: empty: the bias next to the weight, if there is one
Convolution convolution_in(const Path& file, const std::string& name, const std::string& bias);

Tensor image_tensor(const Image& image);  // (1, 3, Y, X), from -1 to 1

}  // namespace heed::lab
