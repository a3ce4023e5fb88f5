#include "kernels/cuda/warpgroup_params.h"

namespace cosformer::kernels::cuda {

#ifdef COSFORMER_WARPGROUP_KERNELS

// Each compiled by itself.
using Launch = cudaError_t(WarpgroupPass pass, Mode mode, const WarpgroupParams& params, cudaStream_t stream);
Launch launch_narrow_warpgroup, launch_narrow_warpgroup_masked, launch_wide_warpgroups, launch_wide_warpgroups_masked;
using LaunchPair = cudaError_t(WarpgroupPass first_pass, const WarpgroupParams& first, const WarpgroupParams& second,
                               cudaStream_t stream);
LaunchPair launch_narrow_pair, launch_narrow_pair_masked;
cudaError_t launch_narrow_after_states(bool of_queries, const WarpgroupParams& params, cudaStream_t stream);
cudaError_t launch_narrow_after_states_masked(const WarpgroupParams& params, cudaStream_t stream);
using LaunchSides = cudaError_t(WarpgroupPass pass, const WarpgroupParams& params, cudaStream_t stream);
LaunchSides launch_narrow_both_sides, launch_narrow_both_sides_masked;
using LaunchPrefix = std::optional<cudaError_t>(WarpgroupPass pass, const WarpgroupParams& params, cudaStream_t stream);
LaunchPrefix launch_wide_prefix, launch_wide_prefix_masked;
// Forward passes whose rows can come in boxes: describes these, or says that they cannot. A box has `rows` rows: those
// of a warp, or of a chunk.
constexpr unsigned kWarpRows = 16, kChunkRows = 64;
bool describe_boxes(Mode mode, WarpgroupParams& params, unsigned rows);
// The running forward pass of wide heads, causal ones.
cudaError_t launch_whole_heads(const WarpgroupParams& params, bool boxes, cudaStream_t stream);
std::optional<cudaError_t> launch_whole_jointly(const WarpgroupParams& params, cudaStream_t stream);
cudaError_t launch_narrow_boxes(Mode mode, const WarpgroupParams& params, cudaStream_t stream);
cudaError_t launch_narrow_pair_boxes(const WarpgroupParams& first, const WarpgroupParams& second, cudaStream_t stream);
std::optional<cudaError_t> launch_narrow_jointly_boxes(const WarpgroupParams& params, cudaStream_t stream);

bool warpgroup_available() {
  int device = 0, major = 0, minor = 0;
  return cudaGetDevice(&device) == cudaSuccess &&
         cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device) == cudaSuccess &&
         cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device) == cudaSuccess && major == 9 &&
         minor == 0;
}

cudaError_t launch_warpgroup(WarpgroupPass pass, Mode mode, bool narrow, const WarpgroupParams& params,
                             cudaStream_t stream) {
  if (narrow && pass == WarpgroupPass::kForward && mode != Mode::kSum) {
    WarpgroupParams described = params;
    if (describe_boxes(mode, described, kWarpRows)) return launch_narrow_boxes(mode, described, stream);
  }
  if (!narrow && pass == WarpgroupPass::kForward && mode == Mode::kRun && params.sweep.pass == SweepPass::kOnly) {
    WarpgroupParams described = params;
    const bool boxes = describe_boxes(mode, described, kChunkRows);
    return launch_whole_heads(described, boxes, stream);
  }
  const bool masked = params.sweep.key_mask != nullptr;
  Launch* const launch = narrow ? (masked ? launch_narrow_warpgroup_masked : launch_narrow_warpgroup)
                                : (masked ? launch_wide_warpgroups_masked : launch_wide_warpgroups);
  return launch(pass, mode, params, stream);
}

cudaError_t launch_warpgroup_pair(WarpgroupPass first_pass, const WarpgroupParams& first, const WarpgroupParams& second,
                                  cudaStream_t stream) {
  if (first_pass == WarpgroupPass::kForward) {
    WarpgroupParams described = second;
    if (describe_boxes(Mode::kApply, described, kWarpRows)) return launch_narrow_pair_boxes(first, described, stream);
  }
  const bool masked = first.sweep.key_mask != nullptr;
  return (masked ? launch_narrow_pair_masked : launch_narrow_pair)(first_pass, first, second, stream);
}

std::optional<cudaError_t> launch_forward_jointly(bool narrow, const WarpgroupParams& params, cudaStream_t stream) {
  WarpgroupParams described = params;
  if (!describe_boxes(Mode::kRun, described, narrow ? kWarpRows : kChunkRows)) return std::nullopt;
  return narrow ? launch_narrow_jointly_boxes(described, stream) : launch_whole_jointly(described, stream);
}

std::optional<cudaError_t> launch_warpgroup_prefix(WarpgroupPass pass, const WarpgroupParams& params,
                                                   cudaStream_t stream) {
  WarpgroupParams scanned = params;
  scanned.scan_sums = true;
  const bool masked = params.sweep.key_mask != nullptr;
  return (masked ? launch_wide_prefix_masked : launch_wide_prefix)(pass, scanned, stream);
}

cudaError_t launch_warpgroup_after_states(bool of_queries, const WarpgroupParams& params, cudaStream_t stream) {
  if (params.sweep.key_mask != nullptr && !of_queries) return launch_narrow_after_states_masked(params, stream);
  return launch_narrow_after_states(of_queries, params, stream);
}

cudaError_t launch_warpgroup_both_sides(WarpgroupPass pass, const WarpgroupParams& params, cudaStream_t stream) {
  const bool masked = params.sweep.key_mask != nullptr;
  return (masked ? launch_narrow_both_sides_masked : launch_narrow_both_sides)(pass, params, stream);
}

#else

bool warpgroup_available() {
  return false;
}
cudaError_t launch_warpgroup(WarpgroupPass, Mode, bool, const WarpgroupParams&, cudaStream_t) {
  return cudaErrorInvalidValue;
}
cudaError_t launch_warpgroup_pair(WarpgroupPass, const WarpgroupParams&, const WarpgroupParams&, cudaStream_t) {
  return cudaErrorInvalidValue;
}
std::optional<cudaError_t> launch_forward_jointly(bool, const WarpgroupParams&, cudaStream_t) {
  return std::nullopt;
}
std::optional<cudaError_t> launch_warpgroup_prefix(WarpgroupPass, const WarpgroupParams&, cudaStream_t) {
  return std::nullopt;
}
cudaError_t launch_warpgroup_after_states(bool, const WarpgroupParams&, cudaStream_t) {
  return cudaErrorInvalidValue;
}
cudaError_t launch_warpgroup_both_sides(WarpgroupPass, const WarpgroupParams&, cudaStream_t) {
  return cudaErrorInvalidValue;
}

#endif

}  // namespace cosformer::kernels::cuda
