// Tensor: a handle. Handles and views share data; the autograd state belongs to the handle.
#pragma once

#include <functional>
#include <initializer_list>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "heed/core/api.h"
#include "heed/core/device.h"
#include "heed/core/dtype.h"
#include "heed/core/memory.h"
#include "heed/core/shape.h"

namespace HEED_API heed {

struct Slot;  // the gradient, and the node that computed the tensor: autograd.h

// An array of up to eight axes on one device. Copies of a Tensor share the data; ops (ops/ops.h) make new ones.
class Tensor {
 public:
  Tensor() = default;  // undefined: defined() is false

  // --- construction ------------------------------------------------------------------------------------------------
  // Uninitialised (empty), filled with one value (full), 0 or 1.
  static Tensor empty(const Shape& shape, DType dtype, Device device);
  static Tensor full(const Shape& shape, double value, DType dtype, Device device);
  static Tensor zeros(const Shape& shape, DType dtype, Device device) { return full(shape, 0, dtype, device); }
  static Tensor ones(const Shape& shape, DType dtype, Device device) { return full(shape, 1, dtype, device); }
  // f32
  static Tensor empty(const Shape& shape, Device device) { return empty(shape, DType::f32, device); }
  static Tensor full(const Shape& shape, double value, Device device) { return full(shape, value, DType::f32, device); }
  static Tensor zeros(const Shape& shape, Device device) { return full(shape, 0, DType::f32, device); }
  static Tensor ones(const Shape& shape, Device device) { return full(shape, 1, DType::f32, device); }

  // Copies values, row-major, from the host.
  template <class T>
  static Tensor from(std::span<const T> values, const Shape& shape, Device device) {
    return from_bytes(std::as_bytes(values), shape, DTypeOf<T>::value, device);
  }
  template <class T>
  static Tensor from(const std::vector<T>& values, const Shape& shape, Device device) {
    return from(std::span<const T>(values), shape, device);
  }
  static Tensor from_bytes(std::span<const std::byte> values, const Shape& shape, DType dtype, Device device);

  // A view of row-major memory that `owner` keeps alive, such as a memory-mapped file or a buffer of the caller.
  static Tensor borrow(std::shared_ptr<const void> owner, std::byte* data, const Shape& shape, DType dtype) {
    return view_of(std::move(owner), data, shape, dtype, true);
  }
  // Row-major memory that only this tensor and its views use; `owner` frees it.
  static Tensor adopt(std::shared_ptr<const void> owner, std::byte* data, const Shape& shape, DType dtype) {
    return view_of(std::move(owner), data, shape, dtype, false);
  }

  // --- properties --------------------------------------------------------------------------------------------------
  // False for a default-constructed Tensor, which means that an optional argument is missing.
  bool defined() const { return data_ != nullptr; }
  // Sizes and strides by axis; strides are counted in elements.
  const Shape& shape() const { return shape_; }
  const Shape& strides() const { return strides_; }
  // The number of axes, the size of one (-1: the last), and the number of elements.
  int rank() const { return shape_.rank(); }
  int64_t size(int axis) const { return shape_[axis < 0 ? axis + shape_.rank() : axis]; }
  int64_t count() const { return count_; }
  // The type of the elements, and where they are stored.
  DType dtype() const { return dtype_; }
  Device device() const { return data_ ? data_->device() : kCpu; }
  // Whether the elements are stored row-major without gaps; whether two tensors share their data; whether nothing else uses the data, which
  // is never so for borrowed memory.
  bool is_contiguous() const;
  bool shares_data_with(const Tensor& other) const { return data_ == other.data_; }
  bool owns_data_alone() const { return data_.use_count() == 1 && !data_->is_borrowed(); }

  Tensor to(Device device) const;  // a row-major copy on the device, detached; the tensor itself (detached) if it is there already

  // Another view of the same data, detached. The ops reshape, permute, slice and expand use it.
  Tensor view(const Shape& shape, const Shape& strides, int64_t offset_change = 0) const;

  // --- explicit copies to the host ---------------------------------------------------------------------------------
  template <class T>
  std::vector<T> to_vector() const {  // row-major; converts the elements
    std::vector<T> values(static_cast<size_t>(count()));
    copy_to_host(std::as_writable_bytes(std::span(values)), DTypeOf<T>::value);
    return values;
  }
  // The value of a tensor with one element.
  template <class T = float>
  T item() const {
    check(count() == 1, "item: the tensor has shape ", shape_, ", expected one element");
    T value{};
    copy_to_host(std::as_writable_bytes(std::span(&value, 1)), DTypeOf<T>::value);
    return value;
  }
  // The elements, row-major, as `as`. out: count() of them
  void copy_to_host(std::span<std::byte> out, DType as) const;

  // --- gradients ---------------------------------------------------------------------------------------------------
  Tensor& require_grad();                                           // makes this a leaf whose gradient is computed
  bool needs_grad() const { return slot_ != nullptr; }              // whether ops on it are recorded
  Tensor grad() const;                                              // undefined before the first backward
  void zero_grad() const;                                           // removes the gradient
  Tensor detach() const;                                            // the same data without autograd state
  void on_gradient(std::function<void(const Tensor&)> look) const;  // called with the complete gradient during backward

 private:
  friend struct Raw;
  friend struct History;

  static Tensor view_of(std::shared_ptr<const void> owner, std::byte* data, const Shape& shape, DType dtype, bool borrowed);

  std::shared_ptr<Storage> data_;
  std::shared_ptr<Slot> slot_;  // null: no autograd state
  Shape shape_, strides_;
  int64_t offset_ = 0;  // in elements
  int64_t count_ = 0;
  DType dtype_ = DType::f32;
};

using Tensors = std::vector<Tensor>;  // several tensors

// The common device of an op's tensors, an error if they differ; undefined tensors are ignored.
Device common_device(const char* op, std::initializer_list<const Tensor*> tensors);

}  // namespace heed
