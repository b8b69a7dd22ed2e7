#include "heed/ops/int8_weight.h"

#include <numeric>

#include "heed/core/parallel.h"
#include "heed/core/raw.h"
#include "heed/ops/epilogue.h"
#include "heed/ops/quantize_rows.h"

namespace heed {

void Int8Weight::pack(const float* weight) {
  const int64_t O = std::ssize(scales_), I = inputs_;
  std::vector<int8_t> rows(static_cast<size_t>(O * I));
  quantize_rows(weight, O, I, max_int8_weight(), rows.data(), scales_.data());
  blocks_.resize(static_cast<size_t>((O + kBlock - 1) / kBlock));
  const auto pack_block = [&](int64_t block) {
    const int64_t first = block * kBlock;
    blocks_[static_cast<size_t>(block)] = std::make_unique<Int8Matrix>(rows.data() + first * I, std::min(kBlock, O - first), I);
  };
  parallel_tasks(1, pack_block);  // the first one prepares what oneDNN's threads share
  parallel_tasks(std::ssize(blocks_) - 1, [&](int64_t block) { pack_block(block + 1); });
}

int64_t Int8Weight::bytes() const {
  return std::accumulate(blocks_.begin(), blocks_.end(), int64_t{0}, [](int64_t sum, const auto& block) { return sum + block->bytes(); });
}

void Int8Weight::multiply(const Int8Linear& a) const {
  const int64_t across = std::ssize(blocks_), O = std::ssize(scales_);
  const int64_t parts = (a.rows + kRows - 1) / kRows, height = (a.rows + parts - 1) / parts;
  const Tensor bytes = Tensor::empty({parts, 2 * height, inputs_}, DType::u8, kCpu);
  const Tensor scales = Tensor::empty({parts, 2 * height}, DType::f32, kCpu), second = Tensor::empty({parts, height}, DType::i64, kCpu);
  std::vector<SplitRows> quantized;
  for (int64_t part = 0; part < parts; ++part)
    quantized.push_back({raw<int8_t>(bytes) + part * 2 * height * inputs_, raw<float>(scales) + part * 2 * height,
                         raw<int64_t>(second) + part * height, 0});
  const auto rows_of = [&](int64_t part) { return std::min(height, a.rows - part * height); };
  parallel_tasks(parts, [&](int64_t part) {
    quantize_split_rows(a.x + part * height * inputs_, rows_of(part), inputs_, quantized[static_cast<size_t>(part)]);
  });
  parallel_tasks(parts * across, [&](int64_t task) {
    const int64_t part = task / across, block = task % across, column = block * kBlock, columns = std::min(kBlock, O - column);
    const SplitRows& from = quantized[static_cast<size_t>(part)];
    float* to = a.y + part * height * O + column;
    thread_local std::vector<float> sums(static_cast<size_t>(2 * kRows * kBlock));
    blocks_[static_cast<size_t>(block)]->multiply(from.bytes, from.count, sums.data());
    scale_tile(sums.data(), from, scales_.data() + column, rows_of(part), columns, to, O);
    if (a.bias || a.activation != Activation::none)
      apply_epilogue({.sums = to,
                      .sums_stride = O,
                      .z = nullptr,
                      .y = to,
                      .stride = O,
                      .bias = a.bias ? a.bias + column : nullptr,
                      .activation = a.activation,
                      .rows = rows_of(part),
                      .columns = columns});
  });
}

void cpu::pack_int8(const PackInt8& args) { args.weight->pack(args.from); }

void cpu::int8_linear(const Int8Linear& args) {
  if (args.rows > 0) args.weight->multiply(args);
}

}  // namespace heed
