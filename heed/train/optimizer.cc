// All parameters are cut into pieces of the same size; one parallel pass works on the pieces of all of them.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "heed/train/optimizer.cc"
#include "hwy/foreach_target.h"
// after foreach_target
#include "heed/core/lanes.h"

#include "heed/core/bf16_copy.h"
#include "heed/core/copy.h"
#include "heed/core/copy_kernels.h"
#include "heed/core/parallel.h"
#include "heed/core/raw.h"
#include "heed/train/optimizer.h"
#include "heed/train/optimizer_kernels.h"

HWY_BEFORE_NAMESPACE();
namespace heed {
namespace HWY_NAMESPACE {

// scale: of the gradient; copies: whether there is a bf16 copy of the weight
template <bool copies>
void sgd_elements(const StepTensor& p, const SgdStep& s, float scale) {
  const Lanes rate = s.rate, momentum = s.momentum;
  for_lanes(p.count, [&](int64_t i, auto load, auto store) HEED_LANES {
    Lanes g = fma(load(p.w + i), p.decay, load(p.g + i) * scale);
    if (p.first) {
      const Lanes v = fma(load(p.first + i), momentum, g);
      store(p.first + i, v);
      g = s.nesterov ? fma(v, momentum, g) : v;
    }
    const Lanes w = load(p.w + i) - rate * g;
    store(p.w + i, w);
    if constexpr (copies) store(p.copy + i, w);
  });
}

void sgd_piece(const StepTensor& p, const SgdStep& s, float scale) {
  p.copy ? sgd_elements<true>(p, s, scale) : sgd_elements<false>(p, s, scale);
}

template <bool copies>
void adam_elements(const StepTensor& p, const AdamStep& s, float scale) {
  const Lanes shrink = s.decoupled ? 1 - s.rate * p.decay : 1.0f, inside = s.decoupled ? 0.0f : p.decay;
  const Lanes beta1 = s.beta1, beta2 = s.beta2, rest1 = 1 - s.beta1, rest2 = 1 - s.beta2;
  const Lanes rate = s.rate * s.first_correction, correction = std::sqrt(s.second_correction), eps = s.eps;
  for_lanes(p.count, [&](int64_t i, auto load, auto store) HEED_LANES {
    const Lanes w = load(p.w + i), g = fma(w, inside, load(p.g + i) * scale);
    const Lanes m = fma(load(p.first + i), beta1, g * rest1), v = fma(load(p.second + i), beta2, g * g * rest2);
    store(p.first + i, m);
    store(p.second + i, v);
    const Lanes stepped = w * shrink - rate * m / fma(sqrt(v), correction, eps);
    store(p.w + i, stepped);
    if constexpr (copies) store(p.copy + i, stepped);
  });
}

void adam_piece(const StepTensor& p, const AdamStep& s, float scale) {
  p.copy ? adam_elements<true>(p, s, scale) : adam_elements<false>(p, s, scale);
}

double square_sum(const float* g, int64_t count) {
  double total = 0;
  for (int64_t begin = 0; begin < count; begin += 1024) {  // short float sums, joined in double
    Lanes part = 0;
    for_lanes(std::min<int64_t>(1024, count - begin), [&](int64_t i, auto load, auto) HEED_LANES {
      const Lanes x = load(g + begin + i);
      part = fma(x, x, part);
    });
    total += sum(part);
  }
  return total;
}

void scale_piece(float* g, int64_t count, float factor) {
  for_lanes(count, [&](int64_t i, auto load, auto store) HEED_LANES { store(g + i, load(g + i) * factor); });
}

void average_piece(float* average, const float* w, int64_t count, float share) {
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

HWY_EXPORT(sgd_piece);
HWY_EXPORT(adam_piece);
HWY_EXPORT(square_sum);
HWY_EXPORT(scale_piece);
HWY_EXPORT(average_piece);

namespace {

constexpr int64_t kPiece = GradientNorm::kPiece;

// The pieces of every tensor, in order.
std::vector<StepTensor> cut(const StepTensor* tensors, int64_t tensor_count) {
  std::vector<StepTensor> pieces;
  for (const StepTensor* t = tensors; t < tensors + tensor_count; ++t)
    for (int64_t begin = 0; begin < t->count; begin += kPiece)
      pieces.push_back({t->w + begin, t->g + begin, t->first ? t->first + begin : nullptr, t->second ? t->second + begin : nullptr,
                        std::min(kPiece, t->count - begin), t->decay, t->copy ? t->copy + begin : nullptr});
  return pieces;
}

// Small pieces share a task, so that many biases cost no more than one matrix.
template <class Body>
void for_pieces(const std::vector<StepTensor>& pieces, const Body& body) {
  std::vector<size_t> starts{0};
  int64_t gathered = 0;
  for (size_t i = 0; i < pieces.size(); ++i) {
    if (gathered >= kPiece) {
      starts.push_back(i);
      gathered = 0;
    }
    gathered += pieces[i].count;
  }
  starts.push_back(pieces.size());
  parallel_tasks(static_cast<int64_t>(starts.size()) - 1, [&](int64_t task) {
    for (size_t i = starts[static_cast<size_t>(task)]; i < starts[static_cast<size_t>(task) + 1]; ++i) body(i);
  });
}

bool is_finite(const float* norm) { return norm == nullptr || std::isfinite(*norm); }

float scale_of(const StepClipping& clipping) {
  return clipping.norm && *clipping.norm > clipping.limit ? clipping.limit / *clipping.norm : 1.0f;
}

}  // namespace

void cpu::sgd_step(const SgdStep& step) {
  if (!is_finite(step.clipping.norm)) return;
  const std::vector<StepTensor> pieces = cut(step.tensors, step.tensor_count);
  for_pieces(pieces, [&, scale = scale_of(step.clipping)](size_t i) { HWY_DYNAMIC_DISPATCH(sgd_piece)(pieces[i], step, scale); });
}

void cpu::adam_step(const AdamStep& step) {
  if (!is_finite(step.clipping.norm)) return;
  const std::vector<StepTensor> pieces = cut(step.tensors, step.tensor_count);
  for_pieces(pieces, [&, scale = scale_of(step.clipping)](size_t i) { HWY_DYNAMIC_DISPATCH(adam_piece)(pieces[i], step, scale); });
}

void cpu::compute_gradient_norm(const GradientNorm& args) {
  const std::vector<StepTensor> pieces = cut(args.tensors, args.tensor_count);
  double* const squares = static_cast<double*>(args.workspace);
  for_pieces(pieces, [&](size_t i) { squares[i] = HWY_DYNAMIC_DISPATCH(square_sum)(pieces[i].g, pieces[i].count); });
  double total = 0;
  for (size_t i = 0; i < pieces.size(); ++i) total += squares[i];
  *args.norm = static_cast<float>(std::sqrt(total));
}

void cpu::scale_gradients(const ScaleGradients& args) {
  const float scale = scale_of(args.clipping);
  if (scale == 1) return;
  const std::vector<StepTensor> pieces = cut(args.tensors, args.tensor_count);
  for_pieces(pieces, [&](size_t i) { HWY_DYNAMIC_DISPATCH(scale_piece)(pieces[i].g, pieces[i].count, scale); });
}

void cpu::move_averages(const MoveAverages& args) {
  if (!is_finite(args.norm)) return;
  std::vector<AverageTensor> pieces;
  for (const AverageTensor* t = args.tensors; t < args.tensors + args.tensor_count; ++t)
    for (int64_t begin = 0; begin < t->count; begin += kPiece)
      pieces.push_back({t->average + begin, t->w + begin, std::min(kPiece, t->count - begin)});
  parallel_for(std::ssize(pieces), 4, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const AverageTensor& piece = pieces[static_cast<size_t>(i)];
      HWY_DYNAMIC_DISPATCH(average_piece)(piece.average, piece.w, piece.count, args.share);
    }
  });
}

void cpu::swap_elements(const SwapElements& args) {
  parallel_for(args.count, kPiece, [&](int64_t begin, int64_t end) { std::swap_ranges(args.a + begin, args.a + end, args.b + begin); });
}

namespace {

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
    for (const Tensor& parameter : group.parameters)
      state.back().push_back(Tensor::zeros(parameter.shape(), DType::f32, parameter.device()));
  }
  return state;
}

