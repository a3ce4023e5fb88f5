#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "kernels/cuda/general/launch_table.h"

namespace cosformer::kernels::cuda {

// Compiled in the generated instances.
template <class Io, int kFeatures, Role kRole, Mode kMode>
cudaError_t launch_sweep(const SweepParams& params, cudaStream_t stream);

namespace {

template <class Io, int kFeatures, Role kRole>
cudaError_t launch_with_mode(Mode mode, const SweepParams& params, cudaStream_t stream) {
  switch (mode) {
    case Mode::kRun: return launch_sweep<Io, kFeatures, kRole, Mode::kRun>(params, stream);
    case Mode::kApply: return launch_sweep<Io, kFeatures, kRole, Mode::kApply>(params, stream);
    case Mode::kSum:
      if constexpr (kRole == Role::kForward || kRole == Role::kValueGradient) {
        return launch_sweep<Io, kFeatures, kRole, Mode::kSum>(params, stream);
      }
      break;
    case Mode::kApplyAndSum: break;  // the warpgroup kernels have it
  }
  return cudaErrorInvalidValue;
}

template <class Io, int kFeatures>
cudaError_t launch_with_role(Role role, Mode mode, const SweepParams& params, cudaStream_t stream) {
  switch (role) {
    case Role::kForward: return launch_with_mode<Io, kFeatures, Role::kForward>(mode, params, stream);
    case Role::kQueryGradient: return launch_with_mode<Io, kFeatures, Role::kQueryGradient>(mode, params, stream);
    case Role::kKeyGradient: return launch_with_mode<Io, kFeatures, Role::kKeyGradient>(mode, params, stream);
    case Role::kValueGradient: return launch_with_mode<Io, kFeatures, Role::kValueGradient>(mode, params, stream);
  }
  return cudaErrorInvalidValue;
}

template <class Io>
cudaError_t launch_with_features(Role role, Mode mode, int features, const SweepParams& params, cudaStream_t stream) {
  switch (features) {
    case 32: return launch_with_role<Io, 32>(role, mode, params, stream);
    case 64: return launch_with_role<Io, 64>(role, mode, params, stream);
    case 128: return launch_with_role<Io, 128>(role, mode, params, stream);
    case 256: return launch_with_role<Io, 256>(role, mode, params, stream);
    default: return cudaErrorInvalidValue;
  }
}

}  // namespace

cudaError_t launch_role(Role role, Mode mode, DType dtype, int features, const SweepParams& params,
                        cudaStream_t stream) {
  switch (dtype) {
    case DType::kBFloat16: return launch_with_features<__nv_bfloat16>(role, mode, features, params, stream);
    case DType::kFloat16: return launch_with_features<__half>(role, mode, features, params, stream);
    case DType::kFloat32: return launch_with_features<float>(role, mode, features, params, stream);
    case DType::kFloat64: break;
  }
  return cudaErrorInvalidValue;
}

}  // namespace cosformer::kernels::cuda
