#include "kernels/cuda/attention.h"

#include "kernels/cuda/attention_run.h"
#include "kernels/cuda/hopper/launch.h"

namespace cosformer::kernels::cuda {

Device this_device() {
  Device device;
  device.hopper_kernels = hopper_kernels_compiled();
  int number = 0, major = 0, minor = 0;
  if (cudaGetDevice(&number) != cudaSuccess ||
      cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, number) != cudaSuccess ||
      cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, number) != cudaSuccess ||
      cudaDeviceGetAttribute(&device.multiprocessors, cudaDevAttrMultiProcessorCount, number) != cudaSuccess) {
    device.capability = 0;
    return device;
  }
  device.capability = 10 * major + minor;
  if (device.is_hopper()) {
    device.tensor_maps = driver_has_tensor_maps();
    device.narrow_blocks = narrow_cooperative_blocks(false);
    device.narrow_blocks_keeping = narrow_cooperative_blocks(true);
  }
  return device;
}

namespace {

// run(run of a part) for each, until one fails.
template <class Run>
cudaError_t run_parts(const Problem& problem, const Gradients* gradients, const Choice& choice, void* workspace,
                      cudaStream_t stream, bool& refused_by_driver, Run run) {
  cudaError_t status = cudaSuccess;
  for_each_part(problem, gradients, choice.parts, [&](const Problem& p, const Gradients* g, const HeadPart& part) {
    if (status != cudaSuccess) return;
    AttentionRun of_part(p, g, choice, part, workspace, stream);
    run(of_part);
    status = of_part.status();
    refused_by_driver = of_part.refused_by_driver();
  });
  return status;
}

bool can_start(const Problem& problem, const Choice& choice, std::size_t workspace_bytes) {
  return choice.family != Family::kRefused && workspace_bytes >= choice.workspace.bytes &&
         (choice.key_sum_floats == 0 ||
          (problem.key_sums != nullptr && reinterpret_cast<std::uintptr_t>(problem.key_sums) % 16 == 0));
}

}  // namespace

cudaError_t attention_fwd(const Problem& problem, const Choice& choice, void* workspace, std::size_t workspace_bytes,
                          cudaStream_t stream) {
  if (!can_start(problem, choice, workspace_bytes)) return cudaErrorInvalidValue;
  if (problem.sequences == 0) return cudaSuccess;
  if (choice.family == Family::kDecode) return launch_decode(problem, stream);
  bool refused_by_driver = false;
  const auto forward = [](AttentionRun& run) { run.forward(); };
  const cudaError_t status = run_parts(problem, nullptr, choice, workspace, stream, refused_by_driver, forward);
  if (!refused_by_driver) return status;
  // A tensor that the driver does not describe to TMA after all: all over again without TMA, in the same workspace.
  Device device = choice.device;
  device.tensor_maps = false;
  return run_parts(problem, nullptr, choose(problem, nullptr, device), workspace, stream, refused_by_driver, forward);
}

cudaError_t attention_bwd(const Problem& problem, const Gradients& gradients, const Choice& choice, void* workspace,
                          std::size_t workspace_bytes, cudaStream_t stream) {
  if (!can_start(problem, choice, workspace_bytes)) return cudaErrorInvalidValue;
  if (gradients.d_log_decay != nullptr && (problem.log_decay == nullptr || problem.sequences == 0)) {
    const cudaError_t status =
        cudaMemsetAsync(gradients.d_log_decay, 0, static_cast<std::size_t>(problem.heads) * sizeof(double), stream);
    if (status != cudaSuccess) return status;
  }
  if (problem.sequences == 0) return cudaSuccess;
  bool refused_by_driver = false;
  return run_parts(problem, &gradients, choice, workspace, stream, refused_by_driver,
                   [](AttentionRun& run) { run.backward(); });
}

}  // namespace cosformer::kernels::cuda
