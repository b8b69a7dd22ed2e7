#include "heed/lab/convolution_as_attention.h"

#include <algorithm>
#include <cmath>

#include "heed/attention/probabilities.h"
#include "heed/lab/measure.h"
#include "heed/ops/ops.h"

namespace heed::lab {
namespace {

// Indices from -before to size + after, clamped to [0, size).
Tensor clamped_indices(int64_t size, int64_t before, int64_t after) {
  std::vector<int64_t> indices;
  for (int64_t i = -before; i < size + after; ++i) indices.push_back(std::clamp<int64_t>(i, 0, size - 1));
  return Tensor::from(indices, {std::ssize(indices)}, kCpu);
}

// Output weights in the order of concatenated heads; zeros where a group does not read a channel. -> (O, H C)
Tensor joined_taps(const Convolution& convolution) {
  const int64_t O = convolution.outputs(), own = convolution.weight.size(1), C = convolution.channels(), H = convolution.taps();
  const std::vector<float> taps = convolution.weight.to_vector<float>();  // (O, own, H)
  std::vector<float> out(static_cast<size_t>(O * H * C));
  for (int64_t o = 0; o < O; ++o) {
    const int64_t first = o / (O / convolution.groups) * own;
    for (int64_t c = 0; c < own; ++c)
      for (int64_t h = 0; h < H; ++h)
        out[static_cast<size_t>((o * H + h) * C + first + c)] = taps[static_cast<size_t>((o * own + c) * H + h)];
  }
  return Tensor::from(out, {O, H * C}, kCpu);
}

Json edges_json(const Reach& reach) { return {{"top", reach.top}, {"left", reach.left}, {"bottom", reach.bottom}, {"right", reach.right}}; }

}  // namespace

std::string kernel_text(const Convolution& convolution) {
  return std::to_string(convolution.weight.size(2)) + " × " + std::to_string(convolution.weight.size(3));
}

std::string name_of(Border border) { return border == Border::zero ? "zero" : border == Border::replicate ? "replicate" : "none"; }

Border border_named(const std::string& name) {
  for (const Border border : kBorders)
    if (name_of(border) == name) return border;
  fail<UsageError>("padding: found ", name, ", expected zero, replicate or none");
}

Reach reach_of(const Convolution& convolution) {
  const int64_t rows = convolution.dilation * (convolution.weight.size(2) - 1),
                columns = convolution.dilation * (convolution.weight.size(3) - 1);
  return {.top = rows / 2, .left = columns / 2, .bottom = rows - rows / 2, .right = columns - columns / 2};
}

Tensor padded_by(const Tensor& x, const Reach& reach, Border border) {
  if (border == Border::none) return x;
  if (border == Border::replicate)
    return index_select(index_select(x, 2, clamped_indices(x.size(2), reach.top, reach.bottom)), 3,
                        clamped_indices(x.size(3), reach.left, reach.right));
  const std::array<std::array<int64_t, 2>, 4> around{{{0, 0}, {0, 0}, {reach.top, reach.bottom}, {reach.left, reach.right}}};
  return pad(x, around);
}

Tensor convolved(const Convolution& convolution, const Tensor& x, Border border) {
  const int64_t stride = convolution.stride, dilation = convolution.dilation;
  return conv2d(padded_by(x, reach_of(convolution), border), convolution.weight, convolution.bias,
                {.stride = {stride, stride}, .dilation = {dilation, dilation}, .groups = convolution.groups});
}

Tensor head_centers(const Convolution& convolution) {
  const Reach reach = reach_of(convolution);
  std::vector<float> centers;
  for (int64_t a = 0; a < convolution.weight.size(2); ++a)
    for (int64_t b = 0; b < convolution.weight.size(3); ++b) {
      centers.push_back(static_cast<float>(reach.top - a * convolution.dilation));
      centers.push_back(static_cast<float>(reach.left - b * convolution.dilation));
    }
  return Tensor::from(centers, {convolution.taps(), 2}, kCpu);
}

Tensor head_maps(const Tensor& alpha, const Tensor& center, int64_t Y, int64_t X, const std::vector<int64_t>& queries) {
  const int64_t H = alpha.size(0), N = Y * X;
  const Tensor nothing = Tensor::zeros({1, 1, N, 1}, kCpu);
  const Tensor maps =
      attention_probabilities(expand(nothing, {1, H, N, 1}), nothing,
                              {.beta = 0.0f, .terms = {Gaussian2d{.alpha = alpha, .center = center, .width = X}}}, {}, queries);
  return reshape(maps, {H, maps.size(2), N});
}

Model attention_layer(const Convolution& convolution, const LayerChoice& choice, int64_t Y, int64_t X) {
  Reach margin = choice.border == Border::replicate ? Reach() : reach_of(convolution),
        zeros = choice.border == Border::zero ? margin : Reach();
  if (choice.border == Border::zero && choice.rings >= 0) margin = zeros = {choice.rings, choice.rings, choice.rings, choice.rings};
  const Json config{{"architectures", {"GaussianAttentionModel"}},
                    {"model_type", "gaussian_attention"},
                    {"image_size", {Y, X}},
                    {"patch_size", 1},
                    {"num_channels", convolution.channels()},
                    {"output_channels", convolution.outputs()},
                    {"num_attention_heads", convolution.taps()},
                    {"output_bias", convolution.bias.defined()},
                    {"zero_padding", edges_json(zeros)},
                    {"margin", edges_json(margin)},
                    {"stride", {convolution.stride, convolution.stride}}};
  Model layer = make_model(config);
  copy_into(Tensor::full({convolution.taps()}, choice.alpha, kCpu), parameter_of(layer, "alpha"));
  copy_into(head_centers(convolution), parameter_of(layer, "center"));
  copy_into(joined_taps(convolution), parameter_of(layer, "output.weight"));
  if (convolution.bias.defined()) copy_into(convolution.bias, parameter_of(layer, "output.bias"));
  return layer;
}

Tensor attended(const Model& layer, const Tensor& x) { return layer({{"pixel_values", x}}).at("last_hidden_state"); }

Tensor parameter_of(const Model& model, const std::string& name) {
  for (const Parameter& parameter : model.params().all())
    if (parameter.name == name || parameter.name.ends_with("." + name)) return parameter.tensor;
  fail("parameter: ", model.architecture(), " has no parameter whose name ends with ", name);
}

void write_layer(const Path& folder, const Model& layer, const Tensor& x, const Tensor& expected) {
  namespace fs = std::filesystem;
  std::error_code error;
  check<UsageError>(!fs::exists(folder, error) ||
                        (fs::is_directory(folder, error) && (fs::is_empty(folder, error) || fs::exists(folder / "io.safetensors"))),
                    "checkpoint: ", folder.string(),
                    " contains files other than an earlier checkpoint of this kind; choose another folder");
  save(layer, folder);
  write_safetensors(folder / "io.safetensors", {{"in.pixel_values", contiguous(x)}, {"out.last_hidden_state", contiguous(expected)}});
}

LayerError error_between(const Convolution& convolution, Border border, const Tensor& x, const Tensor& found, const Tensor& expected) {
  check(found.shape() == expected.shape(), "layer: gives ", found.shape(), ", the convolution ", expected.shape());
  const Reach reach = border == Border::none ? Reach() : reach_of(convolution);
  const int64_t rows = found.size(2), columns = found.size(3), Y = x.size(2), X = x.size(3);
  const std::vector<double> left = values_of(found), right = values_of(expected);
  LayerError out;
  double most = 0;
  for (size_t i = 0; i < left.size(); ++i) {
    const auto place = static_cast<int64_t>(i);
    const int64_t y = place / columns % rows * convolution.stride, at = place % columns * convolution.stride;
    const bool inside = y >= reach.top && y < Y - reach.bottom && at >= reach.left && at < X - reach.right;
    double& worst = inside || border == Border::none ? out.inside : out.border;
    const double distance = std::abs(left[i] - right[i]);
    worst = std::isnan(distance) ? INFINITY : std::max(worst, distance);
    most = std::max(most, std::abs(right[i]));
  }
  if (most > 0) out.inside /= most, out.border /= most;
  return out;
}

LayerError layer_error(const Convolution& convolution, const LayerChoice& choice, const Tensor& x) {
  const NoGrad no_grad;
  const Model layer = attention_layer(convolution, choice, x.size(2), x.size(3));
  return error_between(convolution, choice.border, x, attended(layer, x), convolved(convolution, x, choice.border));
}

void excuse_blur(Report& report, double alpha) {
  double blur = 0;
  for (const Measured& each : report.measured)
    if (each.rule == Measured::Rule::at_most && each.predicted == kRoundingError) blur = std::max(blur, each.measured);
  if (alpha >= kSharpAlpha || blur <= kRoundingError) return;
  std::erase_if(report.measured, [](const Measured& each) { return !each.passes(); });
  report.measured.push_back(at_least("heads that blur: error relative to the largest output", kRoundingError, blur));
  report.undecided = "At α = " + setting_text(alpha) + " the heads still blur: the layer differs from the convolution by up to " +
                     number_text(blur) + " of its largest output. The claim is about sharp heads: from α = " + setting_text(kSharpAlpha) +
                     " on they are sharp to rounding.";
}

}  // namespace heed::lab
