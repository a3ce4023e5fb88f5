// The operator on NVIDIA GPUs: tensors become a problem of device pointers on torch's current stream.
//
// Nothing here waits for the device or reads its memory, so a call can be captured in a CUDA graph.
#include <algorithm>

#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAGuard.h>
#include <torch/library.h>

#include "kernels/cuda/attention.h"
#include "ops/attention_problem.h"
#include "ops/boxing.h"
#include "ops/cuda/status.h"
#include "ops/device_ops.h"

namespace cosformer::ops {
namespace {

namespace cuda = kernels::cuda;

// Its sequences are a dense batch, or lie between boundaries on the device.
class CudaProblem : public FilledProblem<cuda::Problem> {
 public:
  explicit CudaProblem(const AttentionArguments& a) : FilledProblem(a) {
    problem.q_length = a.q.size(1);
    problem.k_length = a.k.size(1);
    problem.sequences = a.q.size(0);
    if (a.packed()) set_boundaries(a);
    set(problem.theta_per_head, a.options.theta);
    if (!a.options.theta.defined()) set_horizon(a);
    if (!a.has_state()) return;
    point(problem.position, kept(a.position.to(a.q.device(), /*non_blocking=*/true).contiguous()));
  }

 private:
  void set_boundaries(const AttentionArguments& a) {
    const at::Tensor &q = a.options.cu_seqlens_q, &k = a.options.cu_seqlens_k;
    const at::Tensor cu_q = kept(q.to(at::kInt).contiguous());
    // Kernels see by the address that queries and keys are the same tokens.
    const bool same = k.data_ptr() == q.data_ptr() && k.scalar_type() == q.scalar_type() && k.sizes() == q.sizes() &&
                      k.strides() == q.strides();
    problem.sequences = cu_q.size(0) - 1;
    point(problem.cu_seqlens_q, cu_q);
    point(problem.cu_seqlens_k, same ? cu_q : kept(k.to(at::kInt).contiguous()));
    problem.total_q = a.q.size(1);
    problem.total_k = a.k.size(1);
  }

  void set_horizon(const AttentionArguments& a) {
    const double horizon = horizon_of(a.options);
    if (horizon != kOwnHorizon) {
      set_angle(problem, horizon);
    } else if (a.packed()) {
      problem.theta_from_length = true;
    } else {
      set_angle(problem, static_cast<double>(std::max(a.q.size(1), a.k.size(1))));
    }
  }
};

at::Tensor workspace_of(std::size_t bytes, const at::Tensor& like) {
  return at::empty({static_cast<std::int64_t>(bytes)}, like.options().dtype(at::kByte));
}

ForwardResult cuda_fwd(const AttentionArguments& a, bool for_backward) {
  const c10::cuda::CUDAGuard guard(a.q.device());
  const auto stream = at::cuda::getCurrentCUDAStream();
  const auto accumulation = a.q.options().dtype(at::kFloat);
  ForwardResult result;
  result.out = at::empty({a.q.size(0), a.q.size(1), a.q.size(2), a.v.size(3)}, a.v.options());
  result.denominator = empty_denominators(a);
  result.state_kv = a.has_state() ? at::empty(a.state_kv.sizes(), accumulation) : at::empty({0}, accumulation);
  result.state_z = a.has_state() ? at::empty(a.state_z.sizes(), accumulation) : at::empty({0}, accumulation);
  CudaProblem gpu(a);
  gpu.set_results(result.out, result.denominator);
  if (a.has_state()) {
    point(gpu.problem.state_kv_out, result.state_kv);
    point(gpu.problem.state_z_out, result.state_z);
  } else if (for_backward) {
    gpu.problem.keep_key_sums = cuda::KeepSums::kWhereWorthIt;
  }
  const cuda::Choice choice = cuda::choose(gpu.problem, nullptr, cuda::this_device());
  if (choice.key_sum_floats > 0) {
    result.state_kv = at::empty({choice.key_sum_floats}, accumulation);
    point(gpu.problem.key_sums, result.state_kv);
  }
  const at::Tensor workspace = workspace_of(choice.workspace.bytes, a.q);
  check(cuda::attention_fwd(gpu.problem, choice, workspace.data_ptr(), static_cast<std::size_t>(workspace.numel()),
                            stream),
        "the forward pass");
  return result;
}

BackwardResult cuda_bwd(const BackwardInputs& in, const AttentionArguments& a) {
  const c10::cuda::CUDAGuard guard(a.q.device());
  const auto stream = at::cuda::getCurrentCUDAStream();
  CudaProblem gpu(a);
  gpu.set_results(in.out, in.denominator);
  if (in.sum_kv.defined() && in.sum_kv.numel() > 0) {
    point(gpu.problem.key_sums, in.sum_kv);
    gpu.problem.keep_key_sums = cuda::KeepSums::kAlways;
  }
  const auto empty = [](at::IntArrayRef sizes, const at::TensorOptions& options) { return at::empty(sizes, options); };
  FilledGradients<cuda::Gradients> filled(in, a, empty);
  const cuda::Choice choice = cuda::choose(gpu.problem, &filled.gradients, cuda::this_device());
  const at::Tensor workspace = workspace_of(choice.workspace.bytes, a.q);
  check(cuda::attention_bwd(gpu.problem, filled.gradients, choice, workspace.data_ptr(),
                            static_cast<std::size_t>(workspace.numel()), stream),
        "the backward pass");
  return filled.result();
}

}  // namespace

TORCH_LIBRARY_IMPL(cosformer, CUDA, m) {
  m.impl("_attention_fwd", boxed<cuda_fwd>());
  m.impl("_attention_bwd", boxed<cuda_bwd>());
}

}  // namespace cosformer::ops
