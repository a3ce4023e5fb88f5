// The body, compiled with the flags of this instruction set (kernels/cpu/CMakeLists.txt).
#define COSFORMER_VECTOR_BYTES 32
#define COSFORMER_TILE_REGISTERS 12
#define COSFORMER_CHUNK 32

#include "kernels/cpu/products/body.h"

namespace cosformer::kernels::cpu {

const MultiplyRows kMultiplyRowsAvx2 = multiply_rows_here;

}  // namespace cosformer::kernels::cpu
