#include "cli/allocation_peak.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstring>

#include <c10/core/CPUAllocator.h>
#include <torch/version.h>

#ifdef COSFORMER_WITH_CUDA
#include <c10/cuda/CUDACachingAllocator.h>
#endif

namespace cosformer::cli {
namespace {

std::atomic<long long> held{0}, most{0};
c10::Allocator* behind = nullptr;  // torch's own, which ours passes requests on to

// In front of every block, and as large as torch's alignment: the size to subtract when the block is freed.
constexpr std::size_t kHeader = 64;

void release(void* data) {
  if (data == nullptr) return;
  std::byte* base = static_cast<std::byte*>(data) - kHeader;
  long long size = 0;
  std::memcpy(&size, base, sizeof size);
  held -= size;
  behind->raw_deallocate(base);
}

c10::DataPtr counted(std::size_t size) {
  auto* base = static_cast<std::byte*>(behind->raw_allocate(size + kHeader));
  const auto signed_size = static_cast<long long>(size);
  std::memcpy(base, &signed_size, sizeof signed_size);
  const long long now = held += signed_size;
  long long before = most;
  while (now > before && !most.compare_exchange_weak(before, now)) {
  }
  void* data = base + kHeader;
  return {data, data, &release, c10::Device(c10::DeviceType::CPU)};
}

// Counts and passes on. Once installed it stays: blocks that it gave out come back to it.
class CountingAllocator final : public c10::Allocator {
 public:
#if TORCH_VERSION_MAJOR >= 2
  c10::DataPtr allocate(std::size_t size) override {
    return counted(size);
  }
  void copy_data(void* to, const void* from, std::size_t count) const override {
    std::memcpy(to, from, count);
  }
#else
  c10::DataPtr allocate(std::size_t size) const override {
    return counted(size);
  }
#endif
  c10::DeleterFnPtr raw_deleter() const override {
    return &release;
  }
};

void install_counting_allocator() {
  static CountingAllocator counting;
  if (behind != nullptr) return;
  behind = c10::GetCPUAllocator();
  c10::SetCPUAllocator(&counting, /*priority=*/1);
}

#ifdef COSFORMER_WITH_CUDA
double cuda_bytes(c10::Device device, bool peak) {
  const auto stats = c10::cuda::CUDACachingAllocator::getDeviceStats(std::max<int>(device.index(), 0));
  const auto& bytes = stats.allocated_bytes[0];
  return static_cast<double>(peak ? bytes.peak : bytes.current);
}
#endif

}  // namespace

AllocationPeak::AllocationPeak(c10::Device device) : device_(device) {
#ifdef COSFORMER_WITH_CUDA
  if (device.is_cuda()) {
    at::empty({1}, at::TensorOptions(device));  // the allocator has no statistics before its first use
    c10::cuda::CUDACachingAllocator::resetPeakStats(std::max<int>(device.index(), 0));
    before_ = cuda_bytes(device, false);
    return;
  }
#endif
  install_counting_allocator();
  most = held.load();
  before_ = static_cast<double>(held.load());
}

double AllocationPeak::bytes() const {
#ifdef COSFORMER_WITH_CUDA
  if (device_.is_cuda()) return cuda_bytes(device_, true) - before_;
#endif
  return static_cast<double>(most.load()) - before_;
}

}  // namespace cosformer::cli
