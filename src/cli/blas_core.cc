#include "cli/blas_core.h"

#include <cstdlib>
#include <cstring>

#include <dlfcn.h>
#include <unistd.h>

namespace cosformer::cli {

void restart_with_fitting_blas([[maybe_unused]] char** argv) {
#ifdef __x86_64__
  if (std::getenv("OPENBLAS_CORETYPE") != nullptr) return;
  const auto core_name = reinterpret_cast<char* (*)()>(dlsym(RTLD_DEFAULT, "openblas_get_corename"));
  if (core_name == nullptr || std::strcmp(core_name(), "Prescott") != 0) return;
  const bool has_avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                          __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  const bool has_avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  if (!has_avx512 && !has_avx2) return;
  setenv("OPENBLAS_CORETYPE", has_avx512 ? "SkylakeX" : "Haswell", 1);
  execv("/proc/self/exe", argv);  // returns only on failure: then slow products it is
#endif
}

}  // namespace cosformer::cli
