#include "kernels/cuda/launch_table.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

namespace cosformer::kernels::cuda {

// Compiled in the generated instances.
template <class Io, int kFeatures, Role kRole>
cudaError_t launch_sweep(const SweepParams& params, cudaStream_t stream);

namespace {

template <class Io, int kFeatures>
cudaError_t launch_with_role(Role role, const SweepParams& params, cudaStream_t stream) {
  switch (role) {
    case Role::kForward: return launch_sweep<Io, kFeatures, Role::kForward>(params, stream);
    case Role::kQueryGradient: return launch_sweep<Io, kFeatures, Role::kQueryGradient>(params, stream);
    case Role::kKeyGradient: return launch_sweep<Io, kFeatures, Role::kKeyGradient>(params, stream);
    case Role::kValueGradient: return launch_sweep<Io, kFeatures, Role::kValueGradient>(params, stream);
  }
  return cudaErrorInvalidValue;
}

template <class Io>
cudaError_t launch_with_features(Role role, int features, const SweepParams& params, cudaStream_t stream) {
  switch (features) {
    case 32: return launch_with_role<Io, 32>(role, params, stream);
    case 64: return launch_with_role<Io, 64>(role, params, stream);
    case 128: return launch_with_role<Io, 128>(role, params, stream);
    case 256: return launch_with_role<Io, 256>(role, params, stream);
    default: return cudaErrorInvalidValue;
  }
}

}  // namespace

cudaError_t launch_role(Role role, DType dtype, int features, const SweepParams& params, cudaStream_t stream) {
  switch (dtype) {
    case DType::kBFloat16: return launch_with_features<__nv_bfloat16>(role, features, params, stream);
    case DType::kFloat16: return launch_with_features<__half>(role, features, params, stream);
    case DType::kFloat32: return launch_with_features<float>(role, features, params, stream);
    case DType::kFloat64: break;
  }
  return cudaErrorInvalidValue;
}

}  // namespace cosformer::kernels::cuda
