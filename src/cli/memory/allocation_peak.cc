#include "cli/memory/allocation_peak.h"

#ifdef COSFORMER_WITH_CUDA
#include <algorithm>

#include <ATen/ATen.h>
#include <c10/cuda/CUDACachingAllocator.h>
#endif

#include "cli/memory/memory.h"

namespace cosformer::cli {

#ifdef COSFORMER_WITH_CUDA
namespace {

double cuda_bytes(c10::Device device, bool peak) {
  const auto stats = c10::cuda::CUDACachingAllocator::getDeviceStats(std::max<int>(device.index(), 0));
  const auto& bytes = stats.allocated_bytes[0];
  return static_cast<double>(peak ? bytes.peak : bytes.current);
}

}  // namespace
#endif

AllocationPeak::AllocationPeak(c10::Device device) : device_(device) {
#ifdef COSFORMER_WITH_CUDA
  if (device.is_cuda()) {
    at::empty({1}, at::TensorOptions(device));  // the allocator has no statistics before its first use
    c10::cuda::CUDACachingAllocator::resetPeakStats(std::max<int>(device.index(), 0));
    before_ = cuda_bytes(device, false);
    return;
  }
#endif
  forget_most_tensor_bytes();
  before_ = tensor_bytes();
}

double AllocationPeak::bytes() const {
#ifdef COSFORMER_WITH_CUDA
  if (device_.is_cuda()) return cuda_bytes(device_, true) - before_;
#endif
  return most_tensor_bytes() - before_;
}

}  // namespace cosformer::cli
