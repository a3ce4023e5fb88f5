// The body, compiled with the flags of this instruction set (CMakeLists.txt).
#define COSFORMER_VECTOR_BYTES 64
#define COSFORMER_TILE_REGISTERS 24
#define COSFORMER_CHUNK 32
#define COSFORMER_BF16_DOT

#include "kernels/cpu/body/entry.h"

namespace cosformer::kernels::cpu {

const InstructionSet kAvx512Bf16Set = {
    {"avx512_bf16", plan_fwd, run_fwd, plan_bwd, run_bwd}, measure_fma_gflops_here, measure_bf16_gflops_here};

}  // namespace cosformer::kernels::cpu
