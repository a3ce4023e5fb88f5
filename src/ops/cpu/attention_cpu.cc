// The operator on the CPU: tensors become a problem of raw pointers, its items are spread over torch's threads.
#include <algorithm>
#include <exception>
#include <functional>
#include <vector>

#include <ATen/Parallel.h>
#include <torch/library.h>

#include "kernels/attention.h"
#include "ops/attention_problem.h"
#include "ops/boxing.h"
#include "ops/cpu/huge_pages.h"
#include "ops/cpu/kernel_choice.h"
#include "ops/device_ops.h"

namespace cosformer::ops {
namespace {

using kernels::AttentionGradients;
using kernels::AttentionProblem;
using kernels::Schedule;
using kernels::Sequence;
using kernels::Work;

std::vector<Sequence> packed_sequences(const AttentionArguments& a) {
  const at::Tensor cu_q = a.options.cu_seqlens_q.to(at::kLong).contiguous(),
                   cu_k = a.options.cu_seqlens_k.to(at::kLong).contiguous();
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

// With the sequences that it points to.
class CpuProblem : public FilledProblem<AttentionProblem> {
 public:
  explicit CpuProblem(const AttentionArguments& a)
      : FilledProblem(a), sequences_(a.packed() ? packed_sequences(a) : batch_sequences(a)) {
    set(problem.theta, a.options.theta);
    if (!a.options.theta.defined()) {
      const double horizon = horizon_of(a.options);
      for (Sequence& s : sequences_) {
        set_angle(s, horizon == kOwnHorizon ? static_cast<double>(std::max(s.q_length, s.k_length)) : horizon);
      }
    }
    problem.sequences = sequences_.data();
    problem.sequence_count = static_cast<std::int64_t>(sequences_.size());
  }

 private:
  std::vector<Sequence> sequences_;
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
  return !problem.causal && problem.log_decay == nullptr &&
         keys >= kKeysPerFeature * problem.dim * problem.sequence_count;
}

ForwardResult cpu_fwd(const AttentionArguments& a, bool for_backward) {
  const auto accumulation = a.q.options().dtype(accumulation_type(a.q.scalar_type()));
  CpuProblem cpu(a);
  AttentionProblem& p = cpu.problem;
  const bool returns_states = a.has_state() || (for_backward && hands_over_sum(a, p));
  const std::int64_t states = returns_states ? p.sequence_count : 0;
  const ForwardResult result{empty_on_huge_pages({a.q.size(0), a.q.size(1), p.heads, p.value_dim}, a.v.options()),
                             empty_denominators(a), at::empty({states, p.heads, 2, p.dim, p.value_dim}, accumulation),
                             at::empty({states, p.heads, 2, p.dim}, accumulation)};
  cpu.set_results(result.out, result.denominator);
  if (states > 0) {
    point(p.state_kv_out, result.state_kv);
    point(p.state_z_out, result.state_z);
  }
  const kernels::AttentionKernels& kernels = current_cpu_kernels();
  const Schedule schedule = kernels.plan_fwd(p, at::get_num_threads());
  run_parallel(schedule, [&](const Work& work) { kernels.run_fwd(p, schedule, work); });
  return result;
}

BackwardResult cpu_bwd(const BackwardInputs& in, const AttentionArguments& a) {
  CpuProblem cpu(a);
  AttentionProblem& p = cpu.problem;
  cpu.set_results(in.out, in.denominator);
  if (in.sum_kv.defined() && in.sum_kv.numel() > 0) {
    point(p.state_kv_in, in.sum_kv);
    point(p.state_z_in, in.sum_z);
  }
  FilledGradients<AttentionGradients> filled(in, a, empty_on_huge_pages, p.sequence_count);
  AttentionGradients& gradients = filled.gradients;
  const kernels::AttentionKernels& kernels = current_cpu_kernels();
  const Schedule schedule = kernels.plan_bwd(p, gradients, at::get_num_threads());
  run_parallel(schedule, [&](const Work& work) { kernels.run_bwd(p, gradients, schedule, work); });
  return filled.result();
}

}  // namespace

TORCH_LIBRARY_IMPL(cosformer, CPU, m) {
  m.impl("_attention_fwd", boxed<cpu_fwd>());
  m.impl("_attention_bwd", boxed<cpu_bwd>());
}

}  // namespace cosformer::ops
