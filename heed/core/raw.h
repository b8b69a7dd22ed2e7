// Pointers into tensors, for kernels only. All other code copies data to the host, since it may be on a GPU.
#pragma once

#include "heed/core/api.h"
#include "heed/core/tensor.h"

namespace HEED_API heed {

struct Raw {
  template <class T>
  static T* data(const Tensor& x) {
    return reinterpret_cast<T*>(x.data_->data()) + x.offset_;
  }
  static std::byte* bytes(const Tensor& x) { return x.data_->data() + x.offset_ * static_cast<int64_t>(bytes_of(x.dtype_)); }
  static std::byte* bytes_or_null(const Tensor& x) { return x.defined() ? bytes(x) : nullptr; }
};

// The first element of x, which must hold T.
template <class T>
T* raw(const Tensor& x) {
  return Raw::data<T>(x);
}

template <class T>
T* raw_or_null(const Tensor& x) {
  return x.defined() ? raw<T>(x) : nullptr;
}

}  // namespace heed
