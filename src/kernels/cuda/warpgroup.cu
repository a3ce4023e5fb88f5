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

namespace {

template <WarpgroupPass kPass, int kHalves>
cudaError_t launch_mode(Mode mode, const WarpgroupParams& params, cudaStream_t stream) {
  constexpr bool kSums = kPass == WarpgroupPass::kForward ||
                         kPass == (kHalves == 1 ? WarpgroupPass::kKeys : WarpgroupPass::kValues);
  const auto launch = [&]<Mode kMode, WarpgroupExtra kExtra>() {
    return launch_warpgroup_kernel<WarpgroupSweep<kPass, kMode, kHalves, kExtra>>(params, stream);
  };
  const SweepParams& p = params.sweep;
  switch (mode) {
    case Mode::kRun:
      if constexpr (kHalves == 1 || kPass == WarpgroupPass::kForward) {
        if (p.pass != SweepPass::kOnly) return launch.template operator()<Mode::kRun, WarpgroupExtra::kTwoSided>();
      }
      if constexpr (kHalves == 1 && kPass != WarpgroupPass::kForward) {
        if (p.decay_gradient != nullptr) {
          return launch.template operator()<Mode::kRun, WarpgroupExtra::kDecayGradient>();
        }
      }
      if (p.pass != SweepPass::kOnly || p.decay_gradient != nullptr) return cudaErrorInvalidValue;
      return launch.template operator()<Mode::kRun, WarpgroupExtra::kNothing>();
    case Mode::kApply: return launch.template operator()<Mode::kApply, WarpgroupExtra::kNothing>();
    case Mode::kSum:
      if constexpr (kSums) return launch.template operator()<Mode::kSum, WarpgroupExtra::kNothing>();
      break;
  }
  return cudaErrorInvalidValue;
}

}  // namespace

cudaError_t launch_warpgroup(WarpgroupPass pass, Mode mode, bool narrow, const WarpgroupParams& params,
                             cudaStream_t stream) {
  switch (pass) {
    case WarpgroupPass::kForward:
      return narrow ? launch_mode<WarpgroupPass::kForward, 1>(mode, params, stream)
                    : launch_mode<WarpgroupPass::kForward, 2>(mode, params, stream);
    case WarpgroupPass::kQueries:
      return narrow ? launch_mode<WarpgroupPass::kQueries, 1>(mode, params, stream)
                    : launch_mode<WarpgroupPass::kQueries, 2>(mode, params, stream);
    case WarpgroupPass::kKeys:
      return narrow ? launch_mode<WarpgroupPass::kKeys, 1>(mode, params, stream)
                    : launch_mode<WarpgroupPass::kKeys, 2>(mode, params, stream);
    case WarpgroupPass::kValues:
      return narrow ? cudaErrorInvalidValue : launch_mode<WarpgroupPass::kValues, 2>(mode, params, stream);
  }
  return cudaErrorInvalidValue;
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
