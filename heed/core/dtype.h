// Element types and their conversions. Arithmetic is f32 for every storage type.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "heed/core/api.h"
#include "heed/core/device.h"

namespace HEED_API heed {

// The element type of a tensor.
enum class DType : uint8_t { f32, bf16, f16, i64, i32, u8, boolean };
inline constexpr DType kEveryDType[] = {DType::f32, DType::bf16, DType::f16,    DType::i64,
                                        DType::i32, DType::u8,   DType::boolean};  // all of them

// bfloat16: the upper half of a float.
struct Bf16 {
  uint16_t bits;
};
// IEEE half precision.
struct F16 {
  uint16_t bits;
};

// The size of an element, in bytes.
inline size_t bytes_of(DType dtype) {
  switch (dtype) {
    case DType::i64: return 8;
    case DType::f32:
    case DType::i32: return 4;
    case DType::bf16:
    case DType::f16: return 2;
    case DType::u8:
    case DType::boolean: return 1;
  }
  return 0;
}

// "f32", "bf16", ... as in settings and messages.
inline const char* name_of(DType dtype) {
  switch (dtype) {
    case DType::f32: return "f32";
    case DType::bf16: return "bf16";
    case DType::f16: return "f16";
    case DType::i64: return "i64";
    case DType::i32: return "i32";
    case DType::u8: return "u8";
    case DType::boolean: return "bool";
  }
  return "?";
}

// Whether elements are f32, bf16 or f16.
inline bool is_floating(DType dtype) { return dtype == DType::f32 || dtype == DType::bf16 || dtype == DType::f16; }

// The dtype of a C++ type: f32 of float, and so on.
template <class T>
struct DTypeOf;
template <>
struct DTypeOf<float> : std::integral_constant<DType, DType::f32> {};
template <>
struct DTypeOf<Bf16> : std::integral_constant<DType, DType::bf16> {};
template <>
struct DTypeOf<F16> : std::integral_constant<DType, DType::f16> {};
template <>
struct DTypeOf<int64_t> : std::integral_constant<DType, DType::i64> {};
template <>
struct DTypeOf<int32_t> : std::integral_constant<DType, DType::i32> {};
template <>
struct DTypeOf<uint8_t> : std::integral_constant<DType, DType::u8> {};
template <>
struct DTypeOf<bool> : std::integral_constant<DType, DType::boolean> {};

// Calls visit(T()) with the C++ type of a dtype.
template <class Visit>
decltype(auto) with_type(DType dtype, Visit&& visit) {
  switch (dtype) {
    case DType::bf16: return visit(Bf16());
    case DType::f16: return visit(F16());
    case DType::i64: return visit(int64_t());
    case DType::i32: return visit(int32_t());
    case DType::u8: return visit(uint8_t());
    case DType::boolean: return visit(bool());
    case DType::f32: break;
  }
  return visit(float());
}

// Calls visit(T()) with the type in which kernels store activations: float or Bf16.
template <class Visit>
decltype(auto) with_storage(DType dtype, Visit&& visit) {
  return dtype == DType::bf16 ? visit(Bf16()) : visit(float());
}

// Exact.
HEED_HOST_DEVICE inline float to_float(Bf16 x) { return std::bit_cast<float>(uint32_t{x.bits} << 16); }

// Round to nearest even; a NaN stays one.
HEED_HOST_DEVICE inline Bf16 to_bf16(float x) {
  const uint32_t bits = std::bit_cast<uint32_t>(x);
  if ((bits & 0x7fffffff) > 0x7f800000) return {static_cast<uint16_t>((bits >> 16) | 0x40)};
  return {static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16)};
}

// Scaling by powers of two lets floating-point instructions handle subnormals.
HEED_HOST_DEVICE inline float to_float(F16 x) {
  const uint32_t sign = uint32_t{x.bits & 0x8000u} << 16, magnitude = x.bits & 0x7fffu;
  if (magnitude >= 0x7c00) return std::bit_cast<float>(sign | 0x7f800000 | (magnitude & 0x3ff) << 13);
  if (magnitude < 0x400) {  // subnormal: magnitude * 2^-24, exact
    const float value = static_cast<float>(magnitude) * 0x1p-24f;
    return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(value));
  }
  return std::bit_cast<float>(sign | ((magnitude << 13) + (112u << 23)));
}

// Round to nearest even; numbers that are too large become infinite, a NaN stays one.
HEED_HOST_DEVICE inline F16 to_f16(float x) {
  const uint32_t bits = std::bit_cast<uint32_t>(x), magnitude = bits & 0x7fffffff;
  const auto sign = static_cast<uint16_t>((bits >> 16) & 0x8000);
  if (magnitude > 0x7f800000) return {static_cast<uint16_t>(sign | 0x7e00)};
  if (magnitude >= 0x477ff000) return {static_cast<uint16_t>(sign | 0x7c00)};  // rounds to 65536 or more: infinity
  if (magnitude < 0x38800000) {  // below 2^-14: the sum with 0.5 leaves the rounded multiple of 2^-24 in the low bits
    const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
    return {static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(shifted) - 0x3f000000))};
  }
  const uint32_t rounded = magnitude + 0xfff + ((magnitude >> 13) & 1);
  return {static_cast<uint16_t>(sign | ((rounded - (112u << 23)) >> 13))};
}

// Converts an element, from any type to any other. To bool: whether it is not 0.
template <class To, class From>
HEED_HOST_DEVICE inline To convert(From x) {
  if constexpr (std::is_same_v<From, To>) {
    return x;
  } else if constexpr (std::is_same_v<From, Bf16> || std::is_same_v<From, F16>) {
    return convert<To>(to_float(x));
  } else if constexpr (std::is_same_v<To, Bf16>) {
    return to_bf16(static_cast<float>(x));
  } else if constexpr (std::is_same_v<To, F16>) {
    return to_f16(static_cast<float>(x));
  } else if constexpr (std::is_same_v<To, bool>) {
    return x != From(0);
  } else {
    return static_cast<To>(x);
  }
}

}  // namespace heed
