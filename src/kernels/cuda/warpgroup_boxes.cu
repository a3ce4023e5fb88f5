// Forward passes of heads of up to 64, their rows fetched in boxes.
#include <cuda.h>

#include "kernels/cuda/warpgroup_joint.cuh"

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

// Boxes of 64 columns and `rows` rows.
template <class View>
bool describe(TileMap& map, const View& source, int length, const SweepParams& p, unsigned rows) {
  static_assert(sizeof(CUtensorMap) == sizeof(TileMap));
  constexpr std::uint64_t kBytes = 2;
  const cuuint64_t sizes[] = {static_cast<cuuint64_t>(source.columns), static_cast<cuuint64_t>(length),
                              static_cast<cuuint64_t>(p.heads), static_cast<cuuint64_t>(p.sequences)};
  const cuuint64_t strides[] = {static_cast<cuuint64_t>(source.time_stride) * kBytes,
                                static_cast<cuuint64_t>(source.head_stride) * kBytes,
                                static_cast<cuuint64_t>(source.batch_stride) * kBytes};
  const cuuint32_t box[] = {64, rows, 1, 1}, steps[] = {1, 1, 1, 1};
  return encoder()(reinterpret_cast<CUtensorMap*>(&map), CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 4,
                   const_cast<void*>(source.data), sizes, strides, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
                   CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
                   CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS;
}

}  // namespace

bool describe_boxes(Mode mode, WarpgroupParams& params, unsigned rows) {
  const SweepParams& p = params.sweep;
  const auto positive = [](const auto& source) {
    return source.time_stride > 0 && source.head_stride > 0 && source.batch_stride > 0;
  };
  const bool known = p.reversed == 0 && p.cu_seqlens_q == nullptr && p.key_mask == nullptr && p.q_length > 0 &&
                     p.k_length > 0 && positive(params.q) && positive(params.k) && positive(params.v) &&
                     positive(params.first) && encoder() != nullptr;
  if (!known || !describe(params.q_map, params.q, p.q_length, p, rows) ||
      !describe(params.out_map, params.first, p.q_length, p, rows)) {
    return false;
  }
  return mode == Mode::kApply || (describe(params.k_map, params.k, p.k_length, p, rows) &&
                                  describe(params.v_map, params.v, p.k_length, p, rows));
}

cudaError_t launch_narrow_boxes(Mode mode, const WarpgroupParams& params, cudaStream_t stream) {
  return launch_warpgroup_mode<WarpgroupPass::kForward, WarpgroupFetch::kBoxes>(mode, params, stream);
}

cudaError_t launch_narrow_pair_boxes(const WarpgroupParams& first, const WarpgroupParams& second, cudaStream_t stream) {
  return launch_pair_of<WarpgroupPass::kForward, Mode::kSum, WarpgroupPass::kForward, WarpgroupFetch::kCopies,
                        WarpgroupFetch::kBoxes>(first, second, stream);
}

std::optional<cudaError_t> launch_narrow_jointly_boxes(const WarpgroupParams& params, cudaStream_t stream) {
  const auto launch = [&]<WarpgroupExtra kExtra>() {
    using enum WarpgroupPass;
    return launch_joint_kernel<WarpgroupSweep<kForward, Mode::kSum, WarpgroupExtra::kNothing, WarpgroupFetch::kCopies>,
                               WarpgroupSweep<kForward, Mode::kRun, kExtra, WarpgroupFetch::kBoxes>>(params, stream);
  };
  return params.kept == nullptr ? launch.operator()<WarpgroupExtra::kNothing>()
                                : launch.operator()<WarpgroupExtra::kKeepsStates>();
}

}  // namespace cosformer::kernels::cuda
