// As Pillow, which models were trained with: filters are widened by the reduction factor, weights are rounded to 22 bits, and the
// intermediate image between the two passes has 8 bits.
#include "heed/io/resize.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "heed/core/parallel.h"

namespace heed {
namespace {

constexpr int kBits = 22;  // fractional bits of a weight: 255 times a sum of weights fits 32 bits

double sinc(double x) { return x == 0 ? 1 : std::sin(x * std::numbers::pi) / (x * std::numbers::pi); }

struct Filter {
  double reach;
  double (*weight)(double x);
};

Filter filter_of(Resample kind) {
  switch (kind) {
    case Resample::box: return {0.5, [](double x) { return x > -0.5 && x <= 0.5 ? 1.0 : 0.0; }};
    case Resample::bilinear: return {1, [](double x) { return std::max(1 - std::abs(x), 0.0); }};
    case Resample::hamming:
      return {1, [](double x) { return std::abs(x) >= 1 ? 0.0 : sinc(x) * (0.54f + 0.46f * std::cos(x * std::numbers::pi)); }};
    case Resample::bicubic:  // Keys 1981 with a = -1/2
      return {2, [](double x) {
                constexpr double a = -0.5;
                x = std::abs(x);
                if (x < 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
                return x < 2 ? (((x - 5) * x + 8) * x - 4) * a : 0.0;
              }};
    case Resample::lanczos: return {3, [](double x) { return -3 <= x && x < 3 ? sinc(x) * sinc(x / 3) : 0.0; }};
    default: fail("resize: found filter ", static_cast<int>(kind), ", expected one from 0 to 5");
  }
}

// The source pixels of each output pixel of a line, and their weights.
struct Taps {
  std::vector<int64_t> first = {}, count = {};
  std::vector<int32_t> weights = {};  // `max_count` per output pixel
  int64_t max_count = 0;
};

Taps taps_of(int64_t from, int64_t to, const Filter& filter) {
  const double scale = static_cast<double>(from) / static_cast<double>(to), filter_scale = std::max(scale, 1.0);
  const double reach = filter.reach * filter_scale, inverse_scale = 1 / filter_scale;
  Taps out{.max_count = static_cast<int64_t>(std::ceil(reach)) * 2 + 1};
  out.weights.resize(static_cast<size_t>(to * out.max_count));
  std::vector<double> exact(static_cast<size_t>(out.max_count));
  for (int64_t i = 0; i < to; ++i) {
    const double center = (static_cast<double>(i) + 0.5) * scale;
    const double low = center - reach + 0.5, high = center + reach + 0.5;  // truncated, not rounded
    const int64_t first = std::max<int64_t>(static_cast<int64_t>(low), 0), count = std::min(static_cast<int64_t>(high), from) - first;
    double sum = 0;
    for (int64_t k = 0; k < count; ++k) {
      const double weight = filter.weight((static_cast<double>(k + first) - center + 0.5) * inverse_scale);
      exact[static_cast<size_t>(k)] = weight;
      sum += weight;
    }
    for (int64_t k = 0; k < count; ++k) {
      const double weight = (sum != 0 ? exact[static_cast<size_t>(k)] / sum : exact[static_cast<size_t>(k)]) * (1 << kBits);
      out.weights[static_cast<size_t>(i * out.max_count + k)] = static_cast<int32_t>(weight + (weight < 0 ? -0.5 : 0.5));
    }
    out.first.push_back(first);
    out.count.push_back(count);
  }
  return out;
}

uint8_t rounded(int32_t sum) { return static_cast<uint8_t>(std::clamp(sum >> kBits, 0, 255)); }

// Tasks of about 100 000 products.
int64_t grain_of(int64_t products) { return std::max<int64_t>(100'000 / std::max<int64_t>(products, 1), 1); }

Image blank(int64_t width, int64_t height) {
  Image out{width, height};
  out.pixels.resize(static_cast<size_t>(width * height * 3));
  return out;
}

Image resize_rows(const Image& image, int64_t width, const Filter& filter) {
  const Taps taps = taps_of(image.width, width, filter);
  Image out = blank(width, image.height);
  parallel_for(image.height, grain_of(width * taps.max_count * 3), [&](int64_t begin, int64_t end) {
    for (int64_t y = begin; y < end; ++y) {
      const uint8_t* const row = image.pixels.data() + y * image.width * 3;
      uint8_t* to = out.pixels.data() + y * width * 3;
      for (int64_t x = 0; x < width; ++x, to += 3) {
        const auto at = static_cast<size_t>(x);
        const uint8_t* from = row + taps.first[at] * 3;
        const int32_t* const weights = taps.weights.data() + x * taps.max_count;
        int32_t red = 1 << (kBits - 1), green = red, blue = red;
        for (int64_t k = 0; k < taps.count[at]; ++k, from += 3) {
          red += from[0] * weights[k];
          green += from[1] * weights[k];
          blue += from[2] * weights[k];
        }
        to[0] = rounded(red);
        to[1] = rounded(green);
        to[2] = rounded(blue);
      }
    }
  });
  return out;
}

Image resize_columns(const Image& image, int64_t height, const Filter& filter) {
  constexpr int64_t chunk = 512;  // bytes of a row per step: the sums stay in the L1 cache
  const Taps taps = taps_of(image.height, height, filter);
  const int64_t bytes = image.width * 3;
  Image out = blank(image.width, height);
  parallel_for(height, grain_of(bytes * taps.max_count), [&](int64_t begin, int64_t end) {
    std::array<int32_t, chunk> sums{};
    for (int64_t y = begin; y < end; ++y) {
      const auto at = static_cast<size_t>(y);
      for (int64_t b = 0; b < bytes; b += chunk) {
        const int64_t count = std::min(chunk, bytes - b);
        sums.fill(1 << (kBits - 1));
        for (int64_t k = 0; k < taps.count[at]; ++k) {
          const uint8_t* const from = image.pixels.data() + (taps.first[at] + k) * bytes + b;
          const int32_t weight = taps.weights[static_cast<size_t>(y * taps.max_count + k)];
          for (int64_t i = 0; i < count; ++i) sums[static_cast<size_t>(i)] += from[i] * weight;
        }
        uint8_t* const to = out.pixels.data() + y * bytes + b;
        for (int64_t i = 0; i < count; ++i) to[i] = rounded(sums[static_cast<size_t>(i)]);
      }
    }
  });
  return out;
}

// Source pixel of each output pixel. Steps are accumulated as in Pillow, for the same rounding.
std::vector<int64_t> nearest_of(int64_t from, int64_t to) {
  std::vector<int64_t> out;
  const double scale = static_cast<double>(from) / static_cast<double>(to);
  double at = scale * 0.5;
  for (int64_t i = 0; i < to; ++i, at += scale) out.push_back(std::min(static_cast<int64_t>(at), from - 1));
  return out;
}

Image resize_nearest(const Image& image, int64_t width, int64_t height) {
  const std::vector<int64_t> columns = nearest_of(image.width, width), rows = nearest_of(image.height, height);
  Image out = blank(width, height);
  parallel_for(height, grain_of(width * 3), [&](int64_t begin, int64_t end) {
    for (int64_t y = begin; y < end; ++y) {
      uint8_t* to = out.pixels.data() + y * width * 3;
      for (int64_t x = 0; x < width; ++x, to += 3)
        std::copy_n(image.pixels.data() + (rows[static_cast<size_t>(y)] * image.width + columns[static_cast<size_t>(x)]) * 3, 3, to);
    }
  });
  return out;
}

void check_image(const char* op, const Image& image, int64_t width, int64_t height) {
  check(image.width > 0 && image.height > 0 && std::ssize(image.pixels) == image.width * image.height * 3, op, ": found ",
        image.pixels.size(), " bytes, expected 3 for each of ", image.width, " x ", image.height, " pixels");
  check(width > 0 && height > 0 && width <= kMaxImagePixels / height, op, ": found a size of ", width, " x ", height,
        " pixels, expected at least 1 x 1 and at most ", kMaxImagePixels);
}

}  // namespace

Image resize(const Image& image, int64_t width, int64_t height, Resample filter) {
  check_image("resize", image, width, height);
  if (image.width == width && image.height == height) return image;
  if (filter == Resample::nearest) return resize_nearest(image, width, height);
  const Filter kernel = filter_of(filter);
  if (image.width == width) return resize_columns(image, height, kernel);
  if (image.height == height) return resize_rows(image, width, kernel);
  // The order of the passes affects rounding. This is Pillow 13's rule; earlier versions always resized rows first.
  if (image.height > height && image.height - height > 2 * (image.width - width))
    return resize_rows(resize_columns(image, height, kernel), width, kernel);
  return resize_columns(resize_rows(image, width, kernel), height, kernel);
}

Image center_crop(const Image& image, int64_t width, int64_t height) {
  check_image("center_crop", image, width, height);
  // An odd surplus is cut at the right and bottom; an odd deficit is padded at the left and top.
  const auto middle = [](int64_t whole, int64_t part) { return (whole - part - (whole < part ? 1 : 0)) / 2; };
  const int64_t left = middle(image.width, width), top = middle(image.height, height);
  const int64_t x = std::max<int64_t>(-left, 0), count = std::min(width, image.width - left) - x;
  Image out = blank(width, height);
  for (int64_t y = std::max<int64_t>(-top, 0); y < std::min(height, image.height - top); ++y)
    std::copy_n(image.pixels.data() + ((top + y) * image.width + left + x) * 3, count * 3, out.pixels.data() + (y * width + x) * 3);
  return out;
}

}  // namespace heed
