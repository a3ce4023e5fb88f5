// float16 numbers as CUDA names them, for the emulated device.
#pragma once

#include "cuda_runtime.h"
#include "kernels/dtype.h"

struct __half {
  cosformer::kernels::Float16 value;
};
struct alignas(4) __half2 {
  __half x, y;
};

inline float __half2float(__half x) {
  return cosformer::kernels::to_float(x.value);
}
inline __half __float2half_rn(float x) {
  return {cosformer::kernels::to_float16(x)};
}
inline float2 __half22float2(__half2 x) {
  return {__half2float(x.x), __half2float(x.y)};
}
inline __half2 __float22half2_rn(float2 x) {
  return {__float2half_rn(x.x), __float2half_rn(x.y)};
}
inline __half2 __hmul2(__half2 a, __half2 b) {
  return {__float2half_rn(__half2float(a.x) * __half2float(b.x)),
          __float2half_rn(__half2float(a.y) * __half2float(b.y))};
}
inline __half2 __hmax2(__half2 a, __half2 b) {
  return {__float2half_rn(fmaxf(__half2float(a.x), __half2float(b.x))),
          __float2half_rn(fmaxf(__half2float(a.y), __half2float(b.y)))};
}
