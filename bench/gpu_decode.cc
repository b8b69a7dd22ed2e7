// The kernels of a decoding step, on the shapes of GPT-2: as many different weights and caches as a token reads, so that they come from
// memory, as one CUDA graph.
#include <map>
#include <memory>

#include "bench/gpu.h"
#include "heed/attention/cached_attention.h"
#include "heed/core/captured_step.h"
#include "heed/ops/ops.h"
#include "heed/ops/row_linear.h"

namespace heed::bench {
namespace {

Call captured(const GpuSetup& setup, std::function<void()> work) {
  const auto step = std::make_shared<CapturedStep>(
      setup.device, nullptr,
      [work = std::move(work)] {
        work();
        return Tensors();
      },
      false);
  return [step] { step->run(); };
}

Tensor bytes_of_weights(int64_t rows, int64_t columns, Device device) {
  std::vector<uint8_t> values(static_cast<size_t>(rows * columns));
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<uint8_t>(i * 31);
  return Tensor::from(values, {rows, columns}, device);
}

// Every matrix of GPT-2 times `rows` tokens: those of 12 layers and the head.
GpuLine products_line(int64_t rows, DType dtype, const GpuSetup& setup) {
  const int64_t D = setup.tiny ? 64 : 768, layers = setup.tiny ? 1 : 12, words = setup.tiny ? 100 : 50257;
  const std::vector<std::pair<int64_t, int64_t>> shapes{{3 * D, D}, {D, D}, {4 * D, D}, {D, 4 * D}};
  const double count = static_cast<double>(layers * 12 * D * D + words * D);
  return {.name = name_of(std::string("gpt2_products/forward/") + (dtype == DType::u8 ? "int8" : name_of(dtype)), {rows}),
          .make = [=]() -> Call {
            std::vector<RowLayer> all;
            const auto add = [&](int64_t O, int64_t I) {
              const bool bytes = dtype == DType::u8;
              RowLayer layer{.weight = bytes ? bytes_of_weights(O, I, setup.device) : gpu_random({O, I}, setup, dtype),
                             .scales = bytes ? gpu_random({O}, setup, DType::f32) : Tensor(),
                             .bias = gpu_random({O}, setup, DType::f32)};
              if (I == D) layer.norm_weight = layer.norm_bias = gpu_random({I}, setup, DType::f32);
              all.push_back(std::move(layer));
            };
            for (int64_t i = 0; i < layers; ++i)
              for (const auto& [O, I] : shapes) add(O, I);
            add(words, D);
            std::map<int64_t, Tensor> states, results;  // by width
            for (const RowLayer& layer : all)
              for (const int64_t width : {layer.weight.size(0), layer.weight.size(1)}) {
                if (!states.contains(width)) states[width] = gpu_random({rows, width}, setup, DType::f32);
                if (!results.contains(width)) results[width] = Tensor::empty({rows, width}, setup.device);
              }
            return captured(setup, [=] {
              for (const RowLayer& layer : all) row_linear(layer, states.at(layer.weight.size(1)), results.at(layer.weight.size(0)));
            });
          },
          .bytes = count* static_cast<double>(dtype == DType::u8 ? 1 : bytes_of(dtype))};
}

// A new token's attention in 12 layers, to so many tokens.
GpuLine cached_attention_line(int64_t tokens, const GpuSetup& setup) {
  const int64_t H = setup.tiny ? 2 : 12, D = 64, layers = setup.tiny ? 1 : 12;
  const int64_t capacity = (tokens + CachedAttention::kChunk) / CachedAttention::kChunk * CachedAttention::kChunk;
  return {.name = name_of("gpt2_attention/forward", {1, H, tokens, D}),
          .make = [=]() -> Call {
            std::vector<CachedHeads> all;
            for (int64_t i = 0; i < layers; ++i) {
              CachedHeads heads{.keys = gpu_random({1, H, capacity, D}, setup),
                                .values = gpu_random({1, H, capacity, D}, setup),
                                .lengths = Tensor::full({1}, static_cast<double>(tokens - 1), DType::i64, setup.device),
                                .beta = 0.125f};
              std::tie(heads.tickets, heads.parts) = cached_attention_scratch(heads.keys, H);
              all.push_back(std::move(heads));
            }
            const Tensor qkv = gpu_random({1, 3 * H * D}, setup, DType::f32), out = gpu_random({1, H * D}, setup, DType::f32);
            return captured(setup, [=] {
              for (const CachedHeads& heads : all) cached_attention(heads, qkv, out);
            });
          },
          .bytes = 4 * static_cast<double>(layers * H * tokens * D)};
}

}  // namespace

GpuLines gpu_decode_lines(const GpuSetup& setup) {
  GpuLines lines;
  for (const int64_t rows : {1, 8}) lines.push_back(products_line(rows, DType::bf16, setup));
  lines.push_back(products_line(1, DType::u8, setup));
  for (const int64_t tokens : {144, 1000}) lines.push_back(cached_attention_line(tokens, setup));
  return lines;
}

}  // namespace heed::bench
