#include "heed/data/augment.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "heed/data/draws.h"
#include "heed/data/image_ops.h"
#include "heed/io/resize.h"

namespace heed {
namespace {

// Every step has its own random stream, so enabling one does not change the others.
enum AugmentStream : uint64_t { kResizedCrop, kPad, kFlip, kOps, kColour, kErase };

constexpr int kTries = 10;  // attempts to fit a rectangle

struct Box {
  int64_t left, top, width, height;
};

// A random rectangle inside the image, with an area fraction in [min_area, max_area] and an aspect ratio in [1 / ratio, ratio]. Width 0
// if none fits.
Box random_box(Draws& draws, int64_t width, int64_t height, double min_area, double max_area, double ratio) {
  for (int i = 0; i < kTries; ++i) {
    const double area = static_cast<double>(width * height) * draws.between(min_area, max_area);
    const double shape = std::exp(draws.between(-std::log(ratio), std::log(ratio)));
    const int64_t w = std::max<int64_t>(std::lround(std::sqrt(area * shape)), 1),
                  h = std::max<int64_t>(std::lround(std::sqrt(area / shape)), 1);
    if (w <= width && h <= height) return {draws.below(width - w + 1), draws.below(height - h + 1), w, h};
  }
  return {0, 0, 0, 0};
}

// Szegedy et al. 2015, "Going Deeper with Convolutions".
Image resized_crop(const Image& image, double min_area, Draws draws) {
  const Box box = random_box(draws, image.width, image.height, min_area, 1, 4.0 / 3);
  if (box.width == 0) return image;
  return resize(cropped(image, box.left, box.top, box.width, box.height), image.width, image.height);
}

void change_colours(Image& image, double max_change, Draws draws) {
  for (const ImageOp op : {ImageOp::brightness, ImageOp::contrast, ImageOp::saturation})
    image = apply_op(image, op, static_cast<float>(std::max(draws.between(1 - max_change, 1 + max_change), 0.0)));
}

// The amount of an operation for a strength of 0 to 1. Strength 0 changes nothing, except for the three operations without an amount.
float amount_of(ImageOp op, double strength, Draws& draws) {
  const double sign = draws.sign();
  switch (op) {
    case ImageOp::rotate: return static_cast<float>(sign * 30 * strength);
    case ImageOp::shear_x:
    case ImageOp::shear_y: return static_cast<float>(sign * 0.3 * strength);
    case ImageOp::translate_x:
    case ImageOp::translate_y: return static_cast<float>(sign * 0.3 * strength);
    case ImageOp::posterize: return static_cast<float>(8 - std::lround(4 * strength));
    case ImageOp::solarize: return static_cast<float>(256 * (1 - strength));
    default: return static_cast<float>(1 + sign * 0.9 * strength);
  }
}

// Zhong et al. 2020, "Random Erasing Data Augmentation".
void erase_part(Image& image, double probability, Draws draws) {
  if (draws.unit() >= probability) return;
  const Box box = random_box(draws, image.width, image.height, 0.02, 1.0 / 3, 10.0 / 3);
  for (int64_t y = box.top; y < box.top + box.height; ++y) {
    uint8_t* const row = image.pixels.data() + 3 * (y * image.width + box.left);
    for (int64_t i = 0; i < 3 * box.width; ++i) row[i] = static_cast<uint8_t>(draws.bits() >> 24);
  }
}

void check_options(const Image& image, const AugmentOptions& options) {
  check(image.width > 0 && image.height > 0 && std::ssize(image.pixels) == image.width * image.height * 3, "augmented: found ",
        image.pixels.size(), " bytes, expected 3 for each of ", image.width, " x ", image.height, " pixels");
  check(options.pad >= 0 && options.pad <= 1 << 20, "augmented: found pad ", options.pad, ", expected 0 to ", 1 << 20);
  check(options.resized_crop > 0 && options.resized_crop <= 1, "augmented: found resized_crop ", options.resized_crop,
        ", expected a share of the area above 0, at most 1");
  check(options.colour >= 0 && std::isfinite(options.colour), "augmented: found colour ", options.colour, ", expected at least 0");
  check(options.random_ops >= 0, "augmented: found random_ops ", options.random_ops, ", expected at least 0");
  check(options.random_strength >= 0 && options.random_strength <= 1, "augmented: found random_strength ", options.random_strength,
        ", expected 0 to 1");
  check(options.erase >= 0 && options.erase <= 1, "augmented: found erase ", options.erase, ", expected a probability");
}

// The logarithm of a Gamma variable (Marsaglia and Tsang 2000, "A Simple Method for Generating Gamma Variables"). For small shapes the
// variable itself can underflow a double.
double log_gamma_draw(double shape, Draws& draws) {
  const double small = shape < 1 ? std::log(1 - draws.unit()) / shape : 0;
  const double d = (shape < 1 ? shape + 1 : shape) - 1.0 / 3, c = 1 / std::sqrt(9 * d);
  for (;;) {
    const double x = draws.normal(), v = std::pow(1 + c * x, 3);
    if (v > 0 && std::log(1 - draws.unit()) < x * x / 2 + d - d * v + d * std::log(v)) return std::log(d * v) + small;
  }
}

double beta_draw(double alpha, Draws& draws) {
  const double a = log_gamma_draw(alpha, draws), b = log_gamma_draw(alpha, draws);
  return 1 / (1 + std::exp(b - a));
}

}  // namespace

Image augmented(const Image& image, const AugmentOptions& options, RandomKey key) {
  check_options(image, options);
  Image out = options.resized_crop < 1 ? resized_crop(image, static_cast<double>(options.resized_crop), Draws(key, kResizedCrop)) : image;
  if (options.pad > 0) {
    Draws draws(key, kPad);
    const int64_t left = draws.below(2 * options.pad + 1) - options.pad, top = draws.below(2 * options.pad + 1) - options.pad;
    out = cropped(out, left, top, out.width, out.height);
  }
  if (options.flip && Draws(key, kFlip).coin()) flip_horizontal(out);
  Draws draws(key, kOps);
  for (int64_t i = 0; i < options.random_ops; ++i) {
    const auto op = static_cast<ImageOp>(draws.below(kImageOps));
    out = apply_op(out, op, amount_of(op, static_cast<double>(options.random_strength), draws));
  }
  if (options.colour > 0) change_colours(out, static_cast<double>(options.colour), Draws(key, kColour));
  if (options.erase > 0) erase_part(out, static_cast<double>(options.erase), Draws(key, kErase));
  return out;
}

MixedBatch mixed(const Tensor& pixels, const MixOptions& mixing, RandomKey key) {
  check(mixing.mixup >= 0 && mixing.cutmix >= 0 && std::isfinite(mixing.mixup + mixing.cutmix), "mixed: found alphas ", mixing.mixup,
        " and ", mixing.cutmix, ", expected at least 0");
  check(pixels.rank() == 4 && pixels.dtype() == DType::f32, "mixed: found pixels of shape ", pixels.shape(),
        ", expected (B, C, Y, X) of f32");
  if ((mixing.mixup == 0 && mixing.cutmix == 0) || pixels.count() == 0) return {pixels};
  Draws draws(key);
  const bool both = mixing.mixup > 0 && mixing.cutmix > 0, cut = both ? draws.coin() : mixing.cutmix > 0;
  double share = beta_draw(static_cast<double>(cut ? mixing.cutmix : mixing.mixup), draws);
  const int64_t B = pixels.size(0), C = pixels.size(1), Y = pixels.size(2), X = pixels.size(3);
  MixedBatch out{.pixels = {}, .other = std::vector<int64_t>(static_cast<size_t>(B))};
  std::iota(out.other.begin(), out.other.end(), 0);
  for (int64_t i = B - 1; i > 0; --i) std::swap(out.other[static_cast<size_t>(i)], out.other[static_cast<size_t>(draws.below(i + 1))]);

  const std::vector<float> from = pixels.to_vector<float>();
  const auto to = std::make_shared<std::vector<float>>(from);
  if (cut) {
    // A rectangle of area fraction 1 - share with a random centre, clipped to the image.
    const double side = std::sqrt(1 - share);
    const auto clipped_range = [&](int64_t size) {
      const auto middle = draws.below(size), half = std::lround(static_cast<double>(size) * side / 2);
      return std::pair{std::max<int64_t>(middle - half, 0), std::min<int64_t>(middle + half, size)};
    };
    const auto [top, bottom] = clipped_range(Y);
    const auto [left, right] = clipped_range(X);
    for (int64_t b = 0; b < B; ++b)
      for (int64_t row = 0; row < C * Y; ++row) {
        if (row % Y < top || row % Y >= bottom) continue;
        const int64_t other = (out.other[static_cast<size_t>(b)] * C * Y + row) * X;
        std::copy(from.begin() + other + left, from.begin() + other + right, to->begin() + (b * C * Y + row) * X + left);
      }
    share = 1 - static_cast<double>((bottom - top) * (right - left)) / static_cast<double>(Y * X);
  }
  out.share = static_cast<float>(share);
  if (!cut)
    for (int64_t b = 0; b < B; ++b) {
      const float* const other = from.data() + out.other[static_cast<size_t>(b)] * C * Y * X;
      float* const own = to->data() + b * C * Y * X;
      for (int64_t i = 0; i < C * Y * X; ++i) own[i] = out.share * own[i] + (1 - out.share) * other[i];
    }
  out.pixels = Tensor::borrow(to, reinterpret_cast<std::byte*>(to->data()), pixels.shape(), DType::f32);
  return out;
}

}  // namespace heed
