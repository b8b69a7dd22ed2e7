#include "heed/ops/conv_primitive.h"

#include "heed/core/raw.h"
#include "heed/ops/onednn.h"

namespace heed {
namespace {

using Memory = dnnl::memory;
using Description = dnnl::memory::desc;

Description any_layout(const Description& of) { return {of.dims(), Memory::data_type::f32, Memory::format_tag::any}; }

Memory memory_at(const Description& layout, void* data) { return {layout, dnnl_engine(), data}; }

// Memory for numbers in a layout.
Tensor scratch_for(const Description& layout) { return Tensor::empty({static_cast<int64_t>(layout.get_size())}, DType::u8, kCpu); }

}  // namespace

ConvPrimitive::Reorder::Reorder(const Description& source, const Description& target) : from(source), to(target) {
  const dnnl::reorder::primitive_desc description(dnnl_engine(), from, dnnl_engine(), to, user_scratchpad());
  scratch = description.scratchpad_desc();
  primitive = dnnl::reorder(description);
}

void ConvPrimitive::Reorder::operator()(void* source, void* target) const try {
  const Tensor memory = scratch_for(scratch);
  primitive.execute(dnnl_stream(), {{DNNL_ARG_FROM, memory_at(from, source)},
                                    {DNNL_ARG_TO, memory_at(to, target)},
                                    {DNNL_ARG_SCRATCHPAD, memory_at(scratch, raw<uint8_t>(memory))}});
} catch (const dnnl::error& error) {
  fail_with(error, "conv2d: oneDNN's reorder failed");
}

ConvPrimitive::Operand::Operand(int argument, const Description& outside, const Description& own, bool is_written)
    : name(argument), inside(own), written(is_written) {
  if (outside != own) written ? reorder.emplace(own, outside) : reorder.emplace(outside, own);
}

ConvPrimitive::ConvPrimitive(ConvPass pass, const ConvSizes& whole, int64_t images, int64_t in, int64_t out, bool bias,
                             const ConvPrimitive* packer) {
  using dnnl::algorithm;
  constexpr auto f32 = Memory::data_type::f32;
  const Window2d& o = whole.window;
  const int64_t groups = whole.groups, rows = whole.in / groups * o.taps();  // rows: floats between output channels of w
  const auto [y_size, x_size] = o.image;
  const auto [out_y, out_x] = o.places;
  const auto [kernel_y, kernel_x] = o.kernel;
  const Description x({images, in, y_size, x_size}, f32, Memory::dims{whole.in * y_size * x_size, y_size * x_size, x_size, 1});
  const Description y({images, out, out_y, out_x}, f32, Memory::dims{whole.out * out_y * out_x, out_y * out_x, out_x, 1});
  const Description w = groups == 1 ? Description({out, in, kernel_y, kernel_x}, f32, Memory::dims{rows, o.taps(), kernel_x, 1})
                                    : Description({groups, out / groups, in / groups, kernel_y, kernel_x}, f32,
                                                  Memory::dims{out / groups * rows, rows, o.taps(), kernel_x, 1});
  const Description b = bias ? Description({out}, f32, Memory::format_tag::x) : Description();

  const Memory::dims stride{o.stride[0], o.stride[1]}, padding{o.padding[0], o.padding[1]};
  const Memory::dims dilation{o.dilation[0] - 1, o.dilation[1] - 1};  // oneDNN counts the gap, not the step
  const Description x_any = any_layout(x), w_any = any_layout(w), y_any = any_layout(y);
  const dnnl::primitive_attr attributes = user_scratchpad();
  const std::lock_guard making(dnnl_making());
  const bool weighs = pass == ConvPass::weights;  // writes weights and bias
  const auto take = [&](const auto& description, const Operand& first, const Description& weights, const Operand& last) {
    packing_ = packer ? packer->packing_ : weights;
    if (!packer) between_weights_.emplace(weighs ? weights : w, weighs ? w : weights);
    operands_ = {first,
                 {weighs ? DNNL_ARG_DIFF_WEIGHTS : DNNL_ARG_WEIGHTS, packing_, weights, weighs},
                 {weighs ? DNNL_ARG_DIFF_BIAS : DNNL_ARG_BIAS, b, b, weighs},
                 last};
    scratch_ = description.scratchpad_desc();
  };
  try {
    using Forward = dnnl::convolution_forward;
    const Forward::primitive_desc forward(
        {dnnl::prop_kind::forward_training, algorithm::convolution_direct, x_any, w_any, b, y_any, stride, dilation, padding, padding},
        attributes, dnnl_engine());
    if (pass == ConvPass::forward) {
      take(forward, {DNNL_ARG_SRC, x, forward.src_desc(), false}, forward.weights_desc(), {DNNL_ARG_DST, y, forward.dst_desc(), true});
      primitive_ = Forward(forward);
    } else if (pass == ConvPass::data) {
      using Back = dnnl::convolution_backward_data;
      const Back::primitive_desc back({algorithm::convolution_direct, x_any, w_any, y_any, stride, dilation, padding, padding}, attributes,
                                      dnnl_engine(), forward);
      take(back, {DNNL_ARG_DIFF_SRC, x, back.diff_src_desc(), true}, back.weights_desc(),
           {DNNL_ARG_DIFF_DST, y, back.diff_dst_desc(), false});
      primitive_ = Back(back);
    } else {
      using Back = dnnl::convolution_backward_weights;
      const Back::primitive_desc back({algorithm::convolution_direct, x_any, w_any, b, y_any, stride, dilation, padding, padding},
                                      attributes, dnnl_engine(), forward);
      take(back, {DNNL_ARG_SRC, x, back.src_desc(), false}, back.diff_weights_desc(), {DNNL_ARG_DIFF_DST, y, back.diff_dst_desc(), false});
      primitive_ = Back(back);
    }
  } catch (const dnnl::error& error) {
    fail_with(error, "conv2d: oneDNN has no convolution for this");
  }
}

void ConvPrimitive::pack(float* weights, float* packed) const { (*between_weights_)(weights, packed); }
void ConvPrimitive::unpack(float* packed, float* weights) const { (*between_weights_)(packed, weights); }

void ConvPrimitive::run(float* x, float* packed, float* bias, float* y) const try {
  float* const given[] = {x, packed, bias, y};
  Tensors scratch{scratch_for(scratch_)};
  std::unordered_map<int, Memory> bound{{DNNL_ARG_SCRATCHPAD, memory_at(scratch_, raw<uint8_t>(scratch[0]))}};
  void* inside[std::size(given)];
  for (size_t i = 0; i < operands_.size(); ++i) {
    if (given[i] == nullptr) continue;
    const Operand& operand = operands_[i];
    if (operand.reorder) scratch.push_back(scratch_for(operand.inside));
    inside[i] = operand.reorder ? static_cast<void*>(raw<uint8_t>(scratch.back())) : given[i];
    if (operand.reorder && !operand.written) (*operand.reorder)(given[i], inside[i]);
    bound.emplace(operand.name, memory_at(operand.inside, inside[i]));
  }
  primitive_.execute(dnnl_stream(), bound);
  for (size_t i = 0; i < operands_.size(); ++i)
    if (given[i] != nullptr && operands_[i].reorder && operands_[i].written) (*operands_[i].reorder)(inside[i], given[i]);
} catch (const dnnl::error& error) {
  fail_with(error, "conv2d: oneDNN's convolution failed");
}

}  // namespace heed
