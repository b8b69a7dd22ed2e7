#include "heed/io/npy.h"

#include <cstring>

#include "heed/io/elements.h"

namespace heed {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";

// NumPy's dtype names; bf16 has none.
const char* npy_name(DType dtype) {
  switch (dtype) {
    case DType::f32: return "<f4";
    case DType::f16: return "<f2";
    case DType::i64: return "<i8";
    case DType::i32: return "<i4";
    case DType::u8: return "|u1";
    case DType::boolean: return "|b1";
    case DType::bf16: break;
  }
  return nullptr;
}

}  // namespace

void write_npy(const Path& path, const Tensor& tensor) {
  check(tensor.defined(), "write_npy: the tensor is undefined, expected one with data");
  check(tensor.dtype() != DType::bf16, "write_npy: found bf16, which NumPy does not know; cast the tensor to f32 first");
  std::string header(kMagic);
  header += {'\1', '\0', '\0', '\0'};  // version, placeholder for the dict size
  header += std::string("{'descr': '") + npy_name(tensor.dtype()) + "', 'fortran_order': False, 'shape': (";
  for (int axis = 0; axis < tensor.rank(); ++axis) header += (axis ? ", " : "") + std::to_string(tensor.shape()[axis]);
  header += tensor.rank() == 1 ? ",), }" : "), }";
  header.resize((header.size() + 1 + 63) / 64 * 64, ' ');  // data is aligned to 64 bytes
  header.back() = '\n';
  const auto size = static_cast<uint16_t>(header.size() - kMagic.size() - 4);
  std::memcpy(header.data() + kMagic.size() + 2, &size, sizeof size);
  FileWriter out(path);
  out.write(header);
  write_elements(out, tensor);
  out.commit();
}

}  // namespace heed
