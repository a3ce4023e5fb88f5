// The operator on NVIDIA GPUs: tensors become a problem of device pointers on torch's current stream.
//
// Nothing here waits for the device or reads its memory, so a call can be captured in a CUDA graph.
#include <algorithm>
#include <cmath>
#include <numbers>

#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAGuard.h>
#include <torch/library.h>

#include "kernels/cuda/attention.h"
#include "ops/cuda/status.h"
#include "ops/device_ops.h"
#include "ops/tensor_views.h"

namespace cosformer::ops {
namespace {

namespace cuda = kernels::cuda;

// A problem and the converted tensors that it points to.
class CudaProblem {
 public:
  explicit CudaProblem(const AttentionArguments& a) {
    problem.dtype = dtype_of(a.q.scalar_type());
    problem.heads = a.q.size(2);
    problem.dim = a.q.size(3);
    problem.value_dim = a.v.size(3);
    problem.causal = a.causal;
    problem.feature_map = static_cast<kernels::FeatureMap>(a.feature_map);
    problem.normalizer = static_cast<kernels::Normalizer>(a.normalizer);
    problem.eps = a.eps;
    problem.q_length = a.q.size(1);
    problem.k_length = a.k.size(1);
    problem.sequences = a.q.size(0);
    if (a.packed()) {
      cu_q_ = a.cu_seqlens_q.to(at::kInt).contiguous();
      // Kernels see by the address that queries and keys are the same tokens.
      const bool same = a.cu_seqlens_k.data_ptr() == a.cu_seqlens_q.data_ptr() &&
                        a.cu_seqlens_k.scalar_type() == a.cu_seqlens_q.scalar_type() &&
                        a.cu_seqlens_k.sizes() == a.cu_seqlens_q.sizes() &&
                        a.cu_seqlens_k.strides() == a.cu_seqlens_q.strides();
      cu_k_ = same ? cu_q_ : a.cu_seqlens_k.to(at::kInt).contiguous();
      problem.sequences = cu_q_.size(0) - 1;
      problem.cu_seqlens_q = cu_q_.data_ptr<std::int32_t>();
      problem.cu_seqlens_k = cu_k_.data_ptr<std::int32_t>();
      problem.total_q = a.q.size(1);
      problem.total_k = a.k.size(1);
    }
    set_angle(a);
    if (a.log_decay.defined()) {
      log_decay_ = a.log_decay.detach().to(at::kFloat).contiguous();
      problem.log_decay = log_decay_.data_ptr<float>();
    }
    if (a.key_mask.defined()) {
      problem.key_mask = a.key_mask.data_ptr<bool>();
      problem.mask_batch_stride = a.key_mask.stride(0);
      problem.mask_time_stride = a.key_mask.stride(1);
    }
    problem.q = const_view(a.q);
    problem.k = const_view(a.k);
    problem.v = const_view(a.v);
    if (a.has_state()) set_state(a);
  }

  void set_results(const at::Tensor& out, const at::Tensor& denominator) {
    problem.out = view(out);
    if (problem.normalizer == kernels::Normalizer::kSum) problem.denominator = view(denominator);
  }

  cuda::Problem problem;

 private:
  void set_angle(const AttentionArguments& a) {
    if (a.theta.defined()) {
      theta_ = a.theta.detach().to(at::kFloat).contiguous();
      problem.theta_per_head = theta_.data_ptr<float>();
      return;
    }
    double horizon = a.horizon;
    if (horizon == kOwnHorizon && a.packed()) {
      problem.theta_from_length = true;
      return;
    }
    if (horizon == kOwnHorizon) horizon = static_cast<double>(std::max(a.q.size(1), a.k.size(1)));
    if (!std::isfinite(horizon) || horizon == 0) return;
    problem.theta = std::numbers::pi / (2.0 * horizon);
    if (horizon == std::floor(horizon) && horizon < 0x1p60) problem.period = 4 * static_cast<std::int64_t>(horizon);
  }

  void set_state(const AttentionArguments& a) {
    position_ = a.position.to(a.q.device(), /*non_blocking=*/true).contiguous();
    state_kv_ = a.state_kv.contiguous();
    state_z_ = a.state_z.contiguous();
    problem.position = position_.data_ptr<std::int64_t>();
    problem.state_kv_in = state_kv_.data_ptr<float>();
    problem.state_z_in = state_z_.data_ptr<float>();
  }

