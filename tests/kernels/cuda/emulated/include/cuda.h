// How CUDA's driver describes a tensor to the copy engine, for the emulated device.
#pragma once

#include <cstdint>

using cuuint64_t = std::uint64_t;
using cuuint32_t = std::uint32_t;
struct alignas(64) CUtensorMap {
  unsigned char bytes[128];
};
enum CUresult { CUDA_SUCCESS, CUDA_ERROR_INVALID_VALUE };
enum CUtensorMapDataType { CU_TENSOR_MAP_DATA_TYPE_BFLOAT16 };
enum CUtensorMapInterleave { CU_TENSOR_MAP_INTERLEAVE_NONE };
enum CUtensorMapSwizzle { CU_TENSOR_MAP_SWIZZLE_128B };
enum CUtensorMapL2promotion { CU_TENSOR_MAP_L2_PROMOTION_L2_128B };
enum CUtensorMapFloatOOBfill { CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE };
CUresult cuTensorMapEncodeTiled(CUtensorMap* map, CUtensorMapDataType type, cuuint32_t rank, void* data,
                                const cuuint64_t* sizes, const cuuint64_t* strides, const cuuint32_t* box,
                                const cuuint32_t* steps, CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
                                CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill);