// The arguments of every parameter that has a gradient, and the dense gradients that they point into.
struct StepList {
  const char* op;
  std::vector<StepTensor> tensors{};
  Tensors gradients{};
  Tensor any{};  // a tensor of the list

  void add(const Tensor& parameter, float decay, const Tensor& first, const Tensor& second) {
    if (!parameter.grad().defined()) return;
    common_device(op, {&any, &parameter, &first, &second});
    any = parameter;
    gradients.push_back(converted(contiguous(parameter.grad()), DType::f32));
    tensors.push_back({raw<float>(parameter), raw<float>(gradients.back()), raw_or_null<float>(first), raw_or_null<float>(second),
                       parameter.count(), decay, raw_or_null<Bf16>(bf16_copy_to_write(parameter))});
  }

  int64_t count() const { return std::ssize(tensors); }
  Device device() const { return any.device(); }
  StepClipping clipping(const Tensor& norm, float limit) const {
    common_device(op, {&any, &norm});
    return {raw_or_null<float>(norm), limit};
  }
};

Tensors joined(const std::vector<Tensors>& lists) {
  Tensors all;
  for (const Tensors& list : lists) all.insert(all.end(), list.begin(), list.end());
  return all;
}

float correction(double beta, int64_t step) { return static_cast<float>(1 / (1 - std::pow(beta, static_cast<double>(step)))); }

