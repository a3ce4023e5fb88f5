#include "cli/memory.h"

#include <cstddef>
#include <cstring>

#include <c10/core/CPUAllocator.h>
#include <torch/version.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

#include "ops/cpu/huge_pages.h"

namespace cosformer::cli {
namespace {

// Torch's own allocator, and huge pages under the large blocks that it gives out.
class HugePageAllocator final : public c10::Allocator {
 public:
#if TORCH_VERSION_MAJOR >= 2
  c10::DataPtr allocate(std::size_t size) override {
    return advised(size);
  }
  void copy_data(void* to, const void* from, std::size_t count) const override {
    std::memcpy(to, from, count);
  }
#else
  c10::DataPtr allocate(std::size_t size) const override {
    return advised(size);
  }
#endif
  c10::DeleterFnPtr raw_deleter() const override {
    return c10::GetDefaultCPUAllocator()->raw_deleter();
  }

 private:
  static c10::DataPtr advised(std::size_t size) {
    c10::DataPtr block = c10::GetDefaultCPUAllocator()->allocate(size);
    ops::advise_huge_pages(block.get(), size);
    return block;
  }
};

// Tensors above 32 MB would otherwise be mapped and cleared anew each time, and page faults cost more than the
// arithmetic on them.
void keep_freed_memory() {
#ifdef __GLIBC__
  mallopt(M_MMAP_MAX, 0);
  mallopt(M_TRIM_THRESHOLD, -1);
#endif
}

}  // namespace

void set_up_memory() {
  static HugePageAllocator allocator;
  keep_freed_memory();
  c10::SetCPUAllocator(&allocator);
}

}  // namespace cosformer::cli
