#include "heed/dist/split_work.h"

#include <algorithm>

#include "heed/core/interrupt.h"

namespace heed {
namespace {

FinishedParts* current_parts = nullptr;

}  // namespace

FinishedParts::FinishedParts() { current_parts = this; }
FinishedParts::~FinishedParts() { current_parts = nullptr; }
FinishedParts* FinishedParts::current() { return current_parts; }

void split_work(Group& group, int64_t count, const std::function<std::string(int64_t part)>& compute,
                const std::function<void(int64_t part, const std::string& result)>& take) {
  FinishedParts* const finished = FinishedParts::current();
  int64_t first = 0;
  for (; finished && first < count; ++first) {
    const std::optional<std::string> result = finished->next();
    if (!result) break;
    take(first, *result);
  }
  const auto take_new = [&](int64_t part, const std::string& result) {
    take(part, result);
    if (finished) finished->add(result);
  };
  for (; first < count; first += group.size()) {
    if (group.size() == 1) {
      take_new(first, compute(first));
      continue;
    }
    const bool stop = interrupt_requested();
    const std::string own = !stop && first + group.rank() < count ? compute(first + group.rank()) : "";
    const std::vector<std::string> all = group.all_gather((stop ? "1" : "0") + own);
    check<StoppedError>(std::all_of(all.begin(), all.end(), [](const std::string& each) { return each[0] == '0'; }), "interrupted");
    for (int64_t part = first; part < std::min(count, first + group.size()); ++part)
      take_new(part, all[static_cast<size_t>(part - first)].substr(1));
  }
}

// For each tensor: the length of its name, its name, its rank, its sizes, its numbers.
std::string bytes_of_tensors(const std::map<std::string, Tensor>& tensors) {
  std::string out;
  for (const auto& [name, tensor] : tensors) {
    std::vector<int64_t> header{static_cast<int64_t>(name.size()), tensor.rank()};
    for (const int64_t size : tensor.shape()) header.push_back(size);
    out += bytes_of_numbers(header) + name + bytes_of_numbers(tensor.to_vector<float>());
  }
  return out;
}

std::map<std::string, Tensor> tensors_in(const std::string& bytes) {
  std::map<std::string, Tensor> out;
  size_t at = 0;
  const auto take = [&](int64_t count) {
    at += static_cast<size_t>(count);
    return bytes.substr(at - static_cast<size_t>(count), static_cast<size_t>(count));
  };
  while (at < bytes.size()) {
    const std::vector<int64_t> lengths = numbers_in<int64_t>(take(2 * sizeof(int64_t)));
    const std::vector<int64_t> sizes = numbers_in<int64_t>(take(lengths[1] * static_cast<int64_t>(sizeof(int64_t))));
    const std::string name = take(lengths[0]);
    const Shape shape{std::span<const int64_t>(sizes)};
    out[name] = Tensor::from(numbers_in<float>(take(count(shape) * static_cast<int64_t>(sizeof(float)))), shape, kCpu);
  }
  return out;
}

bool any_of(Group& group, bool value) {
  const std::vector<std::string> all = group.all_gather(value ? "1" : "0");
  return std::find(all.begin(), all.end(), "1") != all.end();
}

}  // namespace heed
