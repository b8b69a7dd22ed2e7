// Batch normalisation (Ioffe and Szegedy 2015): the op, its gradient, and batches that are cut into shards.
#include "heed/ops/batch_norm.h"

#include <algorithm>

#include "heed/core/raw.h"
#include "heed/ops/batch_shards.h"
#include "heed/ops/ops.h"
#include "heed/ops/storage.h"

namespace heed {
namespace {

// Without pixels the channels are columns: transposed, so that the values of a channel are adjacent.
bool must_transpose(const Tensor& x) { return x.size(0) > 1 && x.count() == x.size(0) * x.size(1); }

// x: (B, C, ...) -> (1, C, B), dense.
Tensor transposed(const Tensor& x) { return contiguous(x.view({1, x.size(1), x.size(0)}, {0, x.strides()[1], x.strides()[0]})); }

// x: (1, C, B), dense -> a view of `shape`, (B, C, 1, ...).
Tensor transposed_back(const Tensor& x, const Shape& shape) {
  Shape strides = dense_strides(shape);
  strides[0] = 1;
  strides[1] = shape[0];
  return x.view(shape, strides);
}

BatchSizes batch_sizes_of(const Tensor& x) {
  const int64_t images = x.size(0), channels = x.size(1);
  return {.images = images, .channels = channels, .pixels = x.count() / std::max<int64_t>(1, images * channels)};
}

// What the gradient needs of a batch norm.
struct Normalised {
  Tensor x, w, mean, rstd;  // x: (images, channels, ...), w, mean, rstd: (channels)
  bool training;
};

// The sums of dw and db over all shards of a batch.
struct ShardGradients {
  Tensor dw, db;   // (channels)
  int64_t values;  // of a channel, in all shards
};

// g: as x -> {dx or nothing, dw, db}. all: not null: only dx is computed
Grads gradients(const Normalised& n, const Tensor& g, bool to_x, const ShardGradients* all = nullptr) {
  const Device device = n.x.device();
  Grads grads(3);
  if (to_x) grads[0] = Tensor::empty(n.x.shape(), n.x.dtype(), device);
  if (!all) grads[1] = Tensor::empty(n.w.shape(), device), grads[2] = Tensor::empty(n.w.shape(), device);
  launch(batch_norm_backward, device,
         {.x = Raw::bytes(n.x),
          .g = Raw::bytes(g),
          .weight = raw<float>(n.w),
          .mean = raw<float>(n.mean),
          .rstd = raw<float>(n.rstd),
          .dx = Raw::bytes_or_null(grads[0]),
          .dw = raw_or_null<float>(grads[1]),
          .db = raw_or_null<float>(grads[2]),
          .sizes = batch_sizes_of(n.x),
          .dtype = n.x.dtype(),
          .training = n.training,
          .all_dw = all ? raw<float>(all->dw) : nullptr,
          .all_db = all ? raw<float>(all->db) : nullptr,
          .all_values = all ? all->values : 0});
  return grads;
}

Tensor channels_from(const std::vector<double>& values, Device device) {
  return Tensor::from(std::vector<float>(values.begin(), values.end()), {std::ssize(values)}, device);
}

// The same for a shard: dw and db are those of the shard, and dx depends on the sums over all shards. values: of a channel, in all shards
Grads shard_gradients(const Normalised& n, const Tensor& g, bool to_x, BatchShards& shards, int64_t values) {
  Grads grads = gradients(n, g, false);
  if (!to_x) return grads;
  const auto C = static_cast<size_t>(n.w.count());
  std::vector<double> own;  // dw, db
  for (const size_t i : {1, 2})
    for (const float value : grads[i].to_vector<float>()) own.push_back(value);
  std::vector<double> dw(C), db(C);
  for (const std::vector<double>& shard : shards.all_of(own))
    for (size_t c = 0; c < C; ++c) dw[c] += shard[c], db[c] += shard[C + c];
  const ShardGradients all{channels_from(dw, n.x.device()), channels_from(db, n.x.device()), values};
  grads[0] = gradients(n, g, true, &all)[0];
  return grads;
}

void check_values(int64_t values) { check(values > 1, "batch_norm: ", values, " values in a channel, training needs 2 or more"); }

void check_inputs(const Tensor& x, const Tensor& w, const Tensor& b, const BatchNorm& state) {
  check(x.rank() >= 2, "batch_norm: x has shape ", x.shape(), ", expected (B, C, ...)");
  const int64_t channels = x.size(1);
  check(w.shape() == Shape{channels}, "batch_norm: the weight has shape ", w.shape(), ", x ", channels, " channels");
  check(b.shape() == Shape{channels}, "batch_norm: the bias has shape ", b.shape(), ", x ", channels, " channels");
  for (const Tensor* running : {&state.running_mean, &state.running_variance}) {
    if (!running->defined()) {
      check(state.training, "batch_norm: evaluation needs the running mean and variance");
      continue;
    }
    check(running->shape() == Shape{channels}, "batch_norm: the running statistics have shape ", running->shape(), ", x ", channels,
          " channels");
    check(running->dtype() == DType::f32 && running->is_contiguous(), "batch_norm: the running statistics are ",
          running->is_contiguous() ? "dense " : "strided ", name_of(running->dtype()), ", expected dense f32");
  }
  if (!state.training || ShardScope::newest()) return;
  check_values(x.size(0) * (x.count() / std::max<int64_t>(1, x.size(0) * channels)));
}

// y may be undefined.
void normalise_batch(const Normalised& n, const Tensor& b, const BatchNorm& state, const Tensor& y) {
  launch(batch_norm_forward, n.x.device(),
         {.x = Raw::bytes(n.x),
          .weight = raw<float>(n.w),
          .bias = raw<float>(b),
          .running_mean = raw_or_null<float>(state.running_mean),
          .running_variance = raw_or_null<float>(state.running_variance),
          .y = Raw::bytes_or_null(y),
          .mean = raw<float>(n.mean),
          .rstd = raw<float>(n.rstd),
          .sizes = batch_sizes_of(n.x),
          .eps = state.eps,
          .momentum = state.momentum,
          .dtype = n.x.dtype(),
          .training = state.training});
}

void follow(const Tensor& running, const std::vector<double>& now, double momentum) {
  if (!running.defined()) return;
  std::vector<double> values;
  for (const double before : running.to_vector<float>()) values.push_back((1 - momentum) * before + momentum * now[values.size()]);
  copy_into(channels_from(values, running.device()), running);
}

// Normalises a shard by the mean and the variance of all shards. Returns the number of values of a channel in all of them.
int64_t normalise_shard(const Normalised& n, const Tensor& b, const BatchNorm& state, const Tensor& y, BatchShards& shards) {
  const auto C = static_cast<size_t>(n.w.count());
  normalise_batch(n, b, {.eps = 0}, {});  // rstd^-2 is the variance
  std::vector<double> own{static_cast<double>(batch_sizes_of(n.x).values())};
  for (const float mean : n.mean.to_vector<float>()) own.push_back(mean);
  for (const double rstd : n.rstd.to_vector<float>()) own.push_back(1 / (rstd * rstd));
  double count = 0;
  std::vector<double> mean(C), variance(C);
  for (const std::vector<double>& shard : shards.all_of(own)) {
    const double more = shard[0];
    for (size_t c = 0; c < C; ++c) {  // Chan, Golub and LeVeque 1979; variance: times count
      const double apart = shard[1 + c] - mean[c];
      variance[c] += shard[1 + C + c] * more + apart * apart * count * more / (count + more);
      mean[c] += apart * more / (count + more);
    }
    count += more;
  }
  check_values(static_cast<int64_t>(count));
  std::vector<double> unbiased;
  for (double& each : variance) unbiased.push_back(each / (count - 1)), each /= count;
  if (shards.is_first_here()) {
    follow(state.running_mean, mean, state.momentum);
    follow(state.running_variance, unbiased, state.momentum);
  }
  const Device device = n.x.device();
  normalise_batch(n, b, {channels_from(mean, device), channels_from(variance, device), false, 0, state.eps}, y);
  return static_cast<int64_t>(count);
}

}  // namespace

Tensor batch_norm(const Tensor& input, const Tensor& weight, const Tensor& bias, const BatchNorm& state) {
  if (input.dtype() == DType::f16) return in_f32(input, [&](const Tensor& wide) { return batch_norm(wide, weight, bias, state); });
  if (is_half(weight) || is_half(bias)) return batch_norm(input, widen(weight), widen(bias), state);
  const Tensor w = dense_f32("batch_norm", weight), b = dense_f32("batch_norm", bias), dense = dense_storage("batch_norm", input);
  check_inputs(dense, w, b, state);
  const Device device = common_device("batch_norm", {&dense, &w, &b, &state.running_mean, &state.running_variance});
  const bool transpose = must_transpose(dense);
  const Tensor x = transpose ? transposed(dense) : dense, y = Tensor::empty(x.shape(), x.dtype(), device);
  const Normalised n{.x = x,
                     .w = w,
                     .mean = Tensor::empty(w.shape(), DType::f32, device),
                     .rstd = Tensor::empty(w.shape(), DType::f32, device),
                     .training = state.training};
  BatchShards* const shards = state.training ? ShardScope::newest() : nullptr;
  int64_t values = 0;
  if (shards)
    values = normalise_shard(n, b, state, y, *shards);
  else
    normalise_batch(n, b, state, y);

  const auto back = [n, transpose, shape = dense.shape(), to_x = input.needs_grad(), shards, values](const Tensor& gradient) {
    const Tensor g = transpose ? transposed(gradient) : contiguous(gradient);
    Grads grads = shards ? shard_gradients(n, g, to_x, *shards, values) : gradients(n, g, to_x);
    if (transpose && to_x) grads[0] = transposed_back(grads[0], shape);
    return grads;
  };
  return record(op::batch_norm, transpose ? transposed_back(y, dense.shape()) : y, {input, weight, bias}, back);
}

}  // namespace heed
