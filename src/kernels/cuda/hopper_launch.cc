#include "kernels/cuda/hopper_launch.h"

namespace cosformer::kernels::cuda {

#ifdef COSFORMER_WARPGROUP_KERNELS

// Each compiled by itself.
using Sweep = cudaError_t(WarpgroupPass pass, Mode mode, const WarpgroupParams& params, cudaStream_t stream);
Sweep launch_narrow_copied, launch_narrow_masked, launch_wide_copied, launch_wide_masked;
cudaError_t launch_narrow_tma(Mode mode, const WarpgroupParams& params, cudaStream_t stream);
using Pair = cudaError_t(WarpgroupPass first_pass, const WarpgroupParams& first, const WarpgroupParams& second,
                         cudaStream_t stream);
Pair launch_narrow_pair_copied, launch_narrow_pair_masked;
cudaError_t launch_narrow_pair_tma(const WarpgroupParams& first, const WarpgroupParams& second, cudaStream_t stream);
using OfPass = cudaError_t(WarpgroupPass pass, const WarpgroupParams& params, cudaStream_t stream);
OfPass launch_wide_scan_copied, launch_wide_scan_masked, launch_both_sides_copied, launch_both_sides_masked;
cudaError_t launch_states_after_copied(bool of_queries, const WarpgroupParams& params, cudaStream_t stream);
cudaError_t launch_states_after_masked(const WarpgroupParams& params, cudaStream_t stream);

bool hopper_kernels_compiled() {
  return true;
}

cudaError_t launch_narrow(WarpgroupPass pass, Mode mode, Fetch fetch, const WarpgroupParams& params,
                          cudaStream_t stream) {
  if (fetch == Fetch::kTma) return launch_narrow_tma(mode, params, stream);
  return (fetch == Fetch::kMaskedCpAsync ? launch_narrow_masked : launch_narrow_copied)(pass, mode, params, stream);
}

cudaError_t launch_wide(WarpgroupPass pass, Mode mode, Fetch fetch, const WarpgroupParams& params,
                        cudaStream_t stream) {
  return (fetch == Fetch::kMaskedCpAsync ? launch_wide_masked : launch_wide_copied)(pass, mode, params, stream);
}

cudaError_t launch_narrow_pair(WarpgroupPass first_pass, Fetch fetch, const WarpgroupParams& first,
                               const WarpgroupParams& second, cudaStream_t stream) {
  if (fetch == Fetch::kTma) return launch_narrow_pair_tma(first, second, stream);
  return (fetch == Fetch::kMaskedCpAsync ? launch_narrow_pair_masked : launch_narrow_pair_copied)(first_pass, first,
                                                                                                  second, stream);
}

cudaError_t launch_wide_cooperative_scan(WarpgroupPass pass, Fetch fetch, const WarpgroupParams& params,
                                         cudaStream_t stream) {
  WarpgroupParams scanned = params;
  scanned.scan_sums = true;
  return (fetch == Fetch::kMaskedCpAsync ? launch_wide_scan_masked : launch_wide_scan_copied)(pass, scanned, stream);
}

cudaError_t launch_states_after(bool of_queries, Fetch fetch, const WarpgroupParams& params, cudaStream_t stream) {
  if (fetch == Fetch::kMaskedCpAsync && !of_queries) return launch_states_after_masked(params, stream);
  return launch_states_after_copied(of_queries, params, stream);
}

cudaError_t launch_both_sides(WarpgroupPass pass, Fetch fetch, const WarpgroupParams& params, cudaStream_t stream) {
  return (fetch == Fetch::kMaskedCpAsync ? launch_both_sides_masked : launch_both_sides_copied)(pass, params, stream);
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
bool describe_tensors(WarpgroupParams&, bool, TileRows) {
  return false;
}
cudaError_t launch_narrow(WarpgroupPass, Mode, Fetch, const WarpgroupParams&, cudaStream_t) {
  return cudaErrorInvalidValue;
}
cudaError_t launch_wide(WarpgroupPass, Mode, Fetch, const WarpgroupParams&, cudaStream_t) {
  return cudaErrorInvalidValue;
}
cudaError_t launch_wide_in_registers(Fetch, const WarpgroupParams&, cudaStream_t) {
  return cudaErrorInvalidValue;
}
cudaError_t launch_narrow_pair(WarpgroupPass, Fetch, const WarpgroupParams&, const WarpgroupParams&, cudaStream_t) {
  return cudaErrorInvalidValue;
}
cudaError_t launch_narrow_cooperatively(const WarpgroupParams&, cudaStream_t) {
  return cudaErrorInvalidValue;
}
cudaError_t launch_wide_cooperatively(const WarpgroupParams&, cudaStream_t) {
  return cudaErrorInvalidValue;
}
cudaError_t launch_wide_cooperative_scan(WarpgroupPass, Fetch, const WarpgroupParams&, cudaStream_t) {
  return cudaErrorInvalidValue;
}
cudaError_t launch_states_after(bool, Fetch, const WarpgroupParams&, cudaStream_t) {
  return cudaErrorInvalidValue;
}
cudaError_t launch_both_sides(WarpgroupPass, Fetch, const WarpgroupParams&, cudaStream_t) {
  return cudaErrorInvalidValue;
}

#endif

}  // namespace cosformer::kernels::cuda