void drop_gradients(const std::vector<ParameterGroup>& groups) {
  for (const ParameterGroup& group : groups)
    for (const Tensor& parameter : group.parameters) parameter.zero_grad();
}

}  // namespace

StepNumbersOnDevice::StepNumbersOnDevice(Device device) {
  if (device != kCpu) tensor_ = Tensor::empty({sizeof(StepNumbers) / sizeof(float)}, device);
}

void StepNumbersOnDevice::set(float rate, float beta1, float beta2, int64_t step, float average_share) const {
  if (!tensor_.defined()) return;
  const StepNumbers numbers{rate, correction(beta1, step), correction(beta2, step), average_share};
  launch(transfer_bytes, tensor_.device(),
         {.from = &numbers, .to = Raw::bytes(tensor_), .bytes = sizeof numbers, .from_device = kCpu, .to_device = tensor_.device()});
}

Sgd::Sgd(std::vector<ParameterGroup> groups, SgdOptions options) : groups_(std::move(groups)), options_(options) {
  check_parameters(groups_);
  if (options_.momentum != 0) velocity_ = zeros_like(groups_);
}

void Sgd::step(float rate, const Clipping& clipping, const Tensor& numbers) {
  StepList list{"sgd"};
  for (size_t k = 0; k < groups_.size(); ++k)
    for (size_t i = 0; i < groups_[k].parameters.size(); ++i)
      list.add(groups_[k].parameters[i], groups_[k].weight_decay, velocity_.empty() ? Tensor() : velocity_[k][i], {});
  launch(sgd_step, list.device(),
         {.tensors = list.tensors.data(),
          .tensor_count = list.count(),
          .clipping = list.clipping(clipping.norm, clipping.limit),
          .rate = rate,
          .momentum = options_.momentum,
          .nesterov = options_.nesterov,
          .numbers = raw_or_null<StepNumbers>(numbers)});
}

void Sgd::zero_grad() const { drop_gradients(groups_); }

Tensors Sgd::state() const { return joined(velocity_); }

Adam::Adam(std::vector<ParameterGroup> groups, AdamOptions options) : groups_(std::move(groups)), options_(options) {
  check_parameters(groups_);
  first_ = zeros_like(groups_);
  second_ = zeros_like(groups_);
}

