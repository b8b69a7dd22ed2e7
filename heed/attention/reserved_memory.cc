#include "heed/attention/reserved_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <new>

#include "heed/core/check.h"

namespace heed {
namespace {

thread_local int64_t reserved_tokens = 0;

// Address space for a tensor. Pages take memory when they are first written.
Tensor lazy_tensor(const Shape& shape) {
  const auto bytes = static_cast<size_t>(std::max<int64_t>(count(shape) * static_cast<int64_t>(sizeof(float)), 1));
  void* const data = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (data == MAP_FAILED) throw std::bad_alloc();
  ::madvise(data, bytes, MADV_NOHUGEPAGE);  // a huge page would take 2 MiB for the first token of a head
  const std::shared_ptr<const void> owner(data, [bytes](void* begin) { ::munmap(begin, bytes); });
  return Tensor::adopt(owner, static_cast<std::byte*>(data), shape, DType::f32);
}

}  // namespace

int64_t page_bytes() {
  static const int64_t bytes = ::sysconf(_SC_PAGESIZE);
  return bytes;
}

KeyValueCache reserved_cache(const Tensor& keys, const Tensor& values, int64_t tokens) {
  check(tokens >= keys.size(2), "cache: room for ", tokens, " tokens is reserved, it starts with ", keys.size(2));
  KeyValueCache out;
  reserved_tokens = keys.device() == kCpu ? tokens : 0;
  try {
    out.append(keys, values);
  } catch (...) {
    reserved_tokens = 0;
    throw;
  }
  reserved_tokens = 0;
  return out;
}

Tensor detail::reserved_storage(const Tensor& x) {
  return reserved_tokens > 0 ? lazy_tensor({x.size(0), x.size(1), reserved_tokens, x.size(3)}) : Tensor();
}

}  // namespace heed
