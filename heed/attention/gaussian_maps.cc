// Maps are small, of a few thousand numbers: one thread computes them on the CPU.
#include "heed/attention/gaussian_maps.h"

#include <algorithm>
#include <cmath>

#include "heed/core/raw.h"
#include "heed/ops/storage.h"

namespace heed {
namespace {

// map: (queries, keys)
void fill_gaussian_map(float alpha, float center, int64_t queries, int64_t keys, float* map) {
  for (int64_t i = 0; i < queries; ++i, map += keys) {
    float most = -HUGE_VALF, total = 0;
    for (int64_t j = 0; j < keys; ++j) {
      const float away = static_cast<float>(i - j) - center;
      map[j] = -alpha * away * away;
      most = std::max(most, map[j]);
    }
    for (int64_t j = 0; j < keys; ++j) total += map[j] = std::exp(map[j] - most);
    for (int64_t j = 0; j < keys; ++j) map[j] /= total;
  }
}

// Gradients of alpha and center.
std::pair<float, float> gaussian_map_gradient(float alpha, float center, int64_t queries, int64_t keys, const float* map,
                                              const float* dmap) {
  float dalpha = 0, dcenter = 0;
  for (int64_t i = 0; i < queries; ++i, map += keys, dmap += keys) {
    float mean = 0;
    for (int64_t j = 0; j < keys; ++j) mean += map[j] * dmap[j];
    for (int64_t j = 0; j < keys; ++j) {
      const float away = static_cast<float>(i - j) - center, dscore = map[j] * (dmap[j] - mean);
      dalpha -= away * away * dscore;
      dcenter += 2 * alpha * away * dscore;
    }
  }
  return {dalpha, dcenter};
}

}  // namespace

void cpu::gaussian_maps_forward(const GaussianMapsForward& w) {
  const GaussianMapSizes& z = w.sizes;
  for (int64_t h = 0; h < z.H; ++h) {
    fill_gaussian_map(w.alpha[h], w.center[2 * h], z.Y, z.R, w.rows + h * z.Y * z.R);
    fill_gaussian_map(w.alpha[h], w.center[2 * h + 1], z.X, z.C, w.columns + h * z.X * z.C);
  }
}

void cpu::gaussian_maps_backward(const GaussianMapsBackward& w) {
  const GaussianMapSizes& z = w.sizes;
  for (int64_t h = 0; h < z.H; ++h) {
    const int64_t row_map = h * z.Y * z.R, column_map = h * z.X * z.C;
    const auto [alpha_by_rows, down] = gaussian_map_gradient(w.alpha[h], w.center[2 * h], z.Y, z.R, w.rows + row_map, w.drows + row_map);
    const auto [alpha_by_columns, along] =
        gaussian_map_gradient(w.alpha[h], w.center[2 * h + 1], z.X, z.C, w.columns + column_map, w.dcolumns + column_map);
    w.dalpha[h] = alpha_by_rows + alpha_by_columns;
    w.dcenter[2 * h] = down;
    w.dcenter[2 * h + 1] = along;
  }
}

std::pair<Tensor, Tensor> gaussian_maps(const Tensor& alpha_of, const Tensor& center_of, const GaussianMapSizes& sizes) {
  check(alpha_of.shape() == Shape{sizes.H} && center_of.shape() == Shape{sizes.H, 2}, "gaussian_maps: alpha ", alpha_of.shape(),
        " and center ", center_of.shape(), ", expected (", sizes.H, ") and (", sizes.H, ", 2)");
  const Device device = common_device("gaussian_maps", {&alpha_of, &center_of});
  const Tensor alpha = dense_f32("gaussian_maps", alpha_of), center = dense_f32("gaussian_maps", center_of),
               rows = Tensor::empty({sizes.H, sizes.Y, sizes.R}, DType::f32, device),
               columns = Tensor::empty({sizes.H, sizes.X, sizes.C}, DType::f32, device);
  launch(
      gaussian_maps_forward, device,
      {.sizes = sizes, .alpha = raw<float>(alpha), .center = raw<float>(center), .rows = raw<float>(rows), .columns = raw<float>(columns)});
  const auto back = [=](const Grads& gradients) {
    const auto dense = [](const Tensor& gradient, const Tensor& map) {
      return gradient.defined() ? dense_f32("gaussian_maps", gradient) : Tensor::zeros(map.shape(), DType::f32, map.device());
    };
    const Tensor drows = dense(gradients[0], rows), dcolumns = dense(gradients[1], columns),
                 dalpha = Tensor::empty(alpha.shape(), DType::f32, device), dcenter = Tensor::empty(center.shape(), DType::f32, device);
    launch(gaussian_maps_backward, device,
           {.sizes = sizes,
            .alpha = raw<float>(alpha),
            .center = raw<float>(center),
            .rows = raw<float>(rows),
            .columns = raw<float>(columns),
            .drows = raw<float>(drows),
            .dcolumns = raw<float>(dcolumns),
            .dalpha = raw<float>(dalpha),
            .dcenter = raw<float>(dcenter)});
    return Grads{dalpha, dcenter};
  };
  const Tensors maps = record_all(op::gaussian_maps, {rows, columns}, {alpha_of, center_of}, back);
  return {maps[0], maps[1]};
}

}  // namespace heed
