#include "heed/ops/packed_weight.h"

#include <algorithm>
#include <numeric>

#include "heed/core/parallel.h"
#include "heed/core/raw.h"
#include "heed/core/work_count.h"
#include "heed/ops/epilogue.h"
#include "heed/ops/int8_gemm.h"
#include "heed/ops/packed_gemm.h"
#include "heed/ops/quantize_rows.h"
#include "heed/ops/storage.h"

namespace heed {

// Blocks of some outputs, each a matrix of its own, so that tasks share the work by outputs too.
class PackedWeight::Bytes {
 public:
  Bytes(const Tensor& weight) : inputs_(weight.size(1)), scales_(static_cast<size_t>(weight.size(0))) {
    const int64_t O = weight.size(0);
    std::vector<int8_t> rows(static_cast<size_t>(O * inputs_));
    quantize_rows(raw<float>(weight), O, inputs_, max_int8_weight(), rows.data(), scales_.data());
    for (int64_t first = 0; first < O; first += kBlock) blocks_.emplace_back();
    const auto pack = [&](int64_t block) {
      const int64_t first = block * kBlock;
      blocks_[static_cast<size_t>(block)] =
          std::make_unique<Int8Matrix>(rows.data() + first * inputs_, std::min(kBlock, O - first), inputs_);
    };
    parallel_tasks(1, pack);  // the first prepares what oneDNN's threads share
    parallel_tasks(std::ssize(blocks_) - 1, [&](int64_t block) { pack(block + 1); });
  }

  int64_t bytes() const {
    return std::accumulate(blocks_.begin(), blocks_.end(), int64_t{0}, [](int64_t sum, const auto& block) { return sum + block->bytes(); });
  }

  // x: (rows, I) -> y: (rows, O)
  void multiply(const Tensor& x, int64_t rows, float* y, const float* bias, Activation activation) const {
    const int64_t across = std::ssize(blocks_), O = std::ssize(scales_);
    const int64_t parts = (rows + kRows - 1) / kRows, height = (rows + parts - 1) / parts;
    const Tensor bytes = Tensor::empty({parts, 2 * height, inputs_}, DType::u8), scales = Tensor::empty({parts, 2 * height});
    const Tensor second = Tensor::empty({parts, height}, DType::i64);
    std::vector<SplitRows> rounded;
    for (int64_t part = 0; part < parts; ++part)
      rounded.push_back({raw<int8_t>(bytes) + part * 2 * height * inputs_, raw<float>(scales) + part * 2 * height,
                         raw<int64_t>(second) + part * height, 0});
    const auto rows_of = [&](int64_t part) { return std::min(height, rows - part * height); };
    parallel_tasks(parts, [&](int64_t part) {
      quantize_split_rows(raw<float>(x) + part * height * inputs_, rows_of(part), inputs_, rounded[static_cast<size_t>(part)]);
    });
    parallel_tasks(parts * across, [&](int64_t task) {
      const int64_t part = task / across, block = task % across, column = block * kBlock, columns = std::min(kBlock, O - column);
      const SplitRows& from = rounded[static_cast<size_t>(part)];
      float* to = y + part * height * O + column;
      thread_local std::vector<float> sums(static_cast<size_t>(2 * kRows * kBlock));
      blocks_[static_cast<size_t>(block)]->multiply(from.bytes, from.count, sums.data());
      scale_tile(sums.data(), from, scales_.data() + column, rows_of(part), columns, to, O);
      if (bias || activation != Activation::none)
        apply_epilogue(to, to, O, bias ? bias + column : nullptr, activation, rows_of(part), columns);
    });
  }

 private:
  static constexpr int64_t kBlock = 256, kRows = 96;

  int64_t inputs_;
  std::vector<float> scales_;  // of outputs
  std::vector<std::unique_ptr<Int8Matrix>> blocks_ = {};
};

PackedWeight::PackedWeight(const Tensors& parts, WeightForm form) {
  const NoGrad quiet;
  const Tensor weight = dense_f32("packed_weight", parts.size() == 1 ? parts[0] : concat(parts, 0));
  check(weight.rank() == 2, "packed_weight: the weight has shape ", weight.shape(), ", expected (outputs, inputs)");
  outputs_ = weight.size(0), inputs_ = weight.size(1);
  if (form == WeightForm::bytes && weight.count() > 0) {
    bytes_ = std::make_unique<Bytes>(weight);
  } else if (panel_width() > 0) {
    panels_ = Tensor::empty({panel_floats(outputs_, inputs_)}, DType::f32, weight.device());
    pack_panels({raw<float>(weight), inputs_, true}, outputs_, inputs_, raw<float>(panels_));
  } else {
    panels_ = weight;
  }
}

PackedWeight::~PackedWeight() = default;

int64_t PackedWeight::bytes() const { return bytes_ ? bytes_->bytes() : panels_.count() * static_cast<int64_t>(sizeof(float)); }

Tensor PackedWeight::operator()(const Tensor& input, const Tensor& bias, Activation activation) const {
  if (is_half(input)) return cast((*this)(widen(input), bias, activation), input.dtype());
  check(input.rank() >= 1 && input.size(-1) == inputs_, "linear: x has ", input.rank() ? input.size(-1) : 0, " columns, the weight ",
        inputs_);
  check(!bias.defined() || bias.shape() == Shape{outputs_}, "linear: the bias has shape ", bias.defined() ? bias.shape() : Shape{},
        ", the weight ", outputs_, " rows");
  check(!tracking({&input, &bias}), "linear: packed weights have no gradients, expected a model that was loaded to be trained");
  if (!bytes_ && panel_width() == 0) return linear(input, panels_, bias, activation);
  const Tensor x = dense_f32("linear", input), b = bias.defined() ? dense_f32("linear", bias) : Tensor();
  Shape shape = x.shape();
  shape[x.rank() - 1] = outputs_;
  const Tensor y = Tensor::empty(shape, DType::f32, x.device());
  const int64_t rows = x.count() / std::max<int64_t>(inputs_, 1);
  const float* added = b.defined() ? raw<float>(b) : nullptr;
  float* to = raw<float>(y);
  count_work(rows * outputs_ * inputs_);
  if (bytes_) {
    if (rows > 0) bytes_->multiply(x, rows, to, added, activation);
    return y;
  }
  Epilogue after;
  if (activation != Activation::none)
    after = [&](int64_t, const Tile& tile) {
      float* at = to + tile.row * outputs_ + tile.column;
      apply_epilogue(at, at, outputs_, nullptr, activation, tile.rows, tile.columns);
    };
  if (rows > 0) packed_gemm(rows, outputs_, inputs_, {raw<float>(x), inputs_}, raw<float>(panels_), added, {to, outputs_}, after);
  return y;
}

}  // namespace heed
