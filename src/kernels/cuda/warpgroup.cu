#include "kernels/cuda/warpgroup_params.h"

namespace cosformer::kernels::cuda {

#ifdef COSFORMER_WARPGROUP_KERNELS

cudaError_t launch_narrow_warpgroup(WarpgroupPass pass, Mode mode, const WarpgroupParams& params, cudaStream_t stream);
cudaError_t launch_wide_warpgroups(WarpgroupPass pass, Mode mode, const WarpgroupParams& params, cudaStream_t stream);

bool warpgroup_available() {
  int device = 0, major = 0, minor = 0;
  return cudaGetDevice(&device) == cudaSuccess &&
         cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device) == cudaSuccess &&
         cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device) == cudaSuccess && major == 9 &&
         minor == 0;
}

cudaError_t launch_warpgroup(WarpgroupPass pass, Mode mode, bool narrow, const WarpgroupParams& params,
                             cudaStream_t stream) {
  return narrow ? launch_narrow_warpgroup(pass, mode, params, stream)
                : launch_wide_warpgroups(pass, mode, params, stream);
}

#else

bool warpgroup_available() {
  return false;
}
cudaError_t launch_warpgroup(WarpgroupPass, Mode, bool, const WarpgroupParams&, cudaStream_t) {
  return cudaErrorInvalidValue;
}

#endif

}  // namespace cosformer::kernels::cuda
