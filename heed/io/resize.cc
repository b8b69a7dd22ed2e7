// A filter is stretched by the factor that the picture shrinks by, its weights are rounded to 22 bits, and between rows and
// columns there are 8 bits: that is how Pillow computes, and thus what models were trained on.
#include "heed/io/resize.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "heed/core/parallel.h"

namespace heed {
namespace {

constexpr int kBits = 22;  // of a weight behind the point: 255 times a sum of weights stays within 32 bits

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

// Which pixels of a line a pixel of the new line is made of, and how much of each.
struct Taps {
  std::vector<int64_t> first = {}, count = {};
  std::vector<int32_t> weights = {};  // `most` for each new pixel
  int64_t most = 0;
};

Taps taps_of(int64_t from, int64_t to, const Filter& filter) {
  const double scale = static_cast<double>(from) / static_cast<double>(to), stretch = std::max(scale, 1.0);
  const double reach = filter.reach * stretch, narrow = 1 / stretch;
  Taps out{.most = static_cast<int64_t>(std::ceil(reach)) * 2 + 1};
  out.weights.resize(static_cast<size_t>(to * out.most));
  std::vector<double> exact(static_cast<size_t>(out.most));
  for (int64_t i = 0; i < to; ++i) {
    const double center = (static_cast<double>(i) + 0.5) * scale;
    const int64_t first = std::max<int64_t>(static_cast<int64_t>(center - reach + 0.5), 0);
    const int64_t count = std::min(static_cast<int64_t>(center + reach + 0.5), from) - first;
    double sum = 0;
    for (int64_t k = 0; k < count; ++k) {
      const double weight = filter.weight((static_cast<double>(k + first) - center + 0.5) * narrow);
      exact[static_cast<size_t>(k)] = weight;
      sum += weight;
    }
    for (int64_t k = 0; k < count; ++k) {
      const double weight = (sum != 0 ? exact[static_cast<size_t>(k)] / sum : exact[static_cast<size_t>(k)]) * (1 << kBits);
      out.weights[static_cast<size_t>(i * out.most + k)] = static_cast<int32_t>(weight + (weight < 0 ? -0.5 : 0.5));
    }
    out.first.push_back(first);
    out.count.push_back(count);
  }
  return out;
}

uint8_t rounded(int32_t sum) { return static_cast<uint8_t>(std::clamp(sum >> kBits, 0, 255)); }

// Tasks of some 100 000 products each.
int64_t grain_of(int64_t products) { return std::max<int64_t>(100'000 / std::max<int64_t>(products, 1), 1); }

Picture blank(int64_t width, int64_t height) {
  Picture out{width, height};
  out.pixels.resize(static_cast<size_t>(width * height * 3));
  return out;
}

Picture resize_rows(const Picture& picture, int64_t width, const Filter& filter) {
  const Taps taps = taps_of(picture.width, width, filter);
  Picture out = blank(width, picture.height);
  parallel_for(picture.height, grain_of(width * taps.most * 3), [&](int64_t begin, int64_t end) {
    for (int64_t y = begin; y < end; ++y) {
      const uint8_t* const row = picture.pixels.data() + y * picture.width * 3;
      uint8_t* to = out.pixels.data() + y * width * 3;
      for (int64_t x = 0; x < width; ++x, to += 3) {
        const auto at = static_cast<size_t>(x);
        const uint8_t* from = row + taps.first[at] * 3;
        const int32_t* const weights = taps.weights.data() + x * taps.most;
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

Picture resize_columns(const Picture& picture, int64_t height, const Filter& filter) {
  constexpr int64_t piece = 512;  // bytes of a row at once: their sums stay in the nearest cache
  const Taps taps = taps_of(picture.height, height, filter);
  const int64_t bytes = picture.width * 3;
  Picture out = blank(picture.width, height);
  parallel_for(height, grain_of(bytes * taps.most), [&](int64_t begin, int64_t end) {
    std::array<int32_t, piece> sums{};
    for (int64_t y = begin; y < end; ++y) {
      const auto at = static_cast<size_t>(y);
      for (int64_t b = 0; b < bytes; b += piece) {
        const int64_t count = std::min(piece, bytes - b);
        sums.fill(1 << (kBits - 1));
        for (int64_t k = 0; k < taps.count[at]; ++k) {
          const uint8_t* const from = picture.pixels.data() + (taps.first[at] + k) * bytes + b;
          const int32_t weight = taps.weights[static_cast<size_t>(y * taps.most + k)];
          for (int64_t i = 0; i < count; ++i) sums[static_cast<size_t>(i)] += from[i] * weight;
        }
        uint8_t* const to = out.pixels.data() + y * bytes + b;
        for (int64_t i = 0; i < count; ++i) to[i] = rounded(sums[static_cast<size_t>(i)]);
      }
    }
  });
  return out;
}

// Where a new line takes its pixels: steps add up, as in Pillow, so that the same roundings happen.
std::vector<int64_t> nearest_of(int64_t from, int64_t to) {
  std::vector<int64_t> out;
  const double scale = static_cast<double>(from) / static_cast<double>(to);
  double at = scale * 0.5;
  for (int64_t i = 0; i < to; ++i, at += scale) out.push_back(std::min(static_cast<int64_t>(at), from - 1));
  return out;
}

Picture resize_nearest(const Picture& picture, int64_t width, int64_t height) {
  const std::vector<int64_t> columns = nearest_of(picture.width, width), rows = nearest_of(picture.height, height);
  Picture out = blank(width, height);
  parallel_for(height, grain_of(width * 3), [&](int64_t begin, int64_t end) {
    for (int64_t y = begin; y < end; ++y) {
      uint8_t* to = out.pixels.data() + y * width * 3;
      for (int64_t x = 0; x < width; ++x, to += 3)
        std::copy_n(picture.pixels.data() + (rows[static_cast<size_t>(y)] * picture.width + columns[static_cast<size_t>(x)]) * 3, 3, to);
    }
  });
  return out;
}

void check_picture(const char* op, const Picture& picture, int64_t width, int64_t height) {
  check(picture.width > 0 && picture.height > 0 && std::ssize(picture.pixels) == picture.width * picture.height * 3, op, ": found ",
        picture.pixels.size(), " bytes, expected 3 for each of ", picture.width, " x ", picture.height, " pixels");
  check(width > 0 && height > 0 && width <= kMostPixels / height, op, ": found a wish for ", width, " x ", height,
        " pixels, expected at least 1 x 1 and at most ", kMostPixels);
}

}  // namespace

Picture resize(const Picture& picture, int64_t width, int64_t height, Resample filter) {
  check_picture("resize", picture, width, height);
  if (picture.width == width && picture.height == height) return picture;
  if (filter == Resample::nearest) return resize_nearest(picture, width, height);
  const Filter kernel = filter_of(filter);
  if (picture.width == width) return resize_columns(picture, height, kernel);
  if (picture.height == height) return resize_rows(picture, width, kernel);
  // The order decides about roundings between the two. Pillow 13 has this rule; before, rows always came first.
  if (picture.height > height && picture.height - height > 2 * (picture.width - width))
    return resize_rows(resize_columns(picture, height, kernel), width, kernel);
  return resize_columns(resize_rows(picture, width, kernel), height, kernel);
}

Picture center_crop(const Picture& picture, int64_t width, int64_t height) {
  check_picture("center_crop", picture, width, height);
  // What is left over and cannot be halved goes to the far side; what is lacking, to the near side.
  const auto middle = [](int64_t whole, int64_t part) { return (whole - part - (whole < part ? 1 : 0)) / 2; };
  const int64_t left = middle(picture.width, width), top = middle(picture.height, height);
  const int64_t x = std::max<int64_t>(-left, 0), count = std::min(width, picture.width - left) - x;
  Picture out = blank(width, height);
  for (int64_t y = std::max<int64_t>(-top, 0); y < std::min(height, picture.height - top); ++y)
    std::copy_n(picture.pixels.data() + ((top + y) * picture.width + left + x) * 3, count * 3, out.pixels.data() + (y * width + x) * 3);
  return out;
}

}  // namespace heed
