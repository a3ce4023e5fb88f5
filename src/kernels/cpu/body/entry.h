// The functions that an instruction set's AttentionKernels points to.
#pragma once

#include "kernels/cpu/body/fma_peak.h"
#include "kernels/cpu/body/run_bwd.h"
#include "kernels/cpu/body/run_fwd.h"
#include "kernels/cpu/instruction_set.h"
#include "kernels/cpu/plan.h"

namespace cosformer::kernels::cpu {
namespace {

Schedule plan_fwd(const AttentionProblem& problem, int threads) {
  const BodyTraits traits = traits_of(problem);
  return plan_attention_fwd(problem, threads, traits.vector_bytes, traits.chunk, traits.half_products);
}

Schedule plan_bwd(const AttentionProblem& problem, const AttentionGradients&, int threads) {
  const BodyTraits traits = traits_of(problem);
  return plan_attention_bwd(problem, threads, traits.vector_bytes, traits.chunk, traits.half_products);
}

void run_fwd(const AttentionProblem& problem, const Schedule& schedule, const Work& work) {
  if (problem.dtype == DType::kFloat64) {
    ForwardRun<double>(problem, schedule, work).run();
  } else {
    [[maybe_unused]] const HalfUnit unit;
    ForwardRun<float>(problem, schedule, work).run();
  }
  finish_streaming();
}

void run_bwd(const AttentionProblem& problem, const AttentionGradients& gradients, const Schedule& schedule,
             const Work& work) {
  if (problem.dtype == DType::kFloat64) {
    BackwardRun<double>(problem, gradients, schedule, work).run();
  } else {
    [[maybe_unused]] const HalfUnit unit;
    BackwardRun<float>(problem, gradients, schedule, work).run();
  }
  finish_streaming();
}

}  // namespace
}  // namespace cosformer::kernels::cpu
