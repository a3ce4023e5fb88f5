// The attention on CPUs: one body per algorithm, compiled once for each instruction set, chosen at run time.
//
// docs/decisions/cpu-kernels.md says how it is blocked and why.
#pragma once

#include <span>
#include <string_view>

#include "kernels/attention.h"

namespace cosformer::kernels::cpu {

// Every set compiled into this library, slowest first; their names are "baseline", "avx2", "avx512", "avx512_bf16" and
// "amx_bf16" on x86-64, and "portable" elsewhere. The last two differ from "avx512" in bf16 problems only.
std::span<const AttentionKernels* const> compiled_kernels();

// False for a name that was not compiled in.
bool cpu_can_run(std::string_view name);

// The fastest set that this CPU runs, chosen once. The environment variable COSFORMER_CPU_ISA=<name> overrides the
// choice; throws UserError when it names a set that is unknown or that this CPU lacks.
const AttentionKernels& chosen_kernels();

// Billions of multiplications and additions that one thread does in a loop of nothing else, with the chosen set.
double measure_fma_gflops(double seconds);

// The same in bf16 products accumulated in float32; 0 where the chosen set has no such instruction.
double measure_bf16_gflops(double seconds);

}  // namespace cosformer::kernels::cpu
