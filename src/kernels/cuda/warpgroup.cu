#include "kernels/cuda/warpgroup_params.h"

#ifdef COSFORMER_WARPGROUP_KERNELS
#include "kernels/cuda/warpgroup_kernel.cuh"
#endif

namespace cosformer::kernels::cuda {

#ifdef COSFORMER_WARPGROUP_KERNELS

bool warpgroup_available() {
  int device = 0, major = 0, minor = 0;
  return cudaGetDevice(&device) == cudaSuccess &&
         cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device) == cudaSuccess &&
         cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device) == cudaSuccess && major == 9 &&
         minor == 0;
}

cudaError_t launch_warpgroup(WarpgroupPass pass, Mode mode, const WarpgroupParams& params, cudaStream_t stream) {
  const auto launch = [&]<WarpgroupPass kPass>() {
    switch (mode) {
      case Mode::kRun:
        if constexpr (kPass != WarpgroupPass::kForward) {
          if (params.sweep.decay_gradient != nullptr) {
            return launch_warpgroup_kernel<kPass, Mode::kRun, true>(params, stream);
          }
        }
        return launch_warpgroup_kernel<kPass, Mode::kRun, false>(params, stream);
      case Mode::kApply: return launch_warpgroup_kernel<kPass, Mode::kApply, false>(params, stream);
      case Mode::kSum:
        if constexpr (kPass != WarpgroupPass::kQueries) {
          return launch_warpgroup_kernel<kPass, Mode::kSum, false>(params, stream);
        }
        break;
    }
    return cudaErrorInvalidValue;
  };
  switch (pass) {
    case WarpgroupPass::kForward: return launch.template operator()<WarpgroupPass::kForward>();
    case WarpgroupPass::kQueries: return launch.template operator()<WarpgroupPass::kQueries>();
    case WarpgroupPass::kKeys: return launch.template operator()<WarpgroupPass::kKeys>();
  }
  return cudaErrorInvalidValue;
}

#else

bool warpgroup_available() {
  return false;
}
cudaError_t launch_warpgroup(WarpgroupPass, Mode, const WarpgroupParams&, cudaStream_t) {
  return cudaErrorInvalidValue;
}

#endif

}  // namespace cosformer::kernels::cuda
