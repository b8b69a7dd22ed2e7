// Batched products of attention, and convolutions.
#include "bench/bench.h"
#include "heed/ops/ops.h"

namespace heed::bench {
namespace {

struct Convolution {
  const char* group;
  int64_t images, channels, side, out, kernel, stride, padding;
};

const Convolution kConvolutions[] = {
    {"patches", 1, 3, 224, 768, 16, 16, 0},  // the patch embedding of ViT-B/16
    {"resnet", 32, 64, 32, 64, 3, 1, 1},     // an inner layer of a ResNet
};

}  // namespace

std::vector<Benchmark> image_benchmarks() {
  std::vector<Benchmark> list;
  for (const bool train : {false, true}) {
    const std::string pass = train ? "train" : "forward";
    const auto call = train ? train_call : forward_call;
    const double products = train ? 3 : 1;

    constexpr int64_t H = 12, N = 197, D = 64;
    list.push_back({name_of("matmul/" + pass + "/vit-b", {H, N, D, N}), Unit::flops, products * 2.0 * H * N * N * D,
                    call({{H, N, D}, {H, D, N}}, [](const Tensors& t) { return matmul(t[0], t[1]); })});

    for (const Convolution& c : kConvolutions) {
      const int64_t out_side = (c.side + 2 * c.padding - c.kernel) / c.stride + 1;
      const double flops = 2.0 * static_cast<double>(c.images * out_side * out_side * c.out * c.channels * c.kernel * c.kernel);
      const Conv2d options{.stride = {c.stride, c.stride}, .padding = {c.padding, c.padding}};
      list.push_back({name_of("conv2d/" + pass + "/" + c.group, {c.images, c.channels, c.side, c.out, c.kernel, c.stride, c.padding}),
                      Unit::flops, products * flops,
                      call({{c.images, c.channels, c.side, c.side}, {c.out, c.channels, c.kernel, c.kernel}, {c.out}},
                           [options](const Tensors& t) { return conv2d(t[0], t[1], t[2], options); })});
    }
  }
  return list;
}

}  // namespace heed::bench
