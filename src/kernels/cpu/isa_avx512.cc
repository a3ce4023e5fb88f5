// The body, compiled with the flags of this instruction set (CMakeLists.txt).
#define COSFORMER_VECTOR_BYTES 64
#define COSFORMER_TILE_REGISTERS 24
#define COSFORMER_CHUNK 32

#include "kernels/cpu/body/entry.h"

namespace cosformer::kernels::cpu {

const InstructionSet kAvx512Set = {{"avx512", plan_fwd, run_fwd, plan_bwd, run_bwd}, measure_fma_gflops_here, nullptr};

}  // namespace cosformer::kernels::cpu
