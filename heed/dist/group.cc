#include "heed/dist/group.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "heed/core/bf16_copy.h"
#include "heed/core/copy.h"
#include "heed/core/raw.h"
#include "heed/cuda/nccl.h"
#include "heed/cuda/runtime.h"

namespace heed {
namespace {

std::span<float> floats_of(const Tensor& x) {
  check(x.dtype() == DType::f32 && x.is_contiguous() && x.device() == kCpu, "group: a tensor of shape ", x.shape(),
        " is not a dense f32 tensor on the CPU");
  return {raw<float>(x), static_cast<size_t>(x.count())};
}

// Calls body with the values in host memory, which are copied back afterwards.
template <class Body>
void on_host(const Tensor& values, const Body& body) {
  if (values.device() == kCpu) {
    body(floats_of(values));
    return refresh_bf16_copy(values);
  }
  const Tensor copy = values.to(kCpu);
  body(floats_of(copy));
  copy_into(copy, values);
}

// What process `owner` has of values, to be sent to `rank` or received from it.
cuda::NcclGroup::Part slice_of(const Tensor& values, std::span<const int64_t> begins, int owner, int rank) {
  const auto p = static_cast<size_t>(owner);
  return {raw<float>(values) + begins[p], begins[p + 1] - begins[p], rank};
}

// On the CPU: the slices of all parts for process 0, then those for process 1, ... One part is that already.
Tensor by_process(const Tensors& parts, std::span<const int64_t> begins) {
  if (parts.size() == 1) return parts[0].to(kCpu);
  Tensors on_cpu;
  for (const Tensor& part : parts) on_cpu.push_back(part.to(kCpu));
  const Tensor out = Tensor::empty({begins.back() * std::ssize(parts)}, kCpu);
  auto end = floats_of(out).begin();
  for (size_t p = 0; p + 1 < begins.size(); ++p)
    for (const Tensor& part : on_cpu) end = std::copy(floats_of(part).begin() + begins[p], floats_of(part).begin() + begins[p + 1], end);
  return out;
}

Tensors rows_in(const Tensor& x) {
  Tensors out;
  for (int64_t i = 0; i < x.size(0); ++i) out.push_back(x.view({x.size(1)}, {1}, i * x.size(1)));
  return out;
}

int64_t bytes_of_floats(int64_t count) { return count * static_cast<int64_t>(sizeof(float)); }

}  // namespace

Group::Group(int rank, std::vector<std::string> hosts) : rank_(rank), size_(static_cast<int>(hosts.size())), hosts_(std::move(hosts)) {}

Group::~Group() = default;

int Group::local_rank() const { return static_cast<int>(std::count(hosts_.begin(), hosts_.begin() + rank_, host(rank_))); }

bool Group::connects(Device device) const { return gpus_ != nullptr && device == connected_; }

void Group::connect(Device device) {
  if (size_ == 1 || connects(device)) return;
  const bool here = device.kind == Device::Kind::cuda && cuda::computing_device(device) == device && cuda::has_nccl();
  const std::vector<std::string> all = all_gather(here ? host(rank_) + ' ' + cuda::gpu_address(device.index) : "");
  const std::set<std::string> gpus(all.begin(), all.end());
  if (gpus.contains("") || gpus.size() < all.size()) return;
  gpus_ = std::make_unique<cuda::NcclGroup>(broadcast(is_first() ? cuda::nccl_id() : "", 0), rank_, size_, device.index);
  connected_ = device;
}

int Group::host_count() const { return static_cast<int>(std::set<std::string>(hosts_.begin(), hosts_.end()).size()); }

std::string Group::name_of(int rank) const { return "rank " + std::to_string(rank) + " on " + host(rank); }

void Group::broadcast(const Tensor& values, int root) {
  if (size_ == 1) return;
  on_host(values, [&](std::span<float> host) { broadcast(std::as_writable_bytes(host), root); });
}

void Group::all_reduce(const Tensor& values) {
  if (size_ == 1) return;
  if (connects(values.device())) return gpus_->all_reduce(raw<float>(values), values.count());
  on_host(values, [&](std::span<float> host) { all_reduce(host); });
}

void Group::all_gather(const Tensor& values, std::span<const int64_t> begins) {
  if (size_ == 1) return;
  if (connects(values.device())) {
    std::vector<cuda::NcclGroup::Part> send, receive;
    for (int p = 0; p < size_; ++p) {
      if (p == rank_) continue;
      send.push_back(slice_of(values, begins, rank_, p));
      receive.push_back(slice_of(values, begins, p, p));
    }
    return gpus_->send_and_receive(send, receive);
  }
  std::vector<int64_t> sizes;
  for (size_t p = 0; p < static_cast<size_t>(size_); ++p) sizes.push_back(bytes_of_floats(begins[p + 1] - begins[p]));
  on_host(values, [&](std::span<float> host) {
    const auto own = static_cast<size_t>(rank_);
    all_gather(std::as_bytes(host.subspan(static_cast<size_t>(begins[own]), static_cast<size_t>(begins[own + 1] - begins[own]))),
               std::as_writable_bytes(host), sizes);
  });
}

Tensors Group::exchange(const Tensors& parts, std::span<const int64_t> begins, std::span<const int64_t> parts_of) {
  const auto own = static_cast<size_t>(rank_);
  const int64_t count = begins[own + 1] - begins[own], arriving = std::accumulate(parts_of.begin(), parts_of.end(), int64_t{0});
  const Device device = parts.at(0).device();
  const Tensor received = Tensor::empty({arriving, count}, connects(device) ? device : kCpu);
  if (connects(device)) {
    std::vector<cuda::NcclGroup::Part> send, receive;
    for (int p = 0; p < size_; ++p) {
      for (const Tensor& part : parts) send.push_back(slice_of(part, begins, p, p));
      for (int64_t i = 0; i < parts_of[static_cast<size_t>(p)]; ++i)
        receive.push_back({raw<float>(received) + std::ssize(receive) * count, count, p});
    }
    gpus_->send_and_receive(send, receive);
    return rows_in(received);
  }
  const Tensor send = by_process(parts, begins);
  std::vector<int64_t> send_sizes, receive_sizes;
  for (size_t p = 0; p < static_cast<size_t>(size_); ++p) {
    send_sizes.push_back(bytes_of_floats((begins[p + 1] - begins[p]) * std::ssize(parts)));
    receive_sizes.push_back(bytes_of_floats(count * parts_of[p]));
  }
  exchange(std::as_bytes(floats_of(send)), send_sizes, std::as_writable_bytes(floats_of(received)), receive_sizes);
  return rows_in(received);
}

std::string Group::broadcast(std::string text, int root) {
  if (size_ == 1) return text;
  auto length = static_cast<int64_t>(text.size());
  broadcast(std::as_writable_bytes(std::span(&length, 1)), root);
  text.resize(static_cast<size_t>(length));
  broadcast(std::as_writable_bytes(std::span(text)), root);
  return text;
}

std::vector<std::string> Group::all_gather(const std::string& own) {
  if (size_ == 1) return {own};
  const auto length = static_cast<int64_t>(own.size());
  std::vector<int64_t> lengths(static_cast<size_t>(size_));
  const std::vector<int64_t> each(lengths.size(), sizeof length);
  all_gather(std::as_bytes(std::span(&length, 1)), std::as_writable_bytes(std::span(lengths)), each);
  std::string all(static_cast<size_t>(std::accumulate(lengths.begin(), lengths.end(), int64_t{0})), '\0');
  all_gather(std::as_bytes(std::span(own)), std::as_writable_bytes(std::span(all)), lengths);
  std::vector<std::string> out;
  size_t begin = 0;
  for (const int64_t size : lengths) {
    out.push_back(all.substr(begin, static_cast<size_t>(size)));
    begin += static_cast<size_t>(size);
  }
  return out;
}

void check_same(Group& group, const std::string& what, const std::string& value) {
  const std::vector<std::string> values = group.all_gather(value);
  for (int p = 1; p < group.size(); ++p)
    check<UsageError>(values[static_cast<size_t>(p)] == values[0], group.name_of(p), " has ", what, " ", values[static_cast<size_t>(p)],
                      ", ", group.name_of(0), " has ", values[0], "; expected the same in all processes");
}

}  // namespace heed
