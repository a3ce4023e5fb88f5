#include <cstdlib>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

#include "kernels/cpu/attention.h"
#include "kernels/cpu/instruction_set.h"

namespace cosformer::kernels::cpu {
namespace {

// Slowest first.
constexpr const InstructionSet* kSets[] = {
#if defined(COSFORMER_HAVE_BASELINE)
    &kBaselineSet,
#endif
#if defined(COSFORMER_HAVE_AVX2)
    &kAvx2Set,
#endif
#if defined(COSFORMER_HAVE_AVX512)
    &kAvx512Set,
#endif
#if defined(COSFORMER_HAVE_AVX512_BF16)
    &kAvx512Bf16Set,
#endif
#if defined(COSFORMER_HAVE_PORTABLE)
    &kPortableSet,
#endif
};
constexpr std::size_t kSetCount = sizeof(kSets) / sizeof(kSets[0]);

bool has_features(std::string_view name) {
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (name == "baseline") return true;
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  if (name == "avx2") return avx2;
  const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  if (name == "avx512") return avx512;
  if (name == "avx512_bf16") return avx512 && __builtin_cpu_supports("avx512bf16");
  return false;
#else
  return name == "portable";
#endif
}

std::string runnable_names() {
  std::string names;
  for (const InstructionSet* set : kSets) {
    if (!has_features(set->attention.name)) continue;
    names += names.empty() ? "" : ", ";
    names += set->attention.name;
  }
  return names;
}

const InstructionSet& choose() {
  const char* wanted = std::getenv("COSFORMER_CPU_ISA");
  const InstructionSet* best = nullptr;
  for (const InstructionSet* set : kSets) {
    const std::string_view name = set->attention.name;
    if (wanted != nullptr && *wanted != '\0') {
      if (name != wanted) continue;
      if (!has_features(name)) {
        throw std::runtime_error("COSFORMER_CPU_ISA=" + std::string(wanted) +
                                 ": this CPU lacks that instruction set; it can run: " + runnable_names());
      }
      return *set;
    }
    if (has_features(name)) best = set;
  }
  if (wanted != nullptr && *wanted != '\0') {
    throw std::runtime_error("COSFORMER_CPU_ISA=" + std::string(wanted) +
                             ": no such instruction set; this CPU can run: " + runnable_names());
  }
  if (best == nullptr) throw std::runtime_error("no compiled instruction set runs on this CPU");
  return *best;
}

const InstructionSet& chosen_set() {
  static const InstructionSet& chosen = choose();
  return chosen;
}

}  // namespace

std::span<const AttentionKernels* const> compiled_kernels() {
  static const auto list = [] {
    struct List {
      const AttentionKernels* kernels[kSetCount];
    } result{};
    for (std::size_t i = 0; i < kSetCount; ++i) result.kernels[i] = &kSets[i]->attention;
    return result;
  }();
  return list.kernels;
}

bool cpu_can_run(std::string_view name) {
  for (const InstructionSet* set : kSets) {
    if (name == set->attention.name) return has_features(name);
  }
  return false;
}

const AttentionKernels& chosen_kernels() {
  return chosen_set().attention;
}

double measure_fma_gflops(double seconds) {
  return chosen_set().measure_fma_gflops(seconds);
}

double measure_bf16_gflops(double seconds) {
  const auto measure = chosen_set().measure_bf16_gflops;
  return measure == nullptr ? 0.0 : measure(seconds);
}

}  // namespace cosformer::kernels::cpu
