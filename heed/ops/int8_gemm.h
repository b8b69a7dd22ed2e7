// Products of bytes through oneDNN, which has the dot products of each machine (VNNI, or AVX2's). One thread; the caller cuts.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <oneapi/dnnl/dnnl.hpp>
#include <vector>

namespace heed {

// The largest byte that weights may hold: machines without VNNI add pairs of products in 16 bits.
float max_int8_weight();

// Some rows of a weight, (columns, K) as linear layers store it, in the layout that oneDNN asks for.
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
