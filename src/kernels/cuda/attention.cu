// The forward and the backward pass: whole, or part of the heads by part.
#include "kernels/cuda/attention.h"
#include "kernels/cuda/head_parts.h"
#include "kernels/cuda/launch_params.h"
#include "kernels/cuda/passes.h"

namespace cosformer::kernels::cuda {

std::int64_t key_sum_floats(const Problem& problem) {
  if (may_come_in_parts(problem)) return 0;
  return problem.sequences * problem.heads * make_plan(problem).handed_sums() * state_floats(problem);
}

namespace {

std::size_t workspace_bytes_of(const Problem& problem, const Gradients* gradients) {
  std::size_t bytes = 0;
  for_each_part(problem, gradients, [&](const Problem& p, const Gradients* g, const HeadPart& part) {
    bytes = std::max(bytes, Passes(p, g, part, nullptr, nullptr).workspace_bytes());
  });
  return bytes;
}

// run(passes) of each part, until one fails.
template <class Run>
cudaError_t run_parts(const Problem& problem, const Gradients* gradients, void* workspace, cudaStream_t stream,
                      Run run) {
  cudaError_t status = cudaSuccess;
  for_each_part(problem, gradients, [&](const Problem& p, const Gradients* g, const HeadPart& part) {
    if (status != cudaSuccess) return;
    Passes passes(p, g, part, workspace, stream);
    run(passes);
    status = passes.status();
  });
  return status;
}

}  // namespace

std::size_t fwd_workspace_bytes(const Problem& problem) {
  return workspace_bytes_of(problem, nullptr);
}

std::size_t bwd_workspace_bytes(const Problem& problem, const Gradients& gradients) {
  return workspace_bytes_of(problem, &gradients);
}

cudaError_t attention_fwd(const Problem& problem, void* workspace, std::size_t workspace_bytes, cudaStream_t stream) {
  if (!valid(problem) || workspace_bytes < fwd_workspace_bytes(problem)) return cudaErrorInvalidValue;
  if (problem.sequences == 0) return cudaSuccess;
  return run_parts(problem, nullptr, workspace, stream, [](Passes& passes) { passes.forward(); });
}

cudaError_t attention_bwd(const Problem& problem, const Gradients& gradients, void* workspace,
                          std::size_t workspace_bytes, cudaStream_t stream) {
  const bool strides = narrow(gradients.dout.time_stride) && narrow(gradients.dq.time_stride) &&
                       narrow(gradients.dk.time_stride) && narrow(gradients.dv.time_stride);
  if (!valid(problem) || !strides || workspace_bytes < bwd_workspace_bytes(problem, gradients)) {
    return cudaErrorInvalidValue;
  }
  if (gradients.d_log_decay != nullptr && (problem.log_decay == nullptr || problem.sequences == 0)) {
    const cudaError_t status =
        cudaMemsetAsync(gradients.d_log_decay, 0, static_cast<std::size_t>(problem.heads) * sizeof(double), stream);
    if (status != cudaSuccess) return status;
  }
  if (problem.sequences == 0) return cudaSuccess;
  return run_parts(problem, &gradients, workspace, stream, [](Passes& passes) { passes.backward(); });
}

}  // namespace cosformer::kernels::cuda
