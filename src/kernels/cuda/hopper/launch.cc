#include "kernels/cuda/hopper/launch.h"

namespace cosformer::kernels::cuda {

#ifdef COSFORMER_HOPPER_KERNELS

// Each compiled by itself.
using Sweep = cudaError_t(HopperRole role, Mode mode, const HopperParams& params, cudaStream_t stream);
Sweep launch_narrow_copied, launch_narrow_masked, launch_wide_copied, launch_wide_masked;
cudaError_t launch_narrow_tma(Mode mode, const HopperParams& params, cudaStream_t stream);
using Pair = cudaError_t(HopperRole first_role, const HopperParams& first, const HopperParams& second,
                         cudaStream_t stream);
Pair launch_narrow_single_copied, launch_narrow_single_masked;
cudaError_t launch_narrow_single_tma(const HopperParams& first, const HopperParams& second, cudaStream_t stream);
using OfRole = cudaError_t(HopperRole role, const HopperParams& params, cudaStream_t stream);
OfRole launch_wide_scan_copied, launch_wide_scan_masked, launch_both_sides_copied, launch_both_sides_masked;
cudaError_t launch_states_after_copied(bool of_queries, const HopperParams& params, cudaStream_t stream);
cudaError_t launch_states_after_masked(const HopperParams& params, cudaStream_t stream);

bool hopper_kernels_compiled() {
  return true;
}

cudaError_t launch_narrow(HopperRole role, Mode mode, Fetch fetch, const HopperParams& params, cudaStream_t stream) {
  if (fetch == Fetch::kTma) return launch_narrow_tma(mode, params, stream);
  return (fetch == Fetch::kMaskedCpAsync ? launch_narrow_masked : launch_narrow_copied)(role, mode, params, stream);
}

cudaError_t launch_wide(HopperRole role, Mode mode, Fetch fetch, const HopperParams& params, cudaStream_t stream) {
  return (fetch == Fetch::kMaskedCpAsync ? launch_wide_masked : launch_wide_copied)(role, mode, params, stream);
}

cudaError_t launch_narrow_single(HopperRole first_role, Fetch fetch, const HopperParams& first,
                                 const HopperParams& second, cudaStream_t stream) {
  if (fetch == Fetch::kTma) return launch_narrow_single_tma(first, second, stream);
  return (fetch == Fetch::kMaskedCpAsync ? launch_narrow_single_masked : launch_narrow_single_copied)(first_role, first,
                                                                                                      second, stream);
}

cudaError_t launch_wide_cooperative_scan(HopperRole role, Fetch fetch, const HopperParams& params,
                                         cudaStream_t stream) {
  HopperParams scanned = params;
  scanned.scan_sums = true;
  return (fetch == Fetch::kMaskedCpAsync ? launch_wide_scan_masked : launch_wide_scan_copied)(role, scanned, stream);
}

cudaError_t launch_states_after(bool of_queries, Fetch fetch, const HopperParams& params, cudaStream_t stream) {
  if (fetch == Fetch::kMaskedCpAsync && !of_queries) return launch_states_after_masked(params, stream);
  return launch_states_after_copied(of_queries, params, stream);
}

cudaError_t launch_both_sides(HopperRole role, Fetch fetch, const HopperParams& params, cudaStream_t stream) {
  return (fetch == Fetch::kMaskedCpAsync ? launch_both_sides_masked : launch_both_sides_copied)(role, params, stream);
}

#else

bool hopper_kernels_compiled() {
  return false;
}
bool driver_has_tensor_maps() {
  return false;
}
int narrow_cooperative_blocks(bool) {
  return 0;
}
bool describe_tensors(HopperParams&, bool, TileRows) {
  return false;
}
cudaError_t launch_narrow(HopperRole, Mode, Fetch, const HopperParams&, cudaStream_t) {
  return cudaErrorInvalidValue;
}
cudaError_t launch_wide(HopperRole, Mode, Fetch, const HopperParams&, cudaStream_t) {
  return cudaErrorInvalidValue;
}
cudaError_t launch_wide_in_registers(Fetch, const HopperParams&, cudaStream_t) {
  return cudaErrorInvalidValue;
}
cudaError_t launch_narrow_single(HopperRole, Fetch, const HopperParams&, const HopperParams&, cudaStream_t) {
  return cudaErrorInvalidValue;
}
cudaError_t launch_narrow_cooperatively(const HopperParams&, cudaStream_t) {
  return cudaErrorInvalidValue;
}
cudaError_t launch_wide_cooperatively(const HopperParams&, cudaStream_t) {
  return cudaErrorInvalidValue;
}
cudaError_t launch_wide_cooperative_scan(HopperRole, Fetch, const HopperParams&, cudaStream_t) {
  return cudaErrorInvalidValue;
}
cudaError_t launch_states_after(bool, Fetch, const HopperParams&, cudaStream_t) {
  return cudaErrorInvalidValue;
}
cudaError_t launch_both_sides(HopperRole, Fetch, const HopperParams&, cudaStream_t) {
  return cudaErrorInvalidValue;
}

#endif

}  // namespace cosformer::kernels::cuda
