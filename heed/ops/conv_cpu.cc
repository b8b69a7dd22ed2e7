// conv2d on the CPU, through oneDNN. The work is split by shape alone into tasks of some images and some channels; each runs a primitive on
// its own thread. Weight gradients are partial sums per task, added in a fixed order.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "heed/ops/conv_cpu.cc"
#include "hwy/foreach_target.h"
// after foreach_target
#include "heed/core/lanes.h"

#include <bit>
#include <cstring>
#include <optional>

#include "heed/core/parallel.h"
#include "heed/core/raw.h"
#include "heed/ops/conv_primitive.h"

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

// One task: a primitive, and the offset of its part in each tensor.
struct Part {
  const ConvPrimitive* primitive;
  int64_t slab, piece;  // which images, which channels
  int64_t x, w, b, y;
};

// A pass cut into slabs of images times pieces of channels: those that the pass writes, which are output channels, but
// input channels for the gradient of x. Channels are split if the batch alone gives too few tasks.
class Plan {
 public:
  Plan(ConvPass pass, const ConvSizes& sizes, bool bias) : pass_(pass), sizes_(sizes) {
    constexpr int64_t least = 1 << 21;  // multiplications worth a task: about 40 us
    constexpr int64_t enough = 16;      // tasks
    channels_ = pass == ConvPass::data ? sizes.in : sizes.out;
    const int64_t batch = sizes.B, work = std::max<int64_t>(1, sizes.weights() * sizes.window.out_pixels());  // of an image
    images_per_slab_ = std::clamp<int64_t>(least / work, 1, batch);
    if (pass == ConvPass::weights) {  // every slab makes a sum as large as the weights: several only below 16 MiB
      const int64_t slabs = std::clamp<int64_t>((1 << 22) / sizes.weights(), 1, enough);
      images_per_slab_ = std::max(images_per_slab_, divide_up(batch, static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(slabs)))));
    }
    slabs_ = divide_up(batch, images_per_slab_);
    const int64_t most = sizes.groups > 1 ? 1 : std::min(channels_ / 32, work * images_per_slab_ / least);
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
            .x = (image * sizes_.in + (data ? channel : 0)) * sizes_.window.pixels(),
            .w = channel * (data ? 1 : sizes_.in / sizes_.groups) * sizes_.window.taps(),
            .b = channel,
            .y = (image * sizes_.out + (data ? 0 : channel)) * sizes_.window.out_pixels()};
  }

  // The primitive that packs the weights of a piece, for every slab.
  const ConvPrimitive& packer(int64_t piece) const { return *part(piece).primitive; }

  // The weights of every piece, packed once for all its tasks.
  Tensors pack(float* w) const {
    Tensors packed;
    for (int64_t piece = 0; piece < pieces_; ++piece) packed.push_back(Tensor::empty({packer(piece).packed_count()}, DType::f32, kCpu));
    parallel_tasks(pieces_, [&](int64_t piece) { packer(piece).pack(w + part(piece).w, raw<float>(packed[static_cast<size_t>(piece)])); });
    return packed;
  }

 private:
  ConvPass pass_;
  ConvSizes sizes_;
  int64_t channels_, images_per_slab_, slabs_, last_images_, channels_per_piece_, pieces_, last_channels_;
  std::optional<ConvPrimitive> primitives_[2][2];  // [of a smaller last slab][of a smaller last piece]
};

// oneDNN takes pointers without const, and does not write through those of inputs.
float* without_const(const float* input) { return const_cast<float*>(input); }

// y from x, or x from y: whichever the pass writes. b may be null.
void convolve(ConvPass pass, const ConvSizes& sizes, float* x, float* w, float* b, float* y) {
  if (sizes.B == 0) return;
  const Plan plan(pass, sizes, b != nullptr);
  const Tensors packed = plan.pack(w);
  parallel_tasks(plan.tasks(), [&](int64_t task) {
    const Part part = plan.part(task);
    part.primitive->run(x + part.x, raw<float>(packed[static_cast<size_t>(part.piece)]), b ? b + part.b : nullptr, y + part.y);
  });
}

}  // namespace

void cpu::conv_forward(const ConvForward& args) {
  convolve(ConvPass::forward, args.sizes, without_const(args.x), without_const(args.w), without_const(args.b), args.y);
}

void cpu::conv_backward_input(const ConvBackwardInput& args) {
  convolve(ConvPass::data, args.sizes, args.dx, without_const(args.w), nullptr, without_const(args.g));
}

void cpu::conv_backward_weight(const ConvBackwardWeight& args) {
  const ConvSizes& sizes = args.sizes;
  if (sizes.B == 0) {
    std::fill_n(args.dw, sizes.weights(), 0.0f);
    std::fill_n(args.db, sizes.out, 0.0f);
    return;
  }
  const Plan plan(ConvPass::weights, sizes, true);
  // Of every piece, a row per slab: packed weights, then the bias.
  const auto weights_of = [&](int64_t piece) { return divide_up(plan.packer(piece).packed_count(), 16) * 16; };
  Tensors sums;
  for (int64_t piece = 0; piece < plan.pieces(); ++piece)
    sums.push_back(Tensor::empty({plan.slabs(), weights_of(piece) + divide_up(plan.channels(piece), 16) * 16}, DType::f32, kCpu));
  parallel_tasks(plan.tasks(), [&](int64_t task) {
    const Part part = plan.part(task);
    const Tensor& rows = sums[static_cast<size_t>(part.piece)];
    float* const row = raw<float>(rows) + part.slab * rows.size(1);
    part.primitive->run(without_const(args.x) + part.x, row, row + weights_of(part.piece), without_const(args.g) + part.y);
  });
  for (const Tensor& rows : sums) HWY_DYNAMIC_DISPATCH(sum_conv_rows)(raw<float>(rows), rows.size(0), rows.size(1));
  parallel_tasks(plan.pieces(), [&](int64_t piece) {
    const Part part = plan.part(piece);
    float* const row = raw<float>(sums[static_cast<size_t>(piece)]);
    part.primitive->unpack(row, args.dw + part.w);
    std::memcpy(args.db + part.b, row + weights_of(piece), static_cast<size_t>(plan.channels(piece)) * sizeof(float));
  });
}

}  // namespace heed
#endif
