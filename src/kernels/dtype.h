// The number formats that kernels read and write, and their exact conversions to and from float.
//
// Storage types only: no arithmetic happens in a 16-bit format outside an instruction set's own dot product.
#pragma once

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace cosformer::kernels {

enum class DType : std::uint8_t { kFloat64, kFloat32, kBFloat16, kFloat16 };

struct BFloat16 {
  std::uint16_t bits;
};

struct Float16 {
  std::uint16_t bits;
};

constexpr std::size_t size_of(DType dtype) {
  switch (dtype) {
    case DType::kFloat64: return 8;
    case DType::kFloat32: return 4;
    case DType::kBFloat16:
    case DType::kFloat16: return 2;
  }
  return 0;
}

constexpr const char* name_of(DType dtype) {
  switch (dtype) {
    case DType::kFloat64: return "float64";
    case DType::kFloat32: return "float32";
    case DType::kBFloat16: return "bfloat16";
    case DType::kFloat16: return "float16";
  }
  return "?";
}

// Half the distance between 1 and the next number: the relative error of one correct rounding.
constexpr double unit_roundoff(DType dtype) {
  switch (dtype) {
    case DType::kFloat64: return 0x1p-53;
    case DType::kFloat32: return 0x1p-24;
    case DType::kBFloat16: return 0x1p-8;
    case DType::kFloat16: return 0x1p-11;
  }
  return 0;
}

inline float to_float(BFloat16 x) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(x.bits) << 16);
}

inline BFloat16 to_bfloat16(float x) {
  std::uint32_t bits = std::bit_cast<std::uint32_t>(x);
  if ((bits & 0x7fffffffU) > 0x7f800000U) return {static_cast<std::uint16_t>((bits >> 16) | 0x40U)};  // NaN stays NaN
  bits += 0x7fffU + ((bits >> 16) & 1U);  // round to nearest, ties to even
  return {static_cast<std::uint16_t>(bits >> 16)};
}

inline float to_float(Float16 x) {
  const std::uint32_t sign = static_cast<std::uint32_t>(x.bits & 0x8000U) << 16;
  const std::uint32_t exponent = (x.bits >> 10) & 0x1fU;
  const std::uint32_t fraction = x.bits & 0x3ffU;
  if (exponent == 0) {  // zero and subnormals: fraction · 2⁻²⁴, exact in float
    const float magnitude = static_cast<float>(fraction) * 0x1p-24F;
    return std::bit_cast<float>(std::bit_cast<std::uint32_t>(magnitude) | sign);
  }
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7f800000U | (fraction << 13));
  return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (fraction << 13));
}

inline Float16 to_float16(float x) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(x);
  const auto sign = static_cast<std::uint16_t>((bits >> 16) & 0x8000U);
  const std::uint32_t magnitude = bits & 0x7fffffffU;
  if (magnitude > 0x7f800000U) return {static_cast<std::uint16_t>(sign | 0x7e00U)};
  if (magnitude >= 0x477ff000U) return {static_cast<std::uint16_t>(sign | 0x7c00U)};  // rounds past 65504
  if (magnitude < 0x38800000U) {  // below 2⁻¹⁴: a whole number of 2⁻²⁴, rounded to even by the addition
    const float shifted = std::bit_cast<float>(magnitude) + 0.5F;
    return {static_cast<std::uint16_t>(sign | (std::bit_cast<std::uint32_t>(shifted) - 0x3f000000U))};
  }
  const std::uint32_t rounded = magnitude - 0x38000000U + 0xfffU + ((magnitude >> 13) & 1U);
  return {static_cast<std::uint16_t>(sign | (rounded >> 13))};
}

}  // namespace cosformer::kernels
