#include "cli/allocation_peak.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>

#include <c10/core/CPUAllocator.h>
#include <torch/version.h>

#ifdef COSFORMER_WITH_CUDA
#include <c10/cuda/CUDACachingAllocator.h>
#endif

namespace cosformer::cli {
namespace {

std::atomic<long long> held{0}, most{0};

// What a block needs to be given back, and its size.
struct Block {
  c10::DataPtr data;
  long long size;
};

void release(void* context) {
  const std::unique_ptr<Block> block(static_cast<Block*>(context));
  held -= block->size;
}

// Counts and passes on. Freeing works whether or not it is still installed, since every block carries its own deleter.
class CountingAllocator final : public c10::Allocator {
 public:
  explicit CountingAllocator(c10::Allocator* behind) : behind_(behind) {}

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

 private:
  c10::DataPtr counted(std::size_t size) const {
    auto block = std::make_unique<Block>(Block{behind_->allocate(size), static_cast<long long>(size)});
    const long long now = held += static_cast<long long>(size);
    long long before = most;
    while (now > before && !most.compare_exchange_weak(before, now)) {
    }
    void* memory = block->data.get();
    const c10::Device device = block->data.device();
    return {memory, block.release(), &release, device};
  }

  c10::Allocator* behind_;
};

void install_counting_allocator() {
  static CountingAllocator counting(c10::GetCPUAllocator());
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
