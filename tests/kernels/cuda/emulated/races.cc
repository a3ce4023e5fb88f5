// What the kernels call at every access, on its way to ThreadSanitizer: whatever a played thread does on its own stack
// is left out. Most accesses are there, since arrays that are registers on a device lie there, and none of them can be
// a race: no other thread of a device has a way to them.
#include <cstdint>

#include "stacks.h"

namespace {

inline bool on_own_stack(const void* p) {
  const auto here = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
  return (reinterpret_cast<std::uintptr_t>(p) ^ here) < emulated::kStackBytes;
}

}  // namespace

// The linker gives these names (--wrap). A call at the end is a jump, so that reports say where the kernel is.
#define COSFORMER_WATCHED(access)                    \
  extern "C" void __real___tsan_##access(void* p);   \
  extern "C" void __wrap___tsan_##access(void* p) {  \
    if (!on_own_stack(p)) __real___tsan_##access(p); \
  }
COSFORMER_WATCHED(read1)
COSFORMER_WATCHED(read2)
COSFORMER_WATCHED(read4)
COSFORMER_WATCHED(read8)
COSFORMER_WATCHED(read16)
COSFORMER_WATCHED(write1)
COSFORMER_WATCHED(write2)
COSFORMER_WATCHED(write4)
COSFORMER_WATCHED(write8)
COSFORMER_WATCHED(write16)

#define COSFORMER_WATCHED_RANGE(access)                                          \
  extern "C" void __real___tsan_##access##_range(void* p, unsigned long bytes);  \
  extern "C" void __wrap___tsan_##access##_range(void* p, unsigned long bytes) { \
    if (!on_own_stack(p)) __real___tsan_##access##_range(p, bytes);              \
  }
COSFORMER_WATCHED_RANGE(read)
COSFORMER_WATCHED_RANGE(write)
