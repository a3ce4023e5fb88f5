// How the number formats are loaded and stored by the bodies that also run on a host (lanes.h).
#pragma once

#include "kernels/cuda/numbers.cuh"
#include "kernels/dtype.h"

namespace cosformer::kernels::cuda {

template <class T>
struct DeviceNumbers {
  using Stored = T;
  static __device__ __forceinline__ float load(T x) { return to_float(x); }
  static __device__ __forceinline__ T store(float x) { return from_float<T>(x); }
};

// Calls `body` with the number format as a type.
template <class Body>
cudaError_t with_numbers(DType dtype, const Body& body) {
  switch (dtype) {
    case DType::kFloat32: return body(DeviceNumbers<float>());
    case DType::kBFloat16: return body(DeviceNumbers<__nv_bfloat16>());
    case DType::kFloat16: return body(DeviceNumbers<__half>());
    case DType::kFloat64: break;
  }
  return cudaErrorInvalidValue;
}

}  // namespace cosformer::kernels::cuda
