#include "heed/core/tensor.h"

#include <cstring>

#include "heed/core/copy.h"
#include "heed/core/copy_kernels.h"
#include "heed/core/raw.h"

namespace heed {

Tensor Tensor::empty(const Shape& shape, DType dtype, Device device) {
  Tensor out;
  out.count_ = heed::count(shape);
  const int64_t bytes = checked_multiply(out.count_, static_cast<int64_t>(bytes_of(dtype)));
  out.data_ = std::make_shared<Storage>(bytes, device);
  out.shape_ = shape;
  out.strides_ = dense_strides(shape);
  out.dtype_ = dtype;
  return out;
}

Tensor Tensor::full(const Shape& shape, double value, DType dtype, Device device) {
  Tensor out = empty(shape, dtype, device);
  launch(fill_elements, device, {.to = Raw::bytes(out), .count = out.count(), .value = value, .dtype = dtype});
  return out;
}

Tensor Tensor::from_bytes(std::span<const std::byte> values, const Shape& shape, DType dtype, Device device) {
  const Tensor out = empty(shape, dtype, kCpu);
  const int64_t bytes = out.count() * static_cast<int64_t>(bytes_of(dtype));
  check(static_cast<int64_t>(values.size()) == bytes, "tensor: ", values.size(), " bytes given for shape ", shape, " of ", name_of(dtype),
        ", expected ", bytes);
  if (bytes > 0) std::memcpy(Raw::bytes(out), values.data(), values.size());
  return out.to(device);
}

Tensor Tensor::view_of(std::shared_ptr<const void> owner, std::byte* data, const Shape& shape, DType dtype, bool borrowed) {
  Tensor out;
  out.count_ = heed::count(shape);
  const auto width = static_cast<int64_t>(bytes_of(dtype));
  check(reinterpret_cast<uintptr_t>(data) % static_cast<uintptr_t>(width) == 0, "tensor: borrowed memory is not aligned for ",
        name_of(dtype));
  out.data_ = std::make_shared<Storage>(std::move(owner), data, checked_multiply(out.count_, width), borrowed);
  out.shape_ = shape;
  out.strides_ = dense_strides(shape);
  out.dtype_ = dtype;
  return out;
}

bool Tensor::is_contiguous() const {
  int64_t expected = 1;
  for (int axis = rank() - 1; axis >= 0; --axis) {
    if (shape_[axis] != 1 && strides_[axis] != expected) return count_ == 0;
    expected *= shape_[axis];
  }
  return true;
}

Tensor Tensor::view(const Shape& shape, const Shape& strides, int64_t offset_change) const {
  Tensor out;
  out.data_ = data_;
  out.shape_ = shape;
  out.strides_ = strides;
  out.offset_ = offset_ + offset_change;
  out.count_ = heed::count(shape);
  out.dtype_ = dtype_;
  return out;
}

void Tensor::copy_to_host(std::span<std::byte> out, DType as) const {
  const int64_t bytes = count() * static_cast<int64_t>(bytes_of(as));
  check(static_cast<int64_t>(out.size()) == bytes, "copy_to_host: memory for ", out.size(), " bytes, the tensor needs ", bytes);
  if (bytes == 0) return;
  const Tensor dense = converted(contiguous(*this), as).to(kCpu);
  std::memcpy(out.data(), Raw::bytes(dense), out.size());
}

Tensor Tensor::to(Device target) const {
  if (device() == target) return detach();
  const Tensor dense = contiguous(*this);
  Tensor out = empty(shape_, dtype_, target);
  transfer(dense, out);
  return out;
}

Device common_device(const char* op, std::initializer_list<const Tensor*> tensors) {
  const Tensor* first = nullptr;
  for (const Tensor* x : tensors) {
    if (!x->defined()) continue;
    if (!first) first = x;
    check(x->device() == first->device(), op, ": tensors on ", name_of(first->device()), " and on ", name_of(x->device()),
          "; move them to one device with to()");
  }
  return first ? first->device() : kCpu;
}

}  // namespace heed