  at::Tensor cu_q_, cu_k_, theta_, log_decay_, position_, state_kv_, state_z_;
};

at::Tensor workspace_of(std::size_t bytes, const at::Tensor& like) {
  return at::empty({static_cast<std::int64_t>(bytes)}, like.options().dtype(at::kByte));
}

ForwardResult cuda_fwd(COSFORMER_DEVICE_ARGUMENTS, bool for_backward) {
  const AttentionArguments a = collect(q, k, v, theta, log_decay, key_mask, cu_seqlens_q, cu_seqlens_k, state_kv,
                                       state_z, position, horizon, causal, feature_map, normalizer, eps);
  const c10::cuda::CUDAGuard guard(q.device());
  const auto stream = at::cuda::getCurrentCUDAStream();
  const auto accumulation = q.options().dtype(at::kFloat);
  const at::Tensor out = at::empty({q.size(0), q.size(1), q.size(2), v.size(3)}, v.options());
  const at::Tensor denominator = empty_denominators(a);
  at::Tensor kv = a.has_state() ? at::empty(a.state_kv.sizes(), accumulation) : at::empty({0}, accumulation);
  const at::Tensor z = a.has_state() ? at::empty(a.state_z.sizes(), accumulation) : at::empty({0}, accumulation);
  CudaProblem gpu(a);
  gpu.set_results(out, denominator);
  if (a.has_state()) {
    gpu.problem.state_kv_out = kv.data_ptr<float>();
    gpu.problem.state_z_out = z.data_ptr<float>();
  } else if (for_backward) {
    gpu.problem.keep_key_sums = cuda::KeepSums::kWhereWorthIt;
  }
  const cuda::Choice choice = cuda::choose(gpu.problem, nullptr, cuda::this_device());
  if (choice.key_sum_floats > 0) {
    kv = at::empty({choice.key_sum_floats}, accumulation);
    gpu.problem.key_sums = kv.data_ptr<float>();
  }
  const at::Tensor workspace = workspace_of(choice.workspace.bytes, q);
  check(cuda::attention_fwd(gpu.problem, choice, workspace.data_ptr(), static_cast<std::size_t>(workspace.numel()),
                            stream),
        "the forward pass");
  return {out, denominator, kv, z};
}

BackwardResult cuda_bwd(const at::Tensor& dout, const OptionalTensor& d_state_kv, const OptionalTensor& d_state_z,
                        const at::Tensor& out, const at::Tensor& denominator, const OptionalTensor& sum_kv,
                        const OptionalTensor& /*sum_z*/, COSFORMER_DEVICE_ARGUMENTS) {
  const AttentionArguments a = collect(q, k, v, theta, log_decay, key_mask, cu_seqlens_q, cu_seqlens_k, state_kv,
                                       state_z, position, horizon, causal, feature_map, normalizer, eps);
  const c10::cuda::CUDAGuard guard(q.device());
  const auto stream = at::cuda::getCurrentCUDAStream();
  const auto accumulation = q.options().dtype(at::kFloat);
  const at::Tensor dq = at::empty_like(q, at::MemoryFormat::Contiguous);
  const at::Tensor dk = at::empty_like(k, at::MemoryFormat::Contiguous);
  const at::Tensor dv = at::empty_like(v, at::MemoryFormat::Contiguous);
  const at::Tensor none = at::empty({0}, accumulation);
  // A gradient that arrives expanded (from a sum, say) has stride 0 in its last dimension; kernels want 1.
  const at::Tensor dense_dout = dout.stride(3) == 1 ? dout : dout.contiguous();
  CudaProblem gpu(a);
  gpu.set_results(out, denominator);
  if (sum_kv.has_value() && sum_kv->numel() > 0) {
    gpu.problem.key_sums = sum_kv->data_ptr<float>();
    gpu.problem.keep_key_sums = cuda::KeepSums::kAlways;
  }
  cuda::Gradients gradients;
  gradients.dout = const_view(dense_dout);
  gradients.dq = view(dq);
  gradients.dk = view(dk);
  gradients.dv = view(dv);
  at::Tensor d_kv_in = none, d_z_in = none, d_kv_out, d_z_out, d_log_decay = none;
  if (a.has_state()) {
    d_kv_in = at::empty(a.state_kv.sizes(), accumulation);
    d_z_in = at::empty(a.state_z.sizes(), accumulation);
    d_kv_out = d_state_kv->contiguous();
    d_z_out = d_state_z->contiguous();
    gradients.d_state_kv_in = d_kv_in.data_ptr<float>();
    gradients.d_state_z_in = d_z_in.data_ptr<float>();
    gradients.d_state_kv_out = d_kv_out.data_ptr<float>();
    gradients.d_state_z_out = d_z_out.data_ptr<float>();
  }
  if (a.log_decay.defined()) {
    d_log_decay = at::empty({q.size(2)}, q.options().dtype(at::kDouble));
    gradients.d_log_decay = d_log_decay.data_ptr<double>();
  }
  const cuda::Choice choice = cuda::choose(gpu.problem, &gradients, cuda::this_device());
  const at::Tensor workspace = workspace_of(choice.workspace.bytes, q);
  check(cuda::attention_bwd(gpu.problem, gradients, choice, workspace.data_ptr(),
                            static_cast<std::size_t>(workspace.numel()), stream),
        "the backward pass");
  if (a.log_decay.defined()) d_log_decay = d_log_decay.to(a.log_decay.scalar_type());
  return {dq, dk, dv, d_log_decay, d_kv_in, d_z_in};
}

}  // namespace

TORCH_LIBRARY_IMPL(cosformer, CUDA, m) {
  m.impl("_attention_fwd", cuda_fwd);
  m.impl("_attention_bwd", cuda_bwd);
}

}  // namespace cosformer::ops
