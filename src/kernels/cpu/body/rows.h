// Rows of the caller's memory in and out: the conversions between storage formats and the accumulation type.
//
// They repeat dtype.h's exact conversions without branches, so that compilers vectorise them, and with internal
// linkage.
#pragma once

#include "kernels/cpu/body/streaming.h"

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

// One vector of storage in the accumulation type, and back.
COSFORMER_INLINE Vector<double> load_as(const double* p) {
  return load(p);
}
COSFORMER_INLINE Vector<float> load_as(const float* p) {
  return load(p);
}

COSFORMER_INLINE Vector<float> load_as(const BFloat16* p) {
  typedef uint16_t Narrow __attribute__((vector_size(COSFORMER_VECTOR_BYTES / 2)));
  typedef uint32_t Wide __attribute__((vector_size(COSFORMER_VECTOR_BYTES)));
  Narrow bits;
  __builtin_memcpy(&bits, p, sizeof bits);
  return reinterpret_cast<Vector<float>>(__builtin_convertvector(bits, Wide) << 16);
}

COSFORMER_INLINE Vector<float> load_as(const Float16* p) {
  float x[kLanes<float>];
  for (Index i = 0; i < kLanes<float>; ++i) x[i] = widen(p[i]);
  return load(x);
}

COSFORMER_INLINE Vector<double> bits_of(Vector<double> x, const double*) {
  return x;
}
COSFORMER_INLINE Vector<float> bits_of(Vector<float> x, const float*) {
  return x;
}

COSFORMER_INLINE auto bits_of(Vector<float> x, const BFloat16*) {
  typedef uint16_t Narrow __attribute__((vector_size(COSFORMER_VECTOR_BYTES / 2)));
  typedef uint32_t Wide __attribute__((vector_size(COSFORMER_VECTOR_BYTES)));
  const Wide bits = reinterpret_cast<Wide>(x);
  const Wide rounded = bits + 0x7fffU + ((bits >> 16) & 1U);
  const Wide result = ((bits & 0x7fffffffU) > 0x7f800000U ? bits | 0x400000U : rounded) >> 16;
  return __builtin_convertvector(result, Narrow);
}

COSFORMER_INLINE auto bits_of(Vector<float> x, const Float16*) {
  typedef uint16_t Narrow __attribute__((vector_size(COSFORMER_VECTOR_BYTES / 2)));
  float wide[kLanes<float>];
  uint16_t bits[kLanes<float>];
  store(wide, x);
  for (Index i = 0; i < kLanes<float>; ++i) bits[i] = narrow_to_float16(wide[i]).bits;
  Narrow narrow;
  __builtin_memcpy(&narrow, bits, sizeof narrow);
  return narrow;
}

COSFORMER_INLINE void widen_to(double x, double* to) {
  *to = x;
}
COSFORMER_INLINE void widen_to(float x, float* to) {
  *to = x;
}
template <class Half>
COSFORMER_INLINE void widen_to(Half x, float* to) {
  *to = widen(x);
}

COSFORMER_INLINE void narrow_to(double x, double* to) {
  *to = x;
}
COSFORMER_INLINE void narrow_to(float x, float* to) {
  *to = x;
}
COSFORMER_INLINE void narrow_to(float x, BFloat16* to) {
  *to = narrow_to_bfloat16(x);
}
COSFORMER_INLINE void narrow_to(float x, Float16* to) {
  *to = narrow_to_float16(x);
}

// Calls body(vector, offset) for each vector of a row of n numbers, the last one filled up with zeros.
template <class T, class Storage, class Body>
COSFORMER_INLINE void each_vector(const Storage* row, Index n, Body body) {
  Index i = 0;
  for (; i + kLanes<T> <= n; i += kLanes<T>) body(load_as(row + i), i);
  if (i == n) return;
  T tail[kLanes<T>] = {};
  for (Index t = i; t < n; ++t) widen_to(row[t], tail + (t - i));
  body(load(tail), i);
}

// The first `count` lanes, the others zero.
template <class T>
COSFORMER_INLINE Vector<T> first_lanes(Vector<T> x, Index count) {
  if (count >= kLanes<T>) return x;
  T lanes[kLanes<T>];
  store(lanes, x);
  for (Index lane = count; lane < kLanes<T>; ++lane) lanes[lane] = 0;
  return load(lanes);
}

