// A convolution of oneDNN, on one thread, between row-major tensors. oneDNN chooses its own layouts; they are a third faster than
// row-major ones, including the reordering of images before and after.
#pragma once

#include <array>
#include <oneapi/dnnl/dnnl.hpp>
#include <optional>

#include "heed/ops/conv.h"

namespace heed {

enum class ConvPass { forward, data, weights };  // forward, gradient of x, gradient of w and b

class ConvPrimitive {
 public:
  // Some images and some channels of a whole convolution. `packer`, if given, determines the layout of packed weights,
  // otherwise the primitive itself. Must be constructed inside a task, because oneDNN queries the number of threads. oneDNN caches compiled
  // primitives: the second one of a kind takes 2 us instead of 250.
  ConvPrimitive(ConvPass pass, const ConvSizes& whole, int64_t images, int64_t in, int64_t out, bool bias, const ConvPrimitive* packer);

  // Number of floats of packed weights. The weight gradient unpacks them, the other passes pack them.
  int64_t packed_count() const { return static_cast<int64_t>(packing_.get_size() / sizeof(float)); }
  void pack(float* weights, float* packed) const;
  void unpack(float* packed, float* weights) const;

  // Reads the inputs of the pass and writes its outputs. Weights are packed, the others point into the whole row-major tensors; bias may be
  // null. Several tasks may run one primitive at the same time.
  void run(float* x, float* packed, float* bias, float* y) const;

 private:
  // Copies from one layout to another.
  struct Reorder {
    Reorder(const dnnl::memory::desc& source, const dnnl::memory::desc& target);
    void operator()(void* source, void* target) const;

    dnnl::memory::desc from, to, scratch;
    dnnl::reorder primitive;
  };
  struct Operand {
    Operand() = default;
    Operand(int argument, const dnnl::memory::desc& outside, const dnnl::memory::desc& own, bool is_written);

    int name = 0;                    // oneDNN's
    dnnl::memory::desc inside;       // the layout of the primitive
    bool written = false;            // by the primitive
    std::optional<Reorder> reorder;  // from or to the layout of the tensors, where it differs
  };

  std::array<Operand, 4> operands_;  // x, packed weights, bias, y
  dnnl::memory::desc packing_, scratch_;
  std::optional<Reorder> between_weights_;  // row-major and packed ones, where this is the packer
  dnnl::primitive primitive_;
};

}  // namespace heed
