#include "cli/terminal/environment.h"

#include <cstdlib>
#include <string_view>

#include <dlfcn.h>
#include <unistd.h>

namespace cosformer::cli {
namespace {

// The kernels that OpenBLAS should take, or null where its own choice is good or somebody else's.
const char* fitting_blas_core() {
#ifdef __x86_64__
  if (std::getenv("OPENBLAS_CORETYPE") != nullptr) return nullptr;
  const auto core_name = reinterpret_cast<char* (*)()>(dlsym(RTLD_DEFAULT, "openblas_get_corename"));
  if (core_name == nullptr || std::string_view(core_name()) != "Prescott") return nullptr;
  const bool has_avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                          __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  if (has_avx512) return "SkylakeX";
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return "Haswell";
#endif
  return nullptr;
}

bool can_spin_less() {
  return std::getenv("GOMP_SPINCOUNT") == nullptr && std::getenv("OMP_WAIT_POLICY") == nullptr &&
         dlsym(RTLD_DEFAULT, "GOMP_parallel") != nullptr;
}

}  // namespace

void restart_with_fitting_environment(char** argv, bool computes) {
  const char* const core = fitting_blas_core();
  const bool spin_less = computes && can_spin_less();
  if (core == nullptr && !spin_less) return;
  if (core != nullptr) setenv("OPENBLAS_CORETYPE", core, 1);
  if (spin_less) setenv("GOMP_SPINCOUNT", "10000", 1);
  execv("/proc/self/exe", argv);  // returns only on failure: then slowly
}

}  // namespace cosformer::cli
