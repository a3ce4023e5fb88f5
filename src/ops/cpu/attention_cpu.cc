// The operator on the CPU: tensors become a problem of raw pointers, its items are spread over torch's threads.
#include <algorithm>
#include <cmath>
#include <exception>
#include <functional>
#include <numbers>
#include <vector>

#include <ATen/Parallel.h>
#include <torch/library.h>

#include "kernels/attention.h"
#include "ops/cpu/huge_pages.h"
#include "ops/cpu/kernel_choice.h"
#include "ops/device_ops.h"
#include "ops/tensor_views.h"

namespace cosformer::ops {
namespace {

using kernels::AttentionGradients;
using kernels::AttentionProblem;
using kernels::Schedule;
using kernels::Sequence;
using kernels::Work;

std::vector<double> per_head(const at::Tensor& x) {
  if (!x.defined()) return {};
  const at::Tensor values = x.detach().to(at::kDouble).contiguous();
  return {values.data_ptr<double>(), values.data_ptr<double>() + values.numel()};
}

// A θ and the period of positions for a horizon of M tokens.
void set_angle(Sequence& sequence, double horizon) {
  if (horizon == kOwnHorizon) horizon = static_cast<double>(std::max(sequence.q_length, sequence.k_length));
  if (!std::isfinite(horizon) || horizon == 0) return;
  sequence.theta = std::numbers::pi / (2.0 * horizon);
  if (horizon == std::floor(horizon) && horizon < 0x1p60) sequence.period = 4 * static_cast<std::int64_t>(horizon);
}

std::vector<Sequence> packed_sequences(const AttentionArguments& a) {
  const at::Tensor cu_q = a.cu_seqlens_q.to(at::kLong).contiguous(), cu_k = a.cu_seqlens_k.to(at::kLong).contiguous();
  const auto *q = cu_q.data_ptr<std::int64_t>(), *k = cu_k.data_ptr<std::int64_t>();
  std::vector<Sequence> sequences(static_cast<std::size_t>(cu_q.size(0) - 1));
  for (std::size_t s = 0; s < sequences.size(); ++s) {
    sequences[s].q_begin = q[s];
    sequences[s].q_length = q[s + 1] - q[s];
    sequences[s].k_begin = k[s];
    sequences[s].k_length = k[s + 1] - k[s];
  }
  return sequences;
}

std::vector<Sequence> batch_sequences(const AttentionArguments& a) {
  const at::Tensor position = a.has_state() ? a.position.contiguous() : at::Tensor();
  std::vector<Sequence> sequences(static_cast<std::size_t>(a.q.size(0)));
  for (std::size_t s = 0; s < sequences.size(); ++s) {
    sequences[s].batch = static_cast<std::int64_t>(s);
    sequences[s].q_length = a.q.size(1);
    sequences[s].k_length = a.k.size(1);
    if (a.has_state()) sequences[s].position = position.data_ptr<std::int64_t>()[s];
  }
  return sequences;
}

// A problem and the memory that it points to.
class CpuProblem {
 public:
  explicit CpuProblem(const AttentionArguments& a)
      : sequences_(a.packed() ? packed_sequences(a) : batch_sequences(a)),
        theta_(per_head(a.theta)),
        log_decay_(per_head(a.log_decay)) {
    for (Sequence& sequence : sequences_) {
      if (theta_.empty()) set_angle(sequence, a.horizon);
    }
    problem.dtype = dtype_of(a.q.scalar_type());
    problem.heads = a.q.size(2);
    problem.dim = a.q.size(3);
    problem.value_dim = a.v.size(3);
    problem.causal = a.causal;
    problem.feature_map = static_cast<kernels::FeatureMap>(a.feature_map);
    problem.normalizer = static_cast<kernels::Normalizer>(a.normalizer);
    problem.eps = a.eps;
    problem.sequences = sequences_.data();
    problem.sequence_count = static_cast<std::int64_t>(sequences_.size());
    problem.theta = theta_.empty() ? nullptr : theta_.data();
    problem.log_decay = log_decay_.empty() ? nullptr : log_decay_.data();
    if (a.key_mask.defined()) {
      problem.key_mask = a.key_mask.data_ptr<bool>();
      problem.mask_batch_stride = a.key_mask.stride(0);
      problem.mask_time_stride = a.key_mask.stride(1);
    }
    problem.q = const_view(a.q);
    problem.k = const_view(a.k);
    problem.v = const_view(a.v);
    if (!a.has_state()) return;
    state_kv_ = a.state_kv.contiguous();
    state_z_ = a.state_z.contiguous();
    problem.state_kv_in = state_kv_.data_ptr();
    problem.state_z_in = state_z_.data_ptr();
  }

