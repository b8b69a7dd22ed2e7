#include "heed/ops/conv_primitive.h"

#include "heed/core/raw.h"
#include "heed/ops/onednn.h"

namespace heed {
namespace {

using Memory = dnnl::memory;
using Description = dnnl::memory::desc;

Description any_layout(const Description& of) { return {of.dims(), Memory::data_type::f32, Memory::format_tag::any}; }

void reorder(const Memory& from, const Memory& to) {
  Memory source = from, target = to;
  dnnl::reorder(source, target).execute(dnnl_stream(), source, target);
}

Memory at(const Description& layout, float* data) { return {layout, dnnl_engine(), data}; }

}  // namespace

ConvPrimitive::ConvPrimitive(ConvPass pass, const ConvSizes& whole, int64_t images, int64_t in, int64_t out, bool bias) : pass_(pass) {
  using dnnl::algorithm;
  constexpr auto f32 = Memory::data_type::f32;
  const Conv2d& o = whole.options;
  const int64_t rows = whole.in / o.groups * whole.taps();  // floats between output channels of w
  const auto [y, x] = whole.picture;
  const auto [out_y, out_x] = whole.places;
  const auto [kernel_y, kernel_x] = whole.kernel;
  x_.outside = {{images, in, y, x}, f32, Memory::dims{whole.in * y * x, y * x, x, 1}};
  y_.outside = {{images, out, out_y, out_x}, f32, Memory::dims{whole.out * out_y * out_x, out_y * out_x, out_x, 1}};
  weights_.outside = o.groups == 1 ? Description({out, in, kernel_y, kernel_x}, f32, Memory::dims{rows, whole.taps(), kernel_x, 1})
                                   : Description({o.groups, out / o.groups, in / o.groups, kernel_y, kernel_x}, f32,
                                                 Memory::dims{out / o.groups * rows, rows, whole.taps(), kernel_x, 1});
  if (bias) bias_ = {{out}, f32, Memory::format_tag::x};

  const Memory::dims stride{o.stride[0], o.stride[1]}, padding{o.padding[0], o.padding[1]};
  const Memory::dims dilation{o.dilation[0] - 1, o.dilation[1] - 1};  // oneDNN counts the gap, not the step
  const Description x_any = any_layout(x_.outside), w_any = any_layout(weights_.outside), y_any = any_layout(y_.outside);
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);  // each run brings its own, so runs do not meet
  const auto made = [&](const auto& description) { scratch_ = description.scratchpad_desc(); };
  try {
    using Forward = dnnl::convolution_forward;
    const Forward::primitive_desc forward(
        {dnnl::prop_kind::forward_training, algorithm::convolution_direct, x_any, w_any, bias_, y_any, stride, dilation, padding, padding},
        attributes, dnnl_engine());
    if (pass == ConvPass::forward) {
      x_.inside = forward.src_desc(), weights_.inside = forward.weights_desc(), y_.inside = forward.dst_desc();
      primitive_ = Forward(forward);
      made(forward);
    } else if (pass == ConvPass::data) {
      using Back = dnnl::convolution_backward_data;
      const Back::primitive_desc back({algorithm::convolution_direct, x_any, w_any, y_any, stride, dilation, padding, padding}, attributes,
                                      dnnl_engine(), forward);
      x_.inside = back.diff_src_desc(), weights_.inside = back.weights_desc(), y_.inside = back.diff_dst_desc();
      primitive_ = Back(back);
      made(back);
    } else {
      using Back = dnnl::convolution_backward_weights;
      const Back::primitive_desc back({algorithm::convolution_direct, x_any, w_any, bias_, y_any, stride, dilation, padding, padding},
                                      attributes, dnnl_engine(), forward);
      x_.inside = back.src_desc(), weights_.inside = back.diff_weights_desc(), y_.inside = back.diff_dst_desc();
      primitive_ = Back(back);
      made(back);
    }
  } catch (const dnnl::error& error) {
    fail("conv2d: oneDNN has no convolution for this: ", error.message);
  }
}

void ConvPrimitive::pack(float* weights, float* packed) const { reorder(at(weights_.outside, weights), at(weights_.inside, packed)); }
void ConvPrimitive::unpack(float* packed, float* weights) const { reorder(at(weights_.inside, packed), at(weights_.outside, weights)); }

void ConvPrimitive::run(float* x, float* packed, const Description& packing, float* bias, float* y) const {
  struct Argument {
    int name;
    bool written;
    Description outside, inside;
    float* data;
  };
  const bool forward = pass_ == ConvPass::forward, data = pass_ == ConvPass::data, weights = pass_ == ConvPass::weights;
  const Argument arguments[] = {
      {data ? DNNL_ARG_DIFF_SRC : DNNL_ARG_SRC, data, x_.outside, x_.inside, x},
      {weights ? DNNL_ARG_DIFF_WEIGHTS : DNNL_ARG_WEIGHTS, weights, packing, weights_.inside, packed},
      {weights ? DNNL_ARG_DIFF_BIAS : DNNL_ARG_BIAS, weights, bias_, bias_, bias},
      {forward ? DNNL_ARG_DST : DNNL_ARG_DIFF_DST, forward, y_.outside, y_.inside, y},
  };
  Tensors room;
  const auto fresh = [&](const Description& layout) {
    room.push_back(Tensor::empty({static_cast<int64_t>(layout.get_size())}, DType::u8));
    return Memory(layout, dnnl_engine(), raw<uint8_t>(room.back()));
  };
  std::unordered_map<int, Memory> bound{{DNNL_ARG_SCRATCHPAD, fresh(scratch_)}};
  for (const Argument& a : arguments) {
    if (a.data == nullptr) continue;
    const bool direct = a.outside == a.inside;
    const Memory memory = direct ? at(a.inside, a.data) : fresh(a.inside);
    if (!direct && !a.written) reorder(at(a.outside, a.data), memory);
    bound.emplace(a.name, memory);
  }
  primitive_.execute(dnnl_stream(), bound);
  for (const Argument& a : arguments)
    if (a.written && a.data != nullptr && a.outside != a.inside) reorder(bound.at(a.name), at(a.outside, a.data));
}

}  // namespace heed
