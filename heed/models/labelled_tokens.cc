#include "heed/models/labelled_tokens.h"

#include <algorithm>

#include "heed/models/parts.h"

namespace heed {

Tensor read_rows(Tensor& labels, int64_t B, int64_t N, int64_t least) {
  const std::vector<std::vector<int64_t>> texts = rows_of(labels, B, N);
  if (texts.empty()) return first_rows(B, N);
  std::vector<std::vector<int64_t>> indices(texts.size(), {0});
  auto n = static_cast<size_t>(least);
  for (size_t b = 0; b < texts.size(); ++b) {
    for (size_t i = 1; i < texts[b].size(); ++i)
      if (texts[b][i] != -100) indices[b].push_back(static_cast<int64_t>(i));
    n = std::max(n, indices[b].size());
  }
  std::vector<int64_t> rows, selected;
  for (size_t b = 0; b < texts.size(); ++b)
    for (size_t i = 0; i < n; ++i) {
      const bool is_there = i < indices[b].size();
      const int64_t index = is_there ? indices[b][i] : 0;
      rows.push_back(static_cast<int64_t>(b) * N + index);
      selected.push_back(is_there ? texts[b][static_cast<size_t>(index)] : -100);
    }
  const Shape shape{B, static_cast<int64_t>(n)};
  labels = Tensor::from(selected, shape, kCpu);
  return Tensor::from(rows, shape, kCpu);
}

TensorMap with_labelled_tokens(TensorMap inputs, int64_t capacity) {
  constexpr int64_t step = 64;
  Tensor labels = required_input(inputs, "labels");
  check(labels.rank() == 2, "with_labelled_tokens: labels of shape ", labels.shape(), ", expected (B, N)");
  const int64_t B = labels.size(0);
  inputs[kLabelledRows] = read_rows(labels, B, labels.size(1), capacity + 1);
  std::vector<int64_t> places, targets;
  const std::vector<int64_t> read = labels.to_vector<int64_t>();
  for (size_t i = 0; i < read.size(); ++i)
    if (read[i] != -100) places.push_back(static_cast<int64_t>(i)), targets.push_back(read[i]);
  const int64_t least = std::max<int64_t>({capacity * B, std::ssize(places), 1}), size = (least + step - 1) / step * step;
  places.resize(static_cast<size_t>(size), 0);
  targets.resize(static_cast<size_t>(size), -100);
  inputs[kLabelPlaces] = Tensor::from(places, {size}, kCpu);
  inputs["labels"] = Tensor::from(targets, {size}, kCpu);
  return inputs;
}

}  // namespace heed
