#include "heed/dist/group.h"

#include <numeric>
#include <set>

#include "heed/core/copy.h"
#include "heed/core/raw.h"

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
  if (values.device() == kCpu) return body(floats_of(values));
  const Tensor copy = values.to(kCpu);
  body(floats_of(copy));
  copy_into(copy, values);
}

int64_t bytes_of_floats(int64_t count) { return count * static_cast<int64_t>(sizeof(float)); }

}  // namespace

int Group::host_count() const { return static_cast<int>(std::set<std::string>(hosts_.begin(), hosts_.end()).size()); }

std::string Group::name_of(int rank) const { return "rank " + std::to_string(rank) + " on " + host(rank); }

void Group::broadcast(const Tensor& values, int root) {
  if (size_ == 1) return;
  on_host(values, [&](std::span<float> host) { broadcast(std::as_writable_bytes(host), root); });
}

void Group::all_reduce(const Tensor& values) {
  if (size_ == 1) return;
  on_host(values, [&](std::span<float> host) { all_reduce(host); });
}

void Group::all_gather(const Tensor& values, std::span<const int64_t> begins) {
  if (size_ == 1) return;
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
  Tensors on_cpu;
  for (const Tensor& part : parts) on_cpu.push_back(part.to(kCpu));
  std::vector<int64_t> send_sizes, receive_sizes;
  const Tensor send = Tensor::empty({begins.back() * std::ssize(parts)}, kCpu);
  auto end = floats_of(send).begin();
  for (size_t p = 0; p < static_cast<size_t>(size_); ++p) {
    for (const Tensor& part : on_cpu) end = std::copy(floats_of(part).begin() + begins[p], floats_of(part).begin() + begins[p + 1], end);
    send_sizes.push_back(bytes_of_floats((begins[p + 1] - begins[p]) * std::ssize(parts)));
    receive_sizes.push_back(bytes_of_floats(count * parts_of[p]));
  }
  const Tensor received = Tensor::empty({arriving, count}, kCpu);
  exchange(std::as_bytes(floats_of(send)), send_sizes, std::as_writable_bytes(floats_of(received)), receive_sizes);
  Tensors out;
  for (int64_t i = 0; i < arriving; ++i) out.push_back(received.view({count}, {1}, i * count));
  return out;
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
