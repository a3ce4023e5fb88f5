// Keeps torch's oneDNN from matrix tiles (AMX) that it could not set up.
//
// oneDNN takes tiles where the processor says that it has them, and asks it for their sizes (CPUID leaf 0x1d). Some
// hypervisors pass the first answer on and hide the second: its bfloat16 products then end in an illegal instruction.
// It reads its limit when it is first used, so that setting it while the library is loaded is early enough. The
// kernels of this project know the sizes and need not ask.
#ifdef __x86_64__

#include <cstdlib>

#include <cpuid.h>

namespace cosformer {
namespace {

bool hides_the_sizes_of_tiles() {
  constexpr unsigned kFeatures = 7, kTileFeature = 1U << 24, kTileSizes = 0x1d;
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid_count(kFeatures, 0, &a, &b, &c, &d) == 0 || (d & kTileFeature) == 0) return false;
  const bool answered = __get_cpuid_count(kTileSizes, 0, &a, &b, &c, &d) != 0;
  return !answered || a == 0;  // a: how many palettes of sizes there are
}

[[maybe_unused]] const bool limited = [] {
  const bool limits = hides_the_sizes_of_tiles() && std::getenv("DNNL_MAX_CPU_ISA") == nullptr;
  if (limits) setenv("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_BF16", 0);  // what the user has set stays
  return limits;
}();

}  // namespace
}  // namespace cosformer

#endif
