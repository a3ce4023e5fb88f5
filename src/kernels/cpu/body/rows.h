// Rows of the caller's memory in and out: the conversions between storage formats and the accumulation type.
//
// They repeat dtype.h's exact conversions without branches, so that compilers vectorise them, and with internal
// linkage.
#pragma once

#include "kernels/cpu/body/vector.h"

namespace cosformer::kernels::cpu {
namespace {

COSFORMER_INLINE float float_of_bits(uint32_t bits) {
  float x;
  __builtin_memcpy(&x, &bits, sizeof x);
  return x;
}

COSFORMER_INLINE uint32_t bits_of_float(float x) {
  uint32_t bits;
  __builtin_memcpy(&bits, &x, sizeof bits);
  return bits;
}

COSFORMER_INLINE float widen(BFloat16 x) {
  return float_of_bits(static_cast<uint32_t>(x.bits) << 16);
}

COSFORMER_INLINE float widen(Float16 x) {
  const uint32_t magnitude = static_cast<uint32_t>(x.bits & 0x7fffU) << 13;
  const uint32_t sign = static_cast<uint32_t>(x.bits & 0x8000U) << 16;
  // Scaling by 2¹¹² moves the exponent's bias and makes numbers of the subnormals; infinities and NaN are set apart.
  const uint32_t scaled = bits_of_float(float_of_bits(magnitude) * 0x1p112F);
  return float_of_bits(sign | (magnitude >= 0x0f800000U ? magnitude | 0x7f800000U : scaled));
}

COSFORMER_INLINE BFloat16 narrow_to_bfloat16(float x) {
  const uint32_t bits = bits_of_float(x);
  const uint32_t rounded = bits + 0x7fffU + ((bits >> 16) & 1U);
  const bool is_nan = (bits & 0x7fffffffU) > 0x7f800000U;
  return {static_cast<uint16_t>(is_nan ? (bits >> 16) | 0x40U : rounded >> 16)};
}

COSFORMER_INLINE Float16 narrow_to_float16(float x) {
  const uint32_t bits = bits_of_float(x), magnitude = bits & 0x7fffffffU, sign = (bits >> 16) & 0x8000U;
  const uint32_t tiny = bits_of_float(float_of_bits(magnitude < 0x38800000U ? magnitude : 0U) + 0.5F) - 0x3f000000U;
  const uint32_t normal = (magnitude - 0x38000000U + 0xfffU + ((magnitude >> 13) & 1U)) >> 13;
  uint32_t result = magnitude < 0x38800000U ? tiny : normal;
  result = magnitude >= 0x477ff000U ? 0x7c00U : result;
  result = magnitude > 0x7f800000U ? 0x7e00U : result;
  return {static_cast<uint16_t>(sign | result)};
}

COSFORMER_INLINE Index element_bytes(DType dtype) {
  return dtype == DType::kFloat64 ? 8 : (dtype == DType::kFloat32 ? 4 : 2);
}

COSFORMER_INLINE const void* row_at(const ConstView& view, DType dtype, Index batch, Index time, Index head) {
  const Index element = batch * view.batch_stride + time * view.time_stride + head * view.head_stride;
  return static_cast<const char*>(view.data) + element * element_bytes(dtype);
}

COSFORMER_INLINE void* row_at(const View& view, DType dtype, Index batch, Index time, Index head) {
  const Index element = batch * view.batch_stride + time * view.time_stride + head * view.head_stride;
  return static_cast<char*>(view.data) + element * element_bytes(dtype);
}

// Reads n numbers and zeroes the padding up to `padded`.
void load_row(DType dtype, const void* from, Index n, Index padded, float* to) {
  switch (dtype) {
    case DType::kFloat32: {
      const auto* x = static_cast<const float*>(from);
      for (Index i = 0; i < n; ++i) to[i] = x[i];
      break;
    }
    case DType::kBFloat16: {
      const auto* x = static_cast<const BFloat16*>(from);
      for (Index i = 0; i < n; ++i) to[i] = widen(x[i]);
      break;
    }
    case DType::kFloat16: {
      const auto* x = static_cast<const Float16*>(from);
      for (Index i = 0; i < n; ++i) to[i] = widen(x[i]);
      break;
    }
    case DType::kFloat64: break;  // accumulates in double
  }
  for (Index i = n; i < padded; ++i) to[i] = 0;
}

void load_row(DType, const void* from, Index n, Index padded, double* to) {
  const auto* x = static_cast<const double*>(from);
  for (Index i = 0; i < n; ++i) to[i] = x[i];
  for (Index i = n; i < padded; ++i) to[i] = 0;
}

// Writes scale·from.
void store_row(DType dtype, const float* from, float scale, Index n, void* to) {
  switch (dtype) {
    case DType::kFloat32: {
      auto* x = static_cast<float*>(to);
      for (Index i = 0; i < n; ++i) x[i] = scale * from[i];
      break;
    }
    case DType::kBFloat16: {
      auto* x = static_cast<BFloat16*>(to);
      for (Index i = 0; i < n; ++i) x[i] = narrow_to_bfloat16(scale * from[i]);
      break;
    }
    case DType::kFloat16: {
      auto* x = static_cast<Float16*>(to);
      for (Index i = 0; i < n; ++i) x[i] = narrow_to_float16(scale * from[i]);
      break;
    }
    case DType::kFloat64: break;
  }
}

void store_row(DType, const double* from, double scale, Index n, void* to) {
  auto* x = static_cast<double*>(to);
  for (Index i = 0; i < n; ++i) x[i] = scale * from[i];
}

}  // namespace
}  // namespace cosformer::kernels::cpu
