#include "ops/cpu/huge_pages.h"

#include <cstdint>

#include <ATen/ATen.h>
#ifdef __linux__
#include <sys/mman.h>
#endif

namespace cosformer::ops {

void advise_huge_pages([[maybe_unused]] void* data, [[maybe_unused]] std::size_t bytes) {
#if defined(__linux__) && defined(MADV_HUGEPAGE)
  constexpr std::size_t kHugePage = std::size_t{2} << 20;
  if (bytes < 2 * kHugePage) return;
  // Rounded outwards: the pages at the ends are shared with neighbours, who lose nothing.
  const std::uintptr_t begin = reinterpret_cast<std::uintptr_t>(data) / kHugePage * kHugePage;
  const std::uintptr_t end = (reinterpret_cast<std::uintptr_t>(data) + bytes + kHugePage - 1) / kHugePage * kHugePage;
  madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);
#endif
}

at::Tensor empty_on_huge_pages(at::IntArrayRef sizes, const at::TensorOptions& options) {
  at::Tensor tensor = at::empty(sizes, options);
  advise_huge_pages(tensor.data_ptr(), tensor.nbytes());
  return tensor;
}

}  // namespace cosformer::ops
