// Tensors as TMA wants them described, which the driver does.
#include <cuda.h>

#include "kernels/cuda/hopper/launch.h"

namespace cosformer::kernels::cuda {
namespace {

using Encode = decltype(&cuTensorMapEncodeTiled);

// The driver's, found at run time so that nothing needs to be linked with it; null where it has none.
Encode encoder() {
  static const Encode found = [] {
    void* function = nullptr;
    cudaDriverEntryPointQueryResult result = cudaDriverEntryPointSymbolNotFound;
    constexpr const char* kName = "cuTensorMapEncodeTiled";
#if CUDART_VERSION >= 12050
    cudaError_t status = cudaGetDriverEntryPointByVersion(kName, &function, 12000, cudaEnableDefault, &result);
#else
    cudaError_t status = cudaGetDriverEntryPoint(kName, &function, cudaEnableDefault, &result);
#endif
    if (status == cudaSuccess && result == cudaDriverEntryPointSuccess) return reinterpret_cast<Encode>(function);
    cudaGetLastError();  // not an error of the launch that takes the other way
    return Encode{nullptr};
  }();
  return found;
}

// Tiles of 64 columns and `rows` rows.
template <class View>
bool describe(TensorMap& map, const View& source, int length, const SweepParams& p, unsigned rows) {
  static_assert(sizeof(CUtensorMap) == sizeof(TensorMap));
  constexpr std::uint64_t kBytes = 2;
  const cuuint64_t sizes[] = {static_cast<cuuint64_t>(source.columns), static_cast<cuuint64_t>(length),
                              static_cast<cuuint64_t>(p.heads), static_cast<cuuint64_t>(p.sequences)};
  const cuuint64_t strides[] = {static_cast<cuuint64_t>(source.time_stride) * kBytes,
                                static_cast<cuuint64_t>(source.head_stride) * kBytes,
                                static_cast<cuuint64_t>(source.batch_stride) * kBytes};
  const cuuint32_t tile[] = {64, rows, 1, 1}, steps[] = {1, 1, 1, 1};
  return encoder()(reinterpret_cast<CUtensorMap*>(&map), CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 4,
                   const_cast<void*>(source.data), sizes, strides, tile, steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
                   CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
                   CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS;
}

}  // namespace

bool driver_has_tensor_maps() {
  return encoder() != nullptr;
}

bool describe_tensors(HopperParams& params, bool columns, TileRows tile_rows) {
  const SweepParams& p = params.sweep;
  const auto rows = static_cast<unsigned>(tile_rows);
  if (encoder() == nullptr || !describe(params.q_map, params.q, p.q_length, p, rows) ||
      !describe(params.out_map, params.first, p.q_length, p, rows)) {
    return false;
  }
  return !columns || (describe(params.k_map, params.k, p.k_length, p, rows) &&
                      describe(params.v_map, params.v, p.k_length, p, rows));
}

}  // namespace cosformer::kernels::cuda
