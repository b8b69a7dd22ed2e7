// How the shared memory of a kernel over tiles is laid out: by the host, from the sizes of the call.
#pragma once

#include <initializer_list>

#include "heed/attention/tile_product.cuh"
#include "heed/cuda/launch.cuh"

namespace heed::cuda {

// Where an operand is in shared memory.
struct OperandPlan {
  int at = 0, stride = 0;
  bool whole = true, aligned = false;

  template <class T>
  __device__ Operand<T> operand(char* memory, const TokenRows& rows, int width) const {
    return {.shared = reinterpret_cast<T*>(memory + at),
            .stride = stride,
            .width = width,
            .whole = whole,
            .aligned = aligned,
            .token = rows.token};
  }
};

inline int largest_shared_memory() {
  static const int bytes = [] {
    int device = 0, value = 0;
    check_cuda(cudaGetDevice(&device), "device");
    check_cuda(cudaDeviceGetAttribute(&value, cudaDevAttrMaxSharedMemoryPerBlockOptin, device), "shared memory");
    return value;
  }();
  return bytes;
}

// Hands out parts of the shared memory, in bytes from its start.
template <class T>
class TileMemory {
 public:
  int take(size_t bytes) {
    const int at = used_;
    used_ += static_cast<int>((bytes + 15) / 16 * 16);
    return at;
  }
  size_t bytes() const { return static_cast<size_t>(used_); }

  struct Request {
    OperandPlan& plan;
    const TokenRows& rows;
    int64_t width;
    int buffer;  // 0 or 1: operands that are not whole share these, left ones and right ones
  };
  // Operands are whole while they fit, the first ones first.
  void place(std::initializer_list<Request> requests) {
    constexpr int chunk = kTile * row_stride<T>(kChunk) * static_cast<int>(sizeof(T));
    int64_t all = used_;
    for (const Request& x : requests) all += whole_bytes(x.width);
    const int64_t limit = largest_shared_memory(), reserve = all <= limit ? 0 : 2 * chunk;
    bool needs[2] = {};
    for (const Request& x : requests) {
      x.plan.aligned = is_aligned<T>(x.rows);
      x.plan.whole = used_ + whole_bytes(x.width) + reserve <= limit;
      x.plan.stride = row_stride<T>(x.plan.whole ? padded_columns(x.width) : kChunk);
      if (x.plan.whole)
        x.plan.at = take(static_cast<size_t>(whole_bytes(x.width)));
      else
        needs[x.buffer] = true;
    }
    for (int buffer = 0; buffer < 2; ++buffer) {
      if (!needs[buffer]) continue;
      const int at = take(chunk);
      for (const Request& x : requests)
        if (!x.plan.whole && x.buffer == buffer) x.plan.at = at;
    }
  }

 private:
  static int64_t whole_bytes(int64_t width) {
    return int64_t{kTile} * row_stride<T>(padded_columns(width)) * static_cast<int64_t>(sizeof(T));
  }

  int used_ = 0;
};

}  // namespace heed::cuda
