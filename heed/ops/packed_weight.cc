#include "heed/ops/packed_weight.h"

#include "heed/core/bf16_copy.h"
#include "heed/core/raw.h"
#include "heed/ops/gemm.h"
#include "heed/ops/int8_weight.h"
#include "heed/ops/storage.h"

namespace heed {

PackedWeight::PackedWeight(const Tensors& parts, WeightForm form) {
  const NoGrad quiet;
  const Tensor weight = dense_f32("packed_weight", parts.size() == 1 ? parts[0] : concat(parts, 0));
  check(weight.rank() == 2, "packed_weight: the weight has shape ", weight.shape(), ", expected (outputs, inputs)");
  device_ = weight.device(), outputs_ = weight.size(0), inputs_ = weight.size(1);
  if (form == WeightForm::bytes && weight.count() > 0) {
    if (cuda::computing_device(weight.device()) == kCpu) {
      int8_ = std::make_unique<Int8Weight>(outputs_, inputs_);
    } else {
      packed_ = Tensor::empty({outputs_, Int8Rows::stride(inputs_)}, DType::u8, weight.device());
      scales_ = Tensor::empty({outputs_}, DType::f32, weight.device());
    }
    launch(pack_int8, weight.device(),
           {.weight = int8_.get(), .from = raw<float>(weight), .I = inputs_, .O = outputs_, .packed = int8_rows()});
    return;
  }
  // GPUs read rows, emulated ones too.
  const int64_t bytes = device_ == kCpu ? packed_gemm_bytes(device_, outputs_, inputs_, DType::f32) : 0;
  if (bytes == 0) {
    weight_ = weight;
    return;
  }
  packed_ = Tensor::empty({bytes}, DType::u8, weight.device());
  launch(pack_gemm, weight.device(),
         {.b = {.data = Raw::bytes(weight), .stride = inputs_, .transposed = true},
          .N = outputs_,
          .K = inputs_,
          .packed = Raw::bytes(packed_),
          .dtype = DType::f32});
}

PackedWeight::~PackedWeight() = default;

Int8Rows PackedWeight::int8_rows() const {
  if (!scales_.defined()) return {};
  return {.bytes = raw<int8_t>(packed_), .scales = raw<float>(scales_)};
}

Tensor PackedWeight::rows(DType precision) const {
  if (device_ == kCpu) return {};
  if (scales_.defined()) return reshape(packed_, {outputs_, Int8Rows::stride(inputs_)});
  return precision == DType::f32 || !weight_.defined() ? weight_ : bf16_copy(weight_);
}

int64_t PackedWeight::bytes() const {
  return int8_ ? int8_->bytes() : packed_.defined() ? packed_.count() : weight_.count() * static_cast<int64_t>(sizeof(float));
}

Tensor PackedWeight::operator()(const Tensor& input, const Tensor& bias, Activation activation) const {
  const bool takes_half = input.dtype() == DType::bf16 && device_ != kCpu && weight_.defined();
  if (is_half(input) && !takes_half) return cast((*this)(widen(input), bias, activation), input.dtype());
  check(input.rank() >= 1 && input.size(-1) == inputs_, "linear: x has ", input.rank() ? input.size(-1) : 0, " columns, the weight ",
        inputs_);
  check(!bias.defined() || bias.shape() == Shape{outputs_}, "linear: the bias has shape ", bias.defined() ? bias.shape() : Shape{},
        ", the weight ", outputs_, " rows");
  check(!tracking({&input, &bias}), "linear: packed weights have no gradients, expected a model that was loaded to be trained");
  if (weight_.defined()) return linear(input, weight_, bias, activation);
  const Device device = common_device("linear", {&input, &packed_, &bias});
  const Tensor x = dense_f32("linear", input), b = bias.defined() ? dense_f32("linear", bias) : Tensor();
  Shape shape = x.shape();
  shape[x.rank() - 1] = outputs_;
  const Tensor y = Tensor::empty(shape, DType::f32, device);
  const int64_t rows = count_rows(x);
  if (int8_ || scales_.defined()) {
    launch(int8_linear, device,
           {.weight = int8_.get(),
            .x = raw<float>(x),
            .bias = raw_or_null<float>(b),
            .y = raw<float>(y),
            .rows = rows,
            .I = inputs_,
            .O = outputs_,
            .activation = activation,
            .packed = int8_rows()});
  } else {
    launch(gemm, device,
           {.M = rows,
            .N = outputs_,
            .K = inputs_,
            .a = {.data = Raw::bytes(x), .stride = inputs_},
            .b = {.data = nullptr, .stride = inputs_, .transposed = true},
            .c = {.data = Raw::bytes(y), .stride = outputs_},
            .bias = raw_or_null<float>(b),
            .activation = activation,
            .packed_b = Raw::bytes(packed_)});
  }
  return y;
}

}  // namespace heed
