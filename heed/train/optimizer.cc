// Parameters are split into chunks of equal size, and one parallel pass processes the chunks of all of them.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "heed/train/optimizer.cc"
#include "hwy/foreach_target.h"
// after foreach_target
#include "heed/core/lanes.h"

#include "heed/core/copy.h"
#include "heed/core/parallel.h"
#include "heed/core/raw.h"
#include "heed/train/optimizer.h"

#ifndef HEED_TRAIN_OPTIMIZER_TYPES
#define HEED_TRAIN_OPTIMIZER_TYPES
namespace heed {

// A chunk of one parameter with its gradient and optimizer state.
struct ParameterChunk {
  float *w, *g, *first, *second;
  int64_t count;
  float decay;
};

struct AdamStep {
  float rate, beta1, beta2, eps, first_correction, second_correction;  // corrections: 1 / (1 - beta^t)
  bool decoupled;
};

}  // namespace heed
#endif

HWY_BEFORE_NAMESPACE();
namespace heed {
namespace HWY_NAMESPACE {

void sgd_chunk(const ParameterChunk& p, float rate, float momentum, bool nesterov) {
  for_lanes(p.count, [&](int64_t i, auto load, auto store) HEED_LANES {
    Lanes g = fma(load(p.w + i), p.decay, load(p.g + i));
    if (p.first) {
      const Lanes v = fma(load(p.first + i), momentum, g);
      store(p.first + i, v);
      g = nesterov ? fma(v, momentum, g) : v;
    }
    store(p.w + i, load(p.w + i) - rate * g);
  });
}

void adam_chunk(const ParameterChunk& p, const AdamStep& s) {
  const Lanes shrink = s.decoupled ? 1 - s.rate * p.decay : 1.0f, coupled_decay = s.decoupled ? 0.0f : p.decay;
  const Lanes beta1 = s.beta1, beta2 = s.beta2, rest1 = 1 - s.beta1, rest2 = 1 - s.beta2;
  const Lanes rate = s.rate * s.first_correction, correction = std::sqrt(s.second_correction), eps = s.eps;
  for_lanes(p.count, [&](int64_t i, auto load, auto store) HEED_LANES {
    const Lanes w = load(p.w + i), g = fma(w, coupled_decay, load(p.g + i));
    const Lanes m = fma(load(p.first + i), beta1, g * rest1), v = fma(load(p.second + i), beta2, g * g * rest2);
    store(p.first + i, m);
    store(p.second + i, v);
    store(p.w + i, w * shrink - rate * m / fma(sqrt(v), correction, eps));
  });
}

double square_sum(const float* g, int64_t count) {
  double total = 0;
  for (int64_t begin = 0; begin < count; begin += 1024) {  // short float sums, accumulated in double
    Lanes part = 0;
    for_lanes(std::min<int64_t>(1024, count - begin), [&](int64_t i, auto load, auto) HEED_LANES {
      const Lanes x = load(g + begin + i);
      part = fma(x, x, part);
    });
    total += sum(part);
  }
  return total;
}

void scale_chunk(float* g, int64_t count, float factor) {
  for_lanes(count, [&](int64_t i, auto load, auto store) HEED_LANES { store(g + i, load(g + i) * factor); });
}

void average_chunk(float* average, const float* w, int64_t count, float share) {
  for_lanes(count, [&](int64_t i, auto load, auto store) HEED_LANES {
    const Lanes before = load(average + i);
    store(average + i, fma(load(w + i) - before, share, before));
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace heed
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace heed {

HWY_EXPORT(sgd_chunk);
HWY_EXPORT(adam_chunk);
HWY_EXPORT(square_sum);
HWY_EXPORT(scale_chunk);
HWY_EXPORT(average_chunk);

namespace {

constexpr int64_t kChunk = 1 << 14;

void check_parameters(const std::vector<ParameterGroup>& groups) {
  for (const ParameterGroup& group : groups)
    for (const Tensor& parameter : group.parameters)
      check(parameter.dtype() == DType::f32 && parameter.is_contiguous() && parameter.needs_grad(), "optimizer: a parameter of shape ",
            parameter.shape(), " is not a dense f32 tensor that requires a gradient");
}

std::vector<Tensors> zeros_like(const std::vector<ParameterGroup>& groups) {
  std::vector<Tensors> state;
  for (const ParameterGroup& group : groups) {
    state.emplace_back();
    for (const Tensor& parameter : group.parameters) state.back().push_back(Tensor::zeros(parameter.shape()));
  }
  return state;
}

// ParameterChunks of all parameters that have a gradient, and the dense gradients they point into.
struct ParameterChunks {
  std::vector<ParameterChunk> list;
  Tensors gradients;

  void add(const Tensor& parameter, float decay, const Tensor* first, const Tensor* second) {
    if (!parameter.grad().defined()) return;
    gradients.push_back(converted(contiguous(parameter.grad()), DType::f32));
    float *w = raw<float>(parameter), *g = raw<float>(gradients.back());
    for (int64_t begin = 0; begin < parameter.count(); begin += kChunk)
      list.push_back({w + begin, g + begin, first ? raw<float>(*first) + begin : nullptr, second ? raw<float>(*second) + begin : nullptr,
                      std::min(kChunk, parameter.count() - begin), decay});
  }
};

// Small chunks share a task, so that many biases cost no more than one matrix.
template <class Body>
void for_chunks(const std::vector<ParameterChunk>& chunks, const Body& body) {
  std::vector<size_t> starts{0};
  int64_t elements = 0;
  for (size_t i = 0; i < chunks.size(); ++i) {
    if (elements >= kChunk) {
      starts.push_back(i);
      elements = 0;
    }
    elements += chunks[i].count;
  }
  starts.push_back(chunks.size());
  parallel_tasks(static_cast<int64_t>(starts.size()) - 1, [&](int64_t task) {
    for (size_t i = starts[static_cast<size_t>(task)]; i < starts[static_cast<size_t>(task) + 1]; ++i) body(i);
  });
}

Tensors joined(const std::vector<Tensors>& lists) {
  Tensors all;
  for (const Tensors& list : lists) all.insert(all.end(), list.begin(), list.end());
  return all;
}

void drop_gradients(const std::vector<ParameterGroup>& groups) {
  for (const ParameterGroup& group : groups)
    for (const Tensor& parameter : group.parameters) parameter.zero_grad();
}

}  // namespace

Sgd::Sgd(std::vector<ParameterGroup> groups, SgdOptions options) : groups_(std::move(groups)), options_(options) {
  check_parameters(groups_);
  if (options_.momentum != 0) velocity_ = zeros_like(groups_);
}

void Sgd::step(float rate) {
  ParameterChunks chunks;
  for (size_t k = 0; k < groups_.size(); ++k)
    for (size_t i = 0; i < groups_[k].parameters.size(); ++i)
      chunks.add(groups_[k].parameters[i], groups_[k].weight_decay, velocity_.empty() ? nullptr : &velocity_[k][i], nullptr);
  for_chunks(chunks.list, [&](size_t i) { HWY_DYNAMIC_DISPATCH(sgd_chunk)(chunks.list[i], rate, options_.momentum, options_.nesterov); });
}

void Sgd::zero_grad() const { drop_gradients(groups_); }

Tensors Sgd::state() const { return joined(velocity_); }

Adam::Adam(std::vector<ParameterGroup> groups, AdamOptions options) : groups_(std::move(groups)), options_(options) {
  check_parameters(groups_);
  first_ = zeros_like(groups_);
  second_ = zeros_like(groups_);
}

void Adam::step(float rate) {
  ++steps_;
  const auto correction = [&](double beta) { return static_cast<float>(1 / (1 - std::pow(beta, static_cast<double>(steps_)))); };
  const AdamStep step{
      rate, options_.beta1, options_.beta2, options_.eps, correction(options_.beta1), correction(options_.beta2), options_.decoupled};
  ParameterChunks chunks;
  for (size_t k = 0; k < groups_.size(); ++k)
    for (size_t i = 0; i < groups_[k].parameters.size(); ++i)
      chunks.add(groups_[k].parameters[i], groups_[k].weight_decay, &first_[k][i], &second_[k][i]);
  for_chunks(chunks.list, [&](size_t i) { HWY_DYNAMIC_DISPATCH(adam_chunk)(chunks.list[i], step); });
}

void Adam::zero_grad() const { drop_gradients(groups_); }

Tensors Adam::state() const {
  Tensors all = joined(first_);
  for (const Tensor& second : joined(second_)) all.push_back(second);
  return all;
}

float clip_gradients(const Tensors& parameters, float limit) {
  check(limit > 0, "clip_gradients: the limit is ", limit, ", expected more than 0");
  ParameterChunks chunks;
  for (const Tensor& parameter : parameters) {
    check(!parameter.grad().defined() || (parameter.grad().is_contiguous() && parameter.grad().dtype() == DType::f32),
          "clip_gradients: a gradient of shape ", parameter.shape(), " is not dense f32");
    chunks.add(parameter, 0, nullptr, nullptr);
  }
  std::vector<double> squares(chunks.list.size());
  for_chunks(chunks.list, [&](size_t i) { squares[i] = HWY_DYNAMIC_DISPATCH(square_sum)(chunks.list[i].g, chunks.list[i].count); });
  double total = 0;
  for (double part : squares) total += part;
  const auto norm = static_cast<float>(std::sqrt(total));
  if (norm > limit)
    for_chunks(chunks.list, [&](size_t i) { HWY_DYNAMIC_DISPATCH(scale_chunk)(chunks.list[i].g, chunks.list[i].count, limit / norm); });
  return norm;
}

void update_averages(const Tensors& averages, const Tensors& parameters, float share) {
  check(averages.size() == parameters.size(), "update_averages: ", averages.size(), " averages of ", parameters.size(), " parameters");
  struct AverageChunk {
    float *average, *w;
    int64_t count;
  };
  std::vector<AverageChunk> list;
  for (size_t k = 0; k < averages.size(); ++k) {
    check(averages[k].shape() == parameters[k].shape() && averages[k].is_contiguous() && parameters[k].is_contiguous(),
          "update_averages: an average of shape ", averages[k].shape(), " of a parameter of shape ", parameters[k].shape());
    for (int64_t begin = 0; begin < averages[k].count(); begin += kChunk)
      list.push_back({raw<float>(averages[k]) + begin, raw<float>(parameters[k]) + begin, std::min(kChunk, averages[k].count() - begin)});
  }
  parallel_for(std::ssize(list), 4, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const AverageChunk& s = list[static_cast<size_t>(i)];
      HWY_DYNAMIC_DISPATCH(average_chunk)(s.average, s.w, s.count, share);
    }
  });
}

void swap_values(const Tensor& a, const Tensor& b) {
  check(a.shape() == b.shape() && a.is_contiguous() && b.is_contiguous() && a.dtype() == DType::f32 && b.dtype() == DType::f32,
        "swap_values: shapes ", a.shape(), " and ", b.shape(), ", expected two dense f32 of one shape");
  float *const first = raw<float>(a), *const second = raw<float>(b);
  parallel_for(a.count(), kChunk, [&](int64_t begin, int64_t end) { std::swap_ranges(first + begin, first + end, second + begin); });
}

}  // namespace heed
#endif
