// int8 matrix products by oneDNN, which uses the dot product instructions of the CPU (VNNI or AVX2). One thread; the caller splits the
// work.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <oneapi/dnnl/dnnl.hpp>
#include <vector>

namespace heed {

// The largest value of int8 weights: CPUs without VNNI add pairs of products in 16 bits, which must not overflow.
float max_int8_weight();

// Some rows of a weight, (columns, K) as linear layers store it, in the layout of oneDNN.
class Int8Matrix {
 public:
  Int8Matrix(const int8_t* rows, int64_t columns, int64_t K);

  // y = x w^T. x: (rows, K), y: (rows, columns), both dense: oneDNN is slow on others. Many threads may call it at the same time.
  void multiply(const int8_t* x, int64_t rows, float* y) const;

  int64_t bytes() const { return static_cast<int64_t>(layout_.get_size()); }

 private:
  struct Made {
    dnnl::matmul primitive;
    dnnl::memory::desc x, y, scratch;
  };
  const Made& made_for(int64_t rows) const;

  int64_t columns_, K_;
  dnnl::memory::desc layout_ = {};
  std::vector<int8_t> packed_ = {};
  mutable std::mutex mutex_ = {};
  mutable std::map<int64_t, Made> made_ = {};  // by rows
};

}  // namespace heed
