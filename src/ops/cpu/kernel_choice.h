// Which implementation the CPU operator runs: the best that this processor can, unless somebody asks for another.
#pragma once

#include "kernels/attention.h"

namespace cosformer::ops {

const kernels::AttentionKernels& current_cpu_kernels();

// For comparisons only: while it lives, the operator runs `kernels` on the CPU in the whole process.
class UseCpuKernels {
 public:
  explicit UseCpuKernels(const kernels::AttentionKernels& kernels);
  ~UseCpuKernels();
  UseCpuKernels(const UseCpuKernels&) = delete;
  UseCpuKernels& operator=(const UseCpuKernels&) = delete;

 private:
  const kernels::AttentionKernels* before_;
};

}  // namespace cosformer::ops
