// Copies are found by the address of what they are copies of.
#include "heed/core/bf16_copy.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>

#include "heed/core/copy.h"
#include "heed/core/copy_kernels.h"
#include "heed/core/raw.h"
#include "heed/cuda/graph.h"

namespace heed {
namespace {

constexpr auto kBytes = static_cast<int64_t>(sizeof(float));

// Weights with adjacent copies: address and number of elements.
using Adjoined = std::vector<std::pair<const std::byte*, int64_t>>;

struct KeptCopy {
  int64_t count = 0;
  Tensor copy = {};                               // (count); undefined: not made yet
  bool dry = false;                               // made in a dry run
  bool barred = false;                            // a CUDA graph writes the weight alone
  std::shared_ptr<const Adjoined> adjoined = {};  // null: alone

  bool is_made() const { return copy.defined() && (!dry || DryRun::newest()); }
};
using KeptCopies = std::map<const std::byte*, KeptCopy>;

struct Registry {
  std::recursive_mutex mutex;  // a copy that is replaced frees memory, which is looked up here
  KeptCopies copies;
  std::atomic<int64_t> count{0};

  // The entry whose weight contains these bytes.
  KeptCopies::iterator containing(const std::byte* begin, int64_t count_wanted) {
    auto at = copies.upper_bound(begin);
    if (at == copies.begin()) return copies.end();
    --at;
    return begin + count_wanted * kBytes <= at->first + at->second.count * kBytes ? at : copies.end();
  }
  // A new entry; none if the weight overlaps another one.
  KeptCopies::iterator add(const std::byte* begin, int64_t elements) {
    if (overlapping(begin, begin + elements * kBytes) != copies.end()) return copies.end();
    ++count;
    return copies.emplace(begin, KeptCopy{.count = elements}).first;
  }
  // The first entry that overlaps the bytes.
  KeptCopies::iterator overlapping(const std::byte* begin, const std::byte* end) {
    auto at = copies.upper_bound(begin);
    if (at != copies.begin() && std::prev(at)->first + std::prev(at)->second.count * kBytes > begin) --at;
    return at != copies.end() && at->first < end ? at : copies.end();
  }
};

Registry& registry() {
  static auto* const made = new Registry;  // tensors may outlive every static
  return *made;
}

// The part of a copy that belongs to x, a part of the weight that starts at `begin`.
Tensor part_of_copy(const std::byte* begin, const KeptCopy& kept, const Tensor& x) {
  return kept.copy.view(x.shape(), x.strides(), (Raw::bytes(x) - begin) / kBytes);
}

void round_into(const std::byte* from, const Tensor& to) {
  StridedCopy copy{.from = from, .to = Raw::bytes(to), .from_dtype = DType::f32, .to_dtype = DType::bf16, .rank = 1};
  copy.size[0] = to.count(), copy.from_stride[0] = copy.to_stride[0] = 1;
  launch(copy_elements, to.device(), copy);
}

// What is copied together: the weight of an entry, and those with adjacent copies unless one of them was freed.
Adjoined copied_together(const Registry& all, KeptCopies::iterator at) {
  if (const auto& adjoined = at->second.adjoined) {
    const auto is_there = [&](const auto& part) {
      const auto found = all.copies.find(part.first);
      return found != all.copies.end() && found->second.adjoined == adjoined && !found->second.barred;
    };
    if (std::all_of(adjoined->begin(), adjoined->end(), is_there)) return *adjoined;
  }
  return {{at->first, at->second.count}};
}

// Adjacent copies of weights.
Tensors rounded(const Adjoined& weights, Device device) {
  int64_t total = 0;
  for (const auto& [begin, count] : weights) total += count;
  const Tensor whole = Tensor::empty({total}, DType::bf16, device);
  Tensors copies;
  int64_t offset = 0;
  for (const auto& [begin, count] : weights) {
    copies.push_back(whole.view({count}, {1}, offset));
    round_into(begin, copies.back());
    offset += count;
  }
  return copies;
}

// Keeps the copies of weights, except of those that another thread has copied meanwhile.
void keep_copies(Registry& all, const Adjoined& weights, const Tensors& copies) {
  for (size_t i = 0; i < weights.size(); ++i) {
    const auto found = all.copies.find(weights[i].first);
    if (found == all.copies.end() || found->second.count != weights[i].second || found->second.is_made()) continue;
    found->second.copy = copies[i];
    found->second.dry = DryRun::newest() != nullptr;
  }
}

void check_roundable(const Tensor& x) {
  check(x.dtype() == DType::f32 && x.is_contiguous(), "bf16_copy: a tensor of shape ", x.shape(), " of ", name_of(x.dtype()),
        ", expected a dense one of f32");
}

}  // namespace

Tensor bf16_copy(const Tensor& x) {
  check_roundable(x);
  if (x.count() == 0) return Tensor::empty(x.shape(), DType::bf16, x.device());
  Registry& all = registry();
  const std::byte* const begin = Raw::bytes(x);
  Adjoined weights;
  {
    const std::lock_guard lock(all.mutex);
    auto at = all.containing(begin, x.count());
    if (at != all.copies.end() && at->second.is_made()) return part_of_copy(at->first, at->second, x);
    if (cuda::Graph::is_recording() || (at != all.copies.end() && at->second.barred)) return x.detach();
    if (at == all.copies.end()) at = all.add(begin, x.count());
    if (at == all.copies.end()) return x.detach();
    weights = copied_together(all, at);
  }
  // Without the lock: kernels wait for tasks of other threads, and tasks that free memory wait for the lock.
  const Tensors copies = rounded(weights, x.device());
  const std::lock_guard lock(all.mutex);
  keep_copies(all, weights, copies);
  const auto at = all.containing(begin, x.count());
  return at != all.copies.end() && at->second.is_made() ? part_of_copy(at->first, at->second, x) : x.detach();
}

Tensor kept_bf16_copy(const Tensor& x) {
  Registry& all = registry();
  if (all.count == 0 || x.dtype() != DType::f32 || !x.is_contiguous()) return {};
  const std::lock_guard lock(all.mutex);
  const auto at = all.containing(Raw::bytes(x), x.count());
  if (at == all.copies.end() || !at->second.is_made()) return {};
  return part_of_copy(at->first, at->second, x);
}

Tensor bf16_copy_to_write(const Tensor& x) {
  const Tensor copy = kept_bf16_copy(x);
  if (copy.defined() || x.count() == 0 || !cuda::Graph::is_recording()) return copy;
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  auto at = all.containing(Raw::bytes(x), x.count());
  if (at == all.copies.end()) at = all.add(Raw::bytes(x), x.count());
  if (at != all.copies.end()) at->second.barred = true;
  return copy;
}

void adjoin_bf16_copies(const Tensors& parts) {
  auto adjoined = std::make_shared<Adjoined>();
  for (const Tensor& part : parts) {
    check_roundable(part);
    if (part.count() == 0) return;
    adjoined->emplace_back(Raw::bytes(part), part.count());
  }
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  for (const auto& [begin, count] : *adjoined)
    if (all.overlapping(begin, begin + count * kBytes) != all.copies.end()) return;  // a shared weight keeps its place
  for (const auto& [begin, count] : *adjoined) {
    const auto at = all.add(begin, count);
    if (at != all.copies.end()) at->second.adjoined = adjoined;  // none if the same weight is among them twice
  }
}

Tensor joined_bf16_copy(const Tensors& parts) {
  const Tensor first = bf16_copy(parts[0]);
  if (first.dtype() != DType::bf16) return {};
  Shape shape = first.shape();
  shape[0] = 0;
  for (const Tensor& part : parts) {
    const Tensor copy = bf16_copy(part);
    const bool follows = copy.shares_data_with(first) && Raw::bytes(copy) == Raw::bytes(first) + shape[0] * first.strides()[0] * 2;
    if (!follows || copy.strides() != first.strides()) return {};
    shape[0] += part.size(0);
  }
  return first.view(shape, first.strides());
}

void refresh_bf16_copy(const Tensor& x) {
  Registry& all = registry();
  if (all.count == 0 || x.dtype() != DType::f32 || x.count() == 0) return;
  int64_t last = 0;
  for (int axis = 0; axis < x.rank(); ++axis) last += (x.shape()[axis] - 1) * x.strides()[axis];
  const std::byte *const begin = Raw::bytes(x), *const end = begin + (last + 1) * kBytes;
  for (const std::byte* at = begin; at < end;) {
    Tensor weight, copy;
    {
      const std::lock_guard lock(all.mutex);
      const auto found = all.overlapping(at, end);
      if (found == all.copies.end()) return;
      const KeptCopy& kept = found->second;
      at = found->first + kept.count * kBytes;
      if (!kept.is_made()) continue;
      weight = found->first <= begin && end <= at ? x.detach() : x.view({kept.count}, {1}, (found->first - begin) / kBytes);
      copy = part_of_copy(found->first, kept, weight);
    }
    copy_into(weight, copy);
  }
}

void forget_bf16_copies(const std::byte* begin, int64_t bytes) {
  Registry& all = registry();
  if (all.count == 0) return;
  for (;;) {
    KeptCopies::node_type freed;  // after the lock: its own memory is forgotten, too
    const std::lock_guard lock(all.mutex);
    const auto at = all.overlapping(begin, begin + bytes);
    if (at == all.copies.end()) return;
    freed = all.copies.extract(at);
    --all.count;
  }
}

}  // namespace heed
