// What one translation unit per instruction set offers to the dispatcher.
#pragma once

#include "kernels/attention.h"

namespace cosformer::kernels::cpu {

struct InstructionSet {
  AttentionKernels attention;
  double (*measure_fma_gflops)(double seconds);
  double (*measure_bf16_gflops)(double seconds);  // null: no such instruction
};

extern const InstructionSet kBaselineSet;
extern const InstructionSet kAvx2Set;
extern const InstructionSet kAvx512Set;
extern const InstructionSet kAvx512Bf16Set;
extern const InstructionSet kAmxBf16Set;
extern const InstructionSet kPortableSet;

}  // namespace cosformer::kernels::cpu