  void set_results(const at::Tensor& out, const at::Tensor& denominator) {
    problem.out = view(out);
    if (problem.normalizer == kernels::Normalizer::kSum) problem.denominator = view(denominator);
  }

  AttentionProblem problem;

 private:
  std::vector<Sequence> sequences_;
  std::vector<double> theta_, log_decay_;
  at::Tensor state_kv_, state_z_;
};

// As many threads as torch is set to. at::parallel_for would use the same, but is serial in every library that is not
// compiled as torch itself was.
void run_parallel(const Schedule& schedule, const std::function<void(const Work&)>& pass) {
  const auto bytes = at::TensorOptions().dtype(at::kByte);  // torch aligns to 64 bytes
  const std::int64_t threads = at::in_parallel_region() ? 1 : std::max(at::get_num_threads(), 1);
  const at::Tensor workspace = at::empty({static_cast<std::int64_t>(schedule.workspace_bytes)}, bytes);
  for (int phase = 0; phase < schedule.phases; ++phase) {
    const std::int64_t items = schedule.items[static_cast<std::size_t>(phase)];
    const std::int64_t parts = std::min(threads, items);
    const int team = static_cast<int>(std::max<std::int64_t>(parts, 1));
    std::exception_ptr failure;
#pragma omp parallel for num_threads(team) schedule(static, 1)
    for (std::int64_t part = 0; part < parts; ++part) {
      try {
        const at::Tensor scratch = at::empty({static_cast<std::int64_t>(schedule.scratch_bytes)}, bytes);
        const std::int64_t begin = items * part / parts, end = items * (part + 1) / parts;
        pass({phase, begin, end, workspace.data_ptr(), scratch.data_ptr()});
      } catch (...) {
#pragma omp critical(cosformer_failure)
        failure = std::current_exception();
      }
    }
    if (failure) std::rethrow_exception(failure);
  }
}

// Whether the forward pass leaves its sum over all keys for the backward pass, which would otherwise make it again: a
// fifth of its work. Not where sequences are so short that the sums would take up as much memory as the keys.
bool hands_over_sum(const AttentionArguments& a, const AttentionProblem& problem) {
  constexpr std::int64_t kKeysPerFeature = 8;
  const std::int64_t keys = a.packed() ? a.k.size(1) : a.k.size(0) * a.k.size(1);
  return !a.causal && !a.log_decay.defined() && keys >= kKeysPerFeature * problem.dim * problem.sequence_count;
}

ForwardResult cpu_fwd(COSFORMER_DEVICE_ARGUMENTS, bool for_backward) {
  const AttentionArguments a = collect(q, k, v, theta, log_decay, key_mask, cu_seqlens_q, cu_seqlens_k, state_kv,
                                       state_z, position, horizon, causal, feature_map, normalizer, eps);
  const auto accumulation = q.options().dtype(accumulation_type(q.scalar_type()));
  const at::Tensor out = empty_on_huge_pages({q.size(0), q.size(1), q.size(2), v.size(3)}, v.options());
  const at::Tensor denominator = empty_denominators(a);
  CpuProblem cpu(a);
  cpu.set_results(out, denominator);
  const bool keeps_states = a.has_state() || (for_backward && hands_over_sum(a, cpu.problem));
  const std::int64_t states = keeps_states ? cpu.problem.sequence_count : 0;
  const at::Tensor kv = at::empty({states, q.size(2), 2, q.size(3), v.size(3)}, accumulation);
  const at::Tensor z = at::empty({states, q.size(2), 2, q.size(3)}, accumulation);
  if (states > 0) {
    cpu.problem.state_kv_out = kv.data_ptr();
    cpu.problem.state_z_out = z.data_ptr();
  }
  const kernels::AttentionKernels& kernels = current_cpu_kernels();
  const Schedule schedule = kernels.plan_fwd(cpu.problem, at::get_num_threads());
  run_parallel(schedule, [&](const Work& work) { kernels.run_fwd(cpu.problem, schedule, work); });
  return {out, denominator, kv, z};
}

BackwardResult cpu_bwd(const at::Tensor& dout, const OptionalTensor& d_state_kv, const OptionalTensor& d_state_z,
                       const at::Tensor& out, const at::Tensor& denominator, const OptionalTensor& sum_kv,
                       const OptionalTensor& sum_z, COSFORMER_DEVICE_ARGUMENTS) {
  const AttentionArguments a = collect(q, k, v, theta, log_decay, key_mask, cu_seqlens_q, cu_seqlens_k, state_kv,
                                       state_z, position, horizon, causal, feature_map, normalizer, eps);
  const auto accumulation = q.options().dtype(accumulation_type(q.scalar_type()));
  const at::Tensor dq = empty_on_huge_pages(q.sizes(), q.options());
  const at::Tensor dk = empty_on_huge_pages(k.sizes(), k.options());
  const at::Tensor dv = empty_on_huge_pages(v.sizes(), v.options());
  const at::Tensor none = at::empty({0}, accumulation);
  // A gradient that arrives expanded (from a sum, say) has stride 0 in its last dimension; kernels want 1.
  const at::Tensor dense_dout = dout.stride(3) == 1 ? dout : dout.contiguous();
  CpuProblem cpu(a);
  cpu.set_results(out, denominator);
  if (sum_kv.has_value() && sum_kv->numel() > 0) {
    cpu.problem.state_kv_in = sum_kv->data_ptr();
    cpu.problem.state_z_in = sum_z->data_ptr();
  }
  AttentionGradients gradients;
  gradients.dout = const_view(dense_dout);
  gradients.dq = view(dq);
  gradients.dk = view(dk);
  gradients.dv = view(dv);
  at::Tensor d_kv_in = none, d_z_in = none, d_kv_out, d_z_out;
  if (a.has_state()) {
    d_kv_in = at::empty(a.state_kv.sizes(), accumulation);
    d_z_in = at::empty(a.state_z.sizes(), accumulation);
    d_kv_out = d_state_kv->contiguous();
    d_z_out = d_state_z->contiguous();
    gradients.d_state_kv_in = d_kv_in.data_ptr();
    gradients.d_state_z_in = d_z_in.data_ptr();
    gradients.d_state_kv_out = d_kv_out.data_ptr();
    gradients.d_state_z_out = d_z_out.data_ptr();
  }
  at::Tensor d_log_decay = none;
  if (a.log_decay.defined()) {
    d_log_decay = at::zeros({cpu.problem.sequence_count, q.size(2)}, q.options().dtype(at::kDouble));
    gradients.d_log_decay = d_log_decay.data_ptr<double>();
  }
  const kernels::AttentionKernels& kernels = current_cpu_kernels();
  const Schedule schedule = kernels.plan_bwd(cpu.problem, gradients, at::get_num_threads());
  run_parallel(schedule, [&](const Work& work) { kernels.run_bwd(cpu.problem, gradients, schedule, work); });
  if (a.log_decay.defined()) d_log_decay = d_log_decay.sum(0).to(a.log_decay.scalar_type());
  return {dq, dk, dv, d_log_decay, d_kv_in, d_z_in};
}

}  // namespace

TORCH_LIBRARY_IMPL(cosformer, CPU, m) {
  m.impl("_attention_fwd", cpu_fwd);
  m.impl("_attention_bwd", cpu_bwd);
}

}  // namespace cosformer::ops