template <bool kStream, class T, class Storage>
COSFORMER_INLINE void store_vector(Vector<T> x, Index i, Index n, Storage* row) {
  if (i + kLanes<T> <= n) {
    const auto bits = bits_of(x, row);
    if constexpr (kStream) {
      stream(row + i, bits);
    } else {
      __builtin_memcpy(row + i, &bits, sizeof bits);
    }
    return;
  }
  T tail[kLanes<T>];
  store(tail, x);
  for (Index t = i; t < n; ++t) narrow_to(tail[t - i], row + t);
}

template <class Pointer>
struct Pointee;
template <class Object>
struct Pointee<Object*> {
  using Type = Object;
};

// Calls body(pointer to Storage) with the storage type that goes with T.
template <class Body>
COSFORMER_INLINE void with_storage(DType dtype, const float*, Body body) {
  switch (dtype) {
    case DType::kBFloat16: body(static_cast<BFloat16*>(nullptr)); break;
    case DType::kFloat16: body(static_cast<Float16*>(nullptr)); break;
    default: body(static_cast<float*>(nullptr)); break;
  }
}
template <class Body>
COSFORMER_INLINE void with_storage(DType, const double*, Body body) {
  body(static_cast<double*>(nullptr));
}

// Rows [0, count) of a head, converted and padded with zeros; rows that `present` denies become zero.
template <class T, class Present>
void load_rows(DType dtype, const void* from, Index stride, Index count, Index n, Index padded, Present present,
               T* to) {
  with_storage(dtype, to, [&](auto* type) {
    using Storage = typename Pointee<decltype(type)>::Type;
    for (Index t = 0; t < count; ++t) {
      T* row = to + t * padded;
      if (!present(t)) {
        fill_zero(row, padded);
        continue;
      }
      each_vector<T>(static_cast<const Storage*>(from) + t * stride, n,
                     [&](Vector<T> x, Index i) { store(row + i, x); });
    }
  });
}

// x / divisor almost as a division rounds it, at the cost of two multiplications: the error of the inverse is carried
// along. Multiplying by a rounded inverse alone would show beside the naive form, which divides.
template <class T>
struct Inverse {
  T value, error;
};

COSFORMER_INLINE float fused_multiply_add(float a, float b, float c) {
  return ::fmaf(a, b, c);
}
COSFORMER_INLINE double fused_multiply_add(double a, double b, double c) {
  return ::fma(a, b, c);
}

template <class T>
COSFORMER_INLINE Inverse<T> invert(T divisor) {
  if (divisor == 0) return {0, 0};
  const T value = 1 / divisor;
  const T error = fused_multiply_add(-value, divisor, T(1)) * value;
  return {value, error == error ? error : T(0)};  // infinite divisors have no error
}

template <class T>
COSFORMER_INLINE Vector<T> divide(Vector<T> x, Inverse<T> inverse) {
  return x * inverse.value + x * inverse.error;
}

template <bool kStream, class T, class Storage>
void store_divided(const T* from, Index padded, const T* divisors, Index count, Index n, Storage* to, Index stride) {
  for (Index t = 0; t < count; ++t) {
    const Inverse<T> inverse = divisors == nullptr ? Inverse<T>{1, 0} : invert(divisors[t]);
    for (Index i = 0; i < n; i += kLanes<T>) {
      store_vector<kStream, T>(divide<T>(load(from + t * padded + i), inverse), i, n, to + t * stride);
    }
  }
}

// Writes row t divided by divisors[t]; divisors null: as it is. A divisor of 0 gives 0. Where asked for and possible,
// past the caches.
template <class T>
void store_rows(DType dtype, const T* from, Index padded, const T* divisors, Index count, Index n, void* to,
                Index stride, bool streamed) {
  with_storage(dtype, from, [&](auto* type) {
    using Storage = typename Pointee<decltype(type)>::Type;
    constexpr Index kBytes = sizeof(Storage);
    if (streamed && is_whole_lines(to, stride * kBytes, n * kBytes)) {
      store_divided<true>(from, padded, divisors, count, n, static_cast<Storage*>(to), stride);
    } else {
      store_divided<false>(from, padded, divisors, count, n, static_cast<Storage*>(to), stride);
    }
  });
}

}  // namespace
}  // namespace cosformer::kernels::cpu
