// bfloat16 numbers as CUDA names them, for the emulated device.
#pragma once

#include "cuda_runtime.h"
#include "kernels/dtype.h"

struct __nv_bfloat16 {
  cosformer::kernels::BFloat16 value;
  __nv_bfloat16() = default;
  __nv_bfloat16(float x) : value(cosformer::kernels::to_bfloat16(x)) {}
};
struct alignas(4) __nv_bfloat162 {
  __nv_bfloat16 x, y;
  __nv_bfloat162() = default;
  __nv_bfloat162(__nv_bfloat16 a, __nv_bfloat16 b) : x(a), y(b) {}
};

inline float __bfloat162float(__nv_bfloat16 x) {
  return cosformer::kernels::to_float(x.value);
}
inline __nv_bfloat16 __float2bfloat16_rn(float x) {
  return {x};
}
inline float2 __bfloat1622float2(__nv_bfloat162 x) {
  return {__bfloat162float(x.x), __bfloat162float(x.y)};
}
inline __nv_bfloat162 __float22bfloat162_rn(float2 x) {
  return {x.x, x.y};
}
inline __nv_bfloat162 __hmul2(__nv_bfloat162 a, __nv_bfloat162 b) {
  return {__bfloat162float(a.x) * __bfloat162float(b.x), __bfloat162float(a.y) * __bfloat162float(b.y)};
}
inline __nv_bfloat162 __hmax2(__nv_bfloat162 a, __nv_bfloat162 b) {
  return {fmaxf(__bfloat162float(a.x), __bfloat162float(b.x)), fmaxf(__bfloat162float(a.y), __bfloat162float(b.y))};
}
inline unsigned __hgt2_mask(__nv_bfloat162 a, __nv_bfloat162 b) {
  return (__bfloat162float(a.x) > __bfloat162float(b.x) ? 0xffffU : 0U) |
         (__bfloat162float(a.y) > __bfloat162float(b.y) ? 0xffff0000U : 0U);
}
