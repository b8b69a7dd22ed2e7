#include "heed/nn/position_table.h"

#include <algorithm>
#include <map>
#include <mutex>

#include "heed/core/dry_run.h"
#include "heed/core/parallel.h"
#include "heed/ops/ops.h"

namespace heed {
namespace {

constexpr int64_t kMinRows = 256;  // computed first; the table doubles when it grows

}  // namespace

struct PositionTable::Computed {
  std::function<Fill()> prepare;
  Fill fill = {};
  std::mutex mutex = {};
  Tensor table = {};                  // (rows so far, width), on the CPU
  std::map<int, Tensor> copies = {};  // of the table, on GPUs

  const Tensor& on(Device device) {
    if (device == kCpu) return table;
    Tensor& copy = copies[device.index];
    if (!copy.defined() || copy.size(0) < table.size(0)) copy = table.to(device);
    return copy;
  }
};

PositionTable::PositionTable(int64_t positions, int64_t width, std::function<Fill()> prepare)
    : positions_(positions), width_(width), computed_(std::make_shared<Computed>()) {
  computed_->prepare = std::move(prepare);
}

Tensor PositionTable::rows(int64_t count, Device device) const {
  check(0 <= count && count <= positions_, "positions: ", count, " tokens, expected at most ", positions_);
  if (DryRun::newest()) return Tensor::zeros({1}, DType::f32, device).view({count, width_}, {0, 0});
  const std::lock_guard lock(computed_->mutex);
  Tensor& table = computed_->table;
  if (const int64_t before = table.defined() ? table.size(0) : 0; before < count || !table.defined()) {
    const int64_t rows = std::min(positions_, std::max({count, 2 * before, kMinRows}));
    const auto numbers = static_cast<size_t>(heed::count({rows, width_})), width = static_cast<size_t>(width_);
    if (!computed_->fill) computed_->fill = computed_->prepare();
    const std::shared_ptr<float[]> values(new float[numbers]);
    parallel_for(rows, 256, [&](int64_t begin, int64_t end) {
      for (int64_t n = begin; n < end; ++n) computed_->fill(n, std::span(values.get() + static_cast<size_t>(n) * width, width));
    });
    table = Tensor::borrow(values, reinterpret_cast<std::byte*>(values.get()), {rows, width_}, DType::f32);
  }
  return slice(computed_->on(device), 0, 0, count);
}

Tensor PositionTable::at(const Tensor& positions, Device device) const {
  int64_t largest = positions_ - 1;
  if (!DryRun::newest()) {
    const std::vector<int64_t> all = positions.to_vector<int64_t>();
    largest = all.empty() ? 0 : *std::max_element(all.begin(), all.end());
    check(largest < positions_, "positions: a token at position ", largest, ", expected less than ", positions_);
  }
  return embedding(rows(std::max<int64_t>(largest, 0) + 1, device), positions.to(device));
}

}  // namespace heed
