#include "ops/cpu/kernel_choice.h"

#include <atomic>

#include "kernels/cpu/attention.h"

namespace cosformer::ops {
namespace {

std::atomic<const kernels::AttentionKernels*> asked_for{nullptr};

}  // namespace

const kernels::AttentionKernels& current_cpu_kernels() {
  const kernels::AttentionKernels* kernels = asked_for.load(std::memory_order_acquire);
  return kernels != nullptr ? *kernels : kernels::cpu::chosen_kernels();
}

UseCpuKernels::UseCpuKernels(const kernels::AttentionKernels& kernels) : before_(asked_for.exchange(&kernels)) {}

UseCpuKernels::~UseCpuKernels() {
  asked_for.store(before_, std::memory_order_release);
}

}  // namespace cosformer::ops
