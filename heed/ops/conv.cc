// conv2d through oneDNN. The work is cut by shape alone into tasks of some images and some channels; each runs a
// primitive in its own thread. Weight gradients are partial sums per task, added in a fixed order.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "heed/ops/conv.cc"
#include "hwy/foreach_target.h"
// after foreach_target
#include "heed/core/lanes.h"

#include <bit>
#include <cstring>
#include <optional>
#include <tuple>

#include "heed/core/parallel.h"
#include "heed/core/raw.h"
#include "heed/core/work_count.h"
#include "heed/ops/conv_primitive.h"
#include "heed/ops/storage.h"

HWY_BEFORE_NAMESPACE();
namespace heed {
namespace HWY_NAMESPACE {

// The first row becomes the sum of all, taken from the first to the last. rows: (count, width)
void sum_conv_rows(float* rows, int64_t count, int64_t width) {
  parallel_for(count > 1 ? width : 0, 1 << 12, [&](int64_t begin, int64_t end) HWY_ATTR {
    for_lanes(end - begin, [&](int64_t i, auto load, auto store) HEED_LANES {
      Lanes total = load(rows + begin + i);
      for (int64_t row = 1; row < count; ++row) total = total + load(rows + row * width + begin + i);
      store(rows + begin + i, total);
    });
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace heed
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace heed {

HWY_EXPORT(sum_conv_rows);

namespace {

int64_t divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

// What one task does: a primitive, and where its part begins in each tensor.
struct Part {
  const ConvPrimitive* primitive;
  int64_t slab, piece;  // which images, which channels
  int64_t x, w, b, y;
};

// A pass cut into slabs of images times pieces of channels: those that the pass writes, which are output channels, but
// input channels for the gradient of x. Channels are cut where the batch alone gives too few tasks.
class Plan {
 public:
  Plan(ConvPass pass, const ConvSizes& sizes, int64_t batch, bool bias) : pass_(pass), sizes_(sizes) {
    constexpr int64_t least = 1 << 21;  // multiplications worth a task: about 40 us
    constexpr int64_t enough = 16;      // tasks
    channels_ = pass == ConvPass::data ? sizes.in : sizes.out;
    const int64_t work = std::max<int64_t>(1, sizes.weights() * sizes.out_pixels());  // of an image
    images_per_slab_ = std::clamp<int64_t>(least / work, 1, batch);
    if (pass == ConvPass::weights) {  // every slab makes a sum as large as the weights: several only below 16 MiB
      const int64_t slabs = std::clamp<int64_t>((1 << 22) / sizes.weights(), 1, enough);
      images_per_slab_ = std::max(images_per_slab_, divide_up(batch, static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(slabs)))));
    }
    slabs_ = divide_up(batch, images_per_slab_);
    const int64_t most = sizes.options.groups > 1 ? 1 : std::min(channels_ / 32, work * images_per_slab_ / least);
    const int64_t wish = std::clamp<int64_t>(enough / slabs_, 1, std::max<int64_t>(most, 1));
    channels_per_piece_ = wish == 1 ? channels_ : divide_up(divide_up(channels_, wish), 16) * 16;  // oneDNN works on 16 at a time
    pieces_ = divide_up(channels_, channels_per_piece_);
    last_images_ = batch - (slabs_ - 1) * images_per_slab_;
    last_channels_ = channels_ - (pieces_ - 1) * channels_per_piece_;
    parallel_tasks(1, [&](int64_t) {  // as a task: on one thread
      for (const int64_t images : {images_per_slab_, last_images_})
        for (const int64_t channels : {channels_per_piece_, last_channels_}) {
          auto& primitive = primitives_[images != images_per_slab_][channels != channels_per_piece_];
          const bool data = pass == ConvPass::data;
          const auto& first = primitives_[0][channels != channels_per_piece_];
          const ConvPrimitive* packer = first ? &*first : nullptr;
          if (!primitive) primitive.emplace(pass, sizes, images, data ? channels : sizes.in, data ? sizes.out : channels, bias, packer);
        }
    });
  }

  int64_t slabs() const { return slabs_; }
  int64_t pieces() const { return pieces_; }
  int64_t tasks() const { return slabs_ * pieces_; }
  int64_t channels(int64_t piece) const { return piece == pieces_ - 1 ? last_channels_ : channels_per_piece_; }

  Part part(int64_t task) const {
    const int64_t slab = task / pieces_, piece = task % pieces_, image = slab * images_per_slab_, channel = piece * channels_per_piece_;
    const bool data = pass_ == ConvPass::data;
    const bool fewer_images = slab == slabs_ - 1 && last_images_ != images_per_slab_;
    const bool fewer_channels = piece == pieces_ - 1 && last_channels_ != channels_per_piece_;
    return {.primitive = &*primitives_[fewer_images][fewer_channels],
            .slab = slab,
            .piece = piece,
            .x = (image * sizes_.in + (data ? channel : 0)) * sizes_.pixels(),
            .w = channel * (data ? 1 : sizes_.in / sizes_.options.groups) * sizes_.taps(),
            .b = channel,
            .y = (image * sizes_.out + (data ? 0 : channel)) * sizes_.out_pixels()};
  }

  // The primitive whose packing the weights of a piece have, in whichever slab.
  const ConvPrimitive& packer(int64_t piece) const { return *part(piece).primitive; }

  // The weights of every piece, packed once for all its tasks.
  Tensors pack(const Tensor& w) const {
    Tensors packed;
    for (int64_t piece = 0; piece < pieces_; ++piece) packed.push_back(Tensor::empty({packer(piece).packed_count()}));
    parallel_tasks(
        pieces_, [&](int64_t piece) { packer(piece).pack(raw<float>(w) + part(piece).w, raw<float>(packed[static_cast<size_t>(piece)])); });
    return packed;
  }

 private:
  ConvPass pass_;
  ConvSizes sizes_;
  int64_t channels_, images_per_slab_, slabs_, last_images_, channels_per_piece_, pieces_, last_channels_;
  std::optional<ConvPrimitive> primitives_[2][2];  // [of a smaller last slab][of a smaller last piece]
};

// y from x, or x from y: whichever the pass writes. x: (B, C, Y, X), w: (O, C / groups, KY, KX), b: (O) or undefined
void convolve(ConvPass pass, const ConvSizes& sizes, const Tensor& x, const Tensor& w, const Tensor& b, const Tensor& y) {
  if (x.count() == 0) return;
  count_work(sizes.multiply_adds(x.size(0)));
  const Plan plan(pass, sizes, x.size(0), b.defined());
  const Tensors packed = plan.pack(w);
  parallel_tasks(plan.tasks(), [&](int64_t task) {
    const Part part = plan.part(task);
    part.primitive->run(raw<float>(x) + part.x, raw<float>(packed[static_cast<size_t>(part.piece)]),
                        b.defined() ? raw<float>(b) + part.b : nullptr, raw<float>(y) + part.y);
  });
}

// dw: (O, C / groups, KY, KX) and db: (O) from x: (B, C, Y, X) and g: (B, O, OY, OX)
std::pair<Tensor, Tensor> weight_gradient(const ConvSizes& sizes, const Tensor& x, const Tensor& g) {
  const Shape shape{sizes.out, sizes.in / sizes.options.groups, sizes.kernel[0], sizes.kernel[1]};
  if (x.count() == 0) return {Tensor::zeros(shape, DType::f32, x.device()), Tensor::zeros({sizes.out}, DType::f32, x.device())};
  count_work(sizes.multiply_adds(x.size(0)));
  const Tensor dw = Tensor::empty(shape, DType::f32, x.device()), db = Tensor::empty({sizes.out}, DType::f32, x.device());
  const Plan plan(ConvPass::weights, sizes, x.size(0), true);
  // Of every piece, a row per slab: packed weights, then the bias.
  const auto weights_of = [&](int64_t piece) { return divide_up(plan.packer(piece).packed_count(), 16) * 16; };
  Tensors sums;
  for (int64_t piece = 0; piece < plan.pieces(); ++piece)
    sums.push_back(Tensor::empty({plan.slabs(), weights_of(piece) + divide_up(plan.channels(piece), 16) * 16}));
  parallel_tasks(plan.tasks(), [&](int64_t task) {
    const Part part = plan.part(task);
    const Tensor& rows = sums[static_cast<size_t>(part.piece)];
    float* const row = raw<float>(rows) + part.slab * rows.size(1);
    part.primitive->run(raw<float>(x) + part.x, row, row + weights_of(part.piece), raw<float>(g) + part.y);
  });
  for (const Tensor& rows : sums) HWY_DYNAMIC_DISPATCH(sum_conv_rows)(raw<float>(rows), rows.size(0), rows.size(1));
  parallel_tasks(plan.pieces(), [&](int64_t piece) {
    const Part part = plan.part(piece);
    float* const row = raw<float>(sums[static_cast<size_t>(piece)]);
    part.primitive->unpack(row, raw<float>(dw) + part.w);
    std::memcpy(raw<float>(db) + part.b, row + weights_of(piece), static_cast<size_t>(plan.channels(piece)) * sizeof(float));
  });
  return {dw, db};
}

ConvSizes sizes_of(const Tensor& x, const Tensor& w, const Tensor& b, const Conv2d& options) {
  check(x.rank() == 4, "conv2d: x has shape ", x.shape(), ", expected (B, C, Y, X)");
  check(w.rank() == 4, "conv2d: the weight has shape ", w.shape(), ", expected (O, C / groups, KY, KX)");
  const int64_t in = x.size(1), out = w.size(0), groups = options.groups;
  check(in >= 1 && out >= 1, "conv2d: ", in, " input and ", out, " output channels, expected 1 or more");
  check(groups >= 1, "conv2d: ", groups, " groups, expected 1 or more");
  check(in % groups == 0, "conv2d: ", groups, " groups do not divide ", in, " input channels");
  check(out % groups == 0, "conv2d: ", groups, " groups do not divide ", out, " output channels");
  check(w.size(1) == in / groups, "conv2d: the weight takes ", w.size(1), " channels, x has ", in, " in ", groups, " groups");
  check(!b.defined() || b.shape() == Shape{out}, "conv2d: the bias has shape ", b.shape(), ", the weight ", out, " output channels");
  const Pair image{x.size(2), x.size(3)}, kernel{w.size(2), w.size(3)};
  const Pair places = window_places("conv2d", image, kernel, options.stride, options.padding, options.dilation);
  return {.in = in, .out = out, .image = image, .kernel = kernel, .places = places, .options = options};
}

// Whether the windows tile the image, as the patches of a vision transformer do.
bool tiles_the_image(const ConvSizes& s) {
  const Conv2d& o = s.options;
  const bool plain = o.groups == 1 && o.padding == Pair{0, 0} && o.dilation == Pair{1, 1} && o.stride == s.kernel && s.taps() > 1;
  return plain && s.image[0] % s.kernel[0] == 0 && s.image[1] % s.kernel[1] == 0;
}

// Then the convolution is a linear layer on flattened patches, and twice as fast so.
Tensor linear_on_patches(const Tensor& x, const Tensor& w, const Tensor& b, const ConvSizes& s) {
  const int64_t B = x.size(0), width = s.in * s.taps();
  const Tensor cut = reshape(x, {B, s.in, s.places[0], s.kernel[0], s.places[1], s.kernel[1]});
  const Tensor patches = reshape(permute(cut, {0, 2, 4, 1, 3, 5}), {B * s.out_pixels(), width});
  const Tensor y = linear(patches, reshape(w, {s.out, width}), b);
  return permute(reshape(y, {B, s.places[0], s.places[1], s.out}), {0, 3, 1, 2});
}

}  // namespace

Tensor conv2d(const Tensor& input, const Tensor& weight, const Tensor& bias, const Conv2d& options) {
  if (is_half(input) || is_half(weight) || is_half(bias))
    return in_f32(input, [&](const Tensor& wide) { return conv2d(wide, widen(weight), widen(bias), options); });
  const Tensor x = dense_f32("conv2d", input), w = dense_f32("conv2d", weight);
  const Tensor b = bias.defined() ? dense_f32("conv2d", bias) : Tensor();
  const ConvSizes sizes = sizes_of(x, w, b, options);
  if (tiles_the_image(sizes)) return linear_on_patches(input, weight, bias, sizes);
  const Tensor y = Tensor::empty({x.size(0), sizes.out, sizes.places[0], sizes.places[1]}, DType::f32, x.device());
  convolve(ConvPass::forward, sizes, x, w, b, y);

  const bool to_x = input.needs_grad(), to_w = weight.needs_grad() || bias.needs_grad();
  const auto back = [sizes, to_x, to_w, before = x.shape(), x = to_w ? x : Tensor(), w = to_x ? w : Tensor()](const Tensor& gradient) {
    const Tensor g = contiguous(gradient);
    Grads grads(3);
    if (to_x) {
      grads[0] = Tensor::empty(before, DType::f32, g.device());
      convolve(ConvPass::data, sizes, grads[0], w, {}, g);
    }
    if (to_w) std::tie(grads[1], grads[2]) = weight_gradient(sizes, x, g);
    return grads;
  };
  return record(op::conv2d, y, {input, weight, bias}, back);
}

}  // namespace heed
#endif