void Adam::step(float rate, const Clipping& clipping, const Tensor& numbers) {
  ++steps_;
  StepList list{"adam"};
  for (size_t k = 0; k < groups_.size(); ++k)
    for (size_t i = 0; i < groups_[k].parameters.size(); ++i)
      list.add(groups_[k].parameters[i], groups_[k].weight_decay, first_[k][i], second_[k][i]);
  launch(adam_step, list.device(),
         {.tensors = list.tensors.data(),
          .tensor_count = list.count(),
          .clipping = list.clipping(clipping.norm, clipping.limit),
          .rate = rate,
          .beta1 = options_.beta1,
          .beta2 = options_.beta2,
          .eps = options_.eps,
          .first_correction = correction(options_.beta1, steps_),
          .second_correction = correction(options_.beta2, steps_),
          .decoupled = options_.decoupled,
          .numbers = raw_or_null<StepNumbers>(numbers)});
}

void Adam::zero_grad() const { drop_gradients(groups_); }

Tensors Adam::state() const {
  Tensors all = joined(first_);
  for (const Tensor& second : joined(second_)) all.push_back(second);
  return all;
}

namespace {

StepList gradients_of(const char* op, const Tensors& parameters) {
  StepList list{op};
  for (const Tensor& parameter : parameters) list.add(parameter, 0, {}, {});
  return list;
}

Tensor norm_of(const StepList& list) {
  const Tensor norm = Tensor::empty({}, DType::f32, list.device());
  launch(compute_gradient_norm, list.device(), {.tensors = list.tensors.data(), .tensor_count = list.count(), .norm = raw<float>(norm)});
  return norm;
}

}  // namespace

Tensor gradient_norm(const Tensors& parameters) { return norm_of(gradients_of("gradient_norm", parameters)); }

float clip_gradients(const Tensors& parameters, float limit) {
  check(limit > 0, "clip_gradients: the limit is ", limit, ", expected more than 0");
  for (const Tensor& parameter : parameters)
    check(!parameter.grad().defined() || (parameter.grad().is_contiguous() && parameter.grad().dtype() == DType::f32),
          "clip_gradients: a gradient of shape ", parameter.shape(), " is not dense f32");
  const StepList list = gradients_of("clip_gradients", parameters);
  const Tensor norm = norm_of(list);
  launch(scale_gradients, list.device(),
         {.tensors = list.tensors.data(), .tensor_count = list.count(), .clipping = list.clipping(norm, limit)});
  return norm.item();
}

void update_averages(const Tensors& averages, const Tensors& parameters, float share, const Tensor& norm, const Tensor& numbers) {
  check(averages.size() == parameters.size(), "update_averages: ", averages.size(), " averages of ", parameters.size(), " parameters");
  std::vector<AverageTensor> tensors;
  for (size_t k = 0; k < averages.size(); ++k) {
    check(averages[k].shape() == parameters[k].shape() && averages[k].is_contiguous() && parameters[k].is_contiguous(),
          "update_averages: an average of shape ", averages[k].shape(), " of a parameter of shape ", parameters[k].shape());
    common_device("update_averages", {&averages[0], &averages[k], &parameters[k], &norm});
    tensors.push_back({raw<float>(averages[k]), raw<float>(parameters[k]), averages[k].count()});
  }
  if (tensors.empty()) return;
  launch(move_averages, averages[0].device(),
         {.tensors = tensors.data(),
          .tensor_count = std::ssize(tensors),
          .norm = raw_or_null<float>(norm),
          .share = share,
          .numbers = raw_or_null<StepNumbers>(numbers)});
}

void swap_values(const Tensor& a, const Tensor& b) {
  check(a.shape() == b.shape() && a.is_contiguous() && b.is_contiguous() && a.dtype() == DType::f32 && b.dtype() == DType::f32,
        "swap_values: shapes ", a.shape(), " and ", b.shape(), ", expected two dense f32 of one shape");
  launch(swap_elements, common_device("swap_values", {&a, &b}), {.a = raw<float>(a), .b = raw<float>(b), .count = a.count()});
  refresh_bf16_copy(a);
  refresh_bf16_copy(b);
}

}  // namespace heed
#endif
