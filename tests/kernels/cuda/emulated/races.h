// What ThreadSanitizer is told of the played threads. Without it, nothing.
#pragma once

#include <cstddef>

#ifdef COSFORMER_EMULATED_RACES
#include <sanitizer/tsan_interface.h>
extern "C" void __tsan_read_range(void* address, unsigned long size);
extern "C" void __tsan_write_range(void* address, unsigned long size);
#define COSFORMER_RACES(statement) statement
#else
#define COSFORMER_RACES(statement)
#endif

namespace emulated::races {

inline void release([[maybe_unused]] void* order) {
  COSFORMER_RACES(__tsan_release(order));
}
inline void acquire([[maybe_unused]] void* order) {
  COSFORMER_RACES(__tsan_acquire(order));
}
// By the device's own code, which is not instrumented.
inline void reads([[maybe_unused]] const void* p, [[maybe_unused]] std::size_t bytes) {
  COSFORMER_RACES(__tsan_read_range(const_cast<void*>(p), bytes));
}
inline void writes([[maybe_unused]] void* p, [[maybe_unused]] std::size_t bytes) {
  COSFORMER_RACES(__tsan_write_range(p, bytes));
}

}  // namespace emulated::races
