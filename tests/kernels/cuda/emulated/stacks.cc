#include "stacks.h"

#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include <sys/mman.h>

namespace emulated {

// Many at a time, since a process may have no more than some ten thousand mappings and the race detector adds its own
// to each; none are given back.
unsigned char* make_stack() {
  constexpr std::size_t kTogether = 256;
  static unsigned char* next = nullptr;
  static std::size_t left = 0;
  if (left == 0) {
    void* const memory = mmap(nullptr, (kTogether + 1) * kStackBytes, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
    if (memory == MAP_FAILED) {
      std::fprintf(stderr, "emulated device: no memory for the stacks of more threads\n");
      std::abort();
    }
    const std::size_t past = reinterpret_cast<std::uintptr_t>(memory) % kStackBytes;
    next = static_cast<unsigned char*>(memory) + (past == 0 ? 0 : kStackBytes - past);
    left = kTogether;
  }
  unsigned char* const stack = next;
  next += kStackBytes;
  --left;
  mprotect(stack, 4096, PROT_NONE);
  return stack;
}

}  // namespace emulated
