// Which instruction set's kernels run: the compiled ones in order of speed, the processor features that each needs, and
// the choice of one, once for the process (COSFORMER_CPU_ISA overrides it). What an instruction set computes is in
// body/ and isa_*.cc, how a call is cut in plan.cc.
#if defined(__x86_64__)
#include <cpuid.h>
#endif
#if defined(__x86_64__) && defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include <cstdlib>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

#include <fmt/core.h>

#include "base/error.h"
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
#if defined(COSFORMER_HAVE_AMX_BF16)
    &kAmxBf16Set,
#endif
#if defined(COSFORMER_HAVE_PORTABLE)
    &kPortableSet,
#endif
};
constexpr std::size_t kSetCount = sizeof(kSets) / sizeof(kSets[0]);

#if defined(__x86_64__)
// The tile unit is there, and the kernel lets this process use its registers once asked.
bool has_bf16_tiles() {
#if defined(__linux__)
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  if (__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) == 0) return false;
  constexpr unsigned kBf16Bit = 1U << 22, kTileBit = 1U << 24;
  if ((edx & kBf16Bit) == 0 || (edx & kTileBit) == 0) return false;
  constexpr long kRequestPermission = 0x1023, kTileData = 18;
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
#else
  return false;
#endif
}

// Intel's cores issue a bf16 dot product at half the rate of a multiply-addition or less, so that rounding to bf16
// gains nothing there (docs/decisions/cpu-kernels.md); AMD's issue it at the full rate.
bool has_fast_bf16_dot() {
  return __builtin_cpu_is("intel") == 0;
}
#endif

bool has_features(std::string_view name) {
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (name == "baseline") return true;
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  if (name == "avx2") return avx2;
  const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  if (name == "avx512") return avx512;
  const bool avx512_bf16 = avx512 && __builtin_cpu_supports("avx512bf16");
  if (name == "avx512_bf16") return avx512_bf16;
  if (name == "amx_bf16") return avx512_bf16 && has_bf16_tiles();
  return false;
#else
  return name == "portable";
#endif
}

// Whether a set that this CPU runs is worth choosing over the ones before it.
bool is_faster_than_lesser_sets(std::string_view name) {
#if defined(__x86_64__)
  if (name == "avx512_bf16") return has_fast_bf16_dot();
#endif
  return !name.empty();
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
        throw UserError(fmt::format("COSFORMER_CPU_ISA={}: this CPU lacks that instruction set; it can run: {}",
                                    std::string(wanted), runnable_names()));
      }
      return *set;
    }
    if (has_features(name) && is_faster_than_lesser_sets(name)) best = set;
  }
  if (wanted != nullptr && *wanted != '\0') {
    throw UserError(fmt::format("COSFORMER_CPU_ISA={}: no such instruction set; this CPU can run: {}",
                                std::string(wanted), runnable_names()));
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
