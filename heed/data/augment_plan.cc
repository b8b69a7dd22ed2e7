#include "heed/data/augment_plan.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "heed/data/draws.h"
#include "heed/data/image_ops.h"

namespace heed {
namespace {

// Every step has its own random stream, so enabling one does not change the others.
enum AugmentStream : uint64_t { kResizedCrop, kPad, kFlip, kOps, kColour, kErase };

constexpr int kTries = 10;  // attempts to fit a rectangle

// A random rectangle inside the image, with an area fraction in [min_area, max_area] and an aspect ratio in [1 / ratio, ratio]. None if
// none fits.
Box random_box(Draws& draws, int64_t width, int64_t height, double min_area, double max_area, double ratio) {
  for (int i = 0; i < kTries; ++i) {
    const double area = static_cast<double>(width * height) * draws.between(min_area, max_area);
    const double shape = std::exp(draws.between(-std::log(ratio), std::log(ratio)));
    const int64_t w = std::max<int64_t>(std::lround(std::sqrt(area * shape)), 1),
                  h = std::max<int64_t>(std::lround(std::sqrt(area / shape)), 1);
    if (w <= width && h <= height) return {draws.below(width - w + 1), draws.below(height - h + 1), w, h};
  }
  return {};
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
ErasedPart draw_erased(double probability, ImageSize size, RandomKey key) {
  Draws draws(key, kErase);
  if (draws.unit() >= probability) return {};
  const Box box = random_box(draws, size.width, size.height, 0.02, 1.0 / 3, 10.0 / 3);
  return {.left = box.left,
          .top = box.top,
          .width = box.width,
          .height = box.height,
          .seed = key.seed,
          .stream = key.stream,
          .first_block = uint64_t{kErase} << 32,
          .first = draws.count()};
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

void check_options(const AugmentOptions& options) {
  check(options.pad >= 0 && options.pad <= 1 << 20, "augmented: found pad ", options.pad, ", expected 0 to ", 1 << 20);
  check(options.resized_crop > 0 && options.resized_crop <= 1, "augmented: found resized_crop ", options.resized_crop,
        ", expected a share of the area above 0, at most 1");
  check(options.colour >= 0 && std::isfinite(options.colour), "augmented: found colour ", options.colour, ", expected at least 0");
  check(options.random_ops >= 0, "augmented: found random_ops ", options.random_ops, ", expected at least 0");
  check(options.random_strength >= 0 && options.random_strength <= 1, "augmented: found random_strength ", options.random_strength,
        ", expected 0 to 1");
  check(options.erase >= 0 && options.erase <= 1, "augmented: found erase ", options.erase, ", expected a probability");
}

// Szegedy et al. 2015, "Going Deeper with Convolutions".
Box draw_resized_crop(const AugmentOptions& options, ImageSize size, RandomKey key) {
  if (options.resized_crop == 1) return {};
  Draws draws(key, kResizedCrop);
  return random_box(draws, size.width, size.height, static_cast<double>(options.resized_crop), 1, 4.0 / 3);
}

DrawnPlan draw_plan(const AugmentOptions& options, ImageSize size, RandomKey key) {
  DrawnPlan out;
  const auto add = [&](ImageOp op, float amount) { out.steps.push_back(pixel_step(op, amount, size.width, size.height)); };
  if (options.pad > 0) {
    Draws draws(key, kPad);
    out.image.left = draws.below(2 * options.pad + 1) - options.pad;
    out.image.top = draws.below(2 * options.pad + 1) - options.pad;
  }
  out.image.flip = options.flip && Draws(key, kFlip).coin() ? 1 : 0;
  Draws ops(key, kOps);
  for (int64_t i = 0; i < options.random_ops; ++i) {
    const auto op = static_cast<ImageOp>(ops.below(kImageOps));
    add(op, amount_of(op, static_cast<double>(options.random_strength), ops));
  }
  if (options.colour > 0) {
    Draws draws(key, kColour);
    const auto most = static_cast<double>(options.colour);
    for (const ImageOp op : {ImageOp::brightness, ImageOp::contrast, ImageOp::saturation})
      add(op, static_cast<float>(std::max(draws.between(1 - most, 1 + most), 0.0)));
  }
  if (options.erase > 0) out.image.erased = draw_erased(static_cast<double>(options.erase), size, key);
  return out;
}

MixPlan draw_mix(const MixOptions& mixing, int64_t B, int64_t height, int64_t width, RandomKey key) {
  check(mixing.mixup >= 0 && mixing.cutmix >= 0 && std::isfinite(mixing.mixup + mixing.cutmix), "mixed: found alphas ", mixing.mixup,
        " and ", mixing.cutmix, ", expected at least 0");
  MixPlan out;
  if ((mixing.mixup == 0 && mixing.cutmix == 0) || B * height * width == 0) return out;
  Draws draws(key);
  const bool both = mixing.mixup > 0 && mixing.cutmix > 0;
  out.cut = both ? draws.coin() : mixing.cutmix > 0;
  const double share = beta_draw(static_cast<double>(out.cut ? mixing.cutmix : mixing.mixup), draws);
  out.other.resize(static_cast<size_t>(B));
  std::iota(out.other.begin(), out.other.end(), 0);
  for (int64_t i = B - 1; i > 0; --i) std::swap(out.other[static_cast<size_t>(i)], out.other[static_cast<size_t>(draws.below(i + 1))]);
  out.share = static_cast<float>(share);
  if (!out.cut) return out;
  // A rectangle of area fraction 1 - share with a random centre, clipped to the image.
  const double side = std::sqrt(1 - share);
  const auto clipped_range = [&](int64_t size) {
    const auto middle = draws.below(size), half = std::lround(static_cast<double>(size) * side / 2);
    return std::pair{std::max<int64_t>(middle - half, 0), std::min<int64_t>(middle + half, size)};
  };
  std::tie(out.top, out.bottom) = clipped_range(height);
  std::tie(out.left, out.right) = clipped_range(width);
  out.share =
      static_cast<float>(1 - static_cast<double>((out.bottom - out.top) * (out.right - out.left)) / static_cast<double>(height * width));
  return out;
}

}  // namespace heed
