// What the launches of a pass share: how views become their parameters, and what happens when one fails.
#pragma once

#include <cstdint>

#include <cuda_runtime_api.h>

#include "kernels/cuda/attention.h"
#include "kernels/cuda/warpgroup_params.h"

namespace cosformer::kernels::cuda {

// Remembers the first failure and makes everything after it a no-op.
class Launches {
 public:
  explicit Launches(cudaStream_t stream) : stream_(stream) {}
  template <class Launch>
  void add(Launch launch) {
    if (status_ == cudaSuccess) status_ = launch(stream_);
  }
  cudaError_t status() const { return status_; }

 private:
  cudaStream_t stream_;
  cudaError_t status_ = cudaSuccess;
};

// Whether rows start at multiples of 16 bytes and are whole multiples of 16 bytes.
template <class AnyView>
bool aligned(const AnyView& view, std::int64_t columns, DType dtype) {
  const std::int64_t unit = 16 / static_cast<std::int64_t>(size_of(dtype));
  return reinterpret_cast<std::uintptr_t>(view.data) % 16 == 0 && view.batch_stride % unit == 0 &&
         view.time_stride % unit == 0 && view.head_stride % unit == 0 && columns % unit == 0;
}

template <class AnyView>
TileSource source(const AnyView& view, std::int64_t columns, DType dtype) {
  return {view.data,
          view.batch_stride,
          view.head_stride,
          static_cast<int>(view.time_stride),
          static_cast<int>(columns),
          aligned(view, columns, dtype) ? 1 : 0};
}

// Whether the kernels for Hopper's warpgroups can serve.
inline bool suits_warpgroup(const Problem& p, const Gradients* g) {
  const auto fits = [&](const auto& view, std::int64_t columns) { return aligned(view, columns, p.dtype); };
  const bool forward = p.dtype == DType::kBFloat16 && p.dim <= kWarpgroupDim && p.value_dim <= kWarpgroupDim &&
                       p.feature_map == FeatureMap::kRelu && fits(p.q, p.dim) && fits(p.k, p.dim) &&
                       fits(p.v, p.value_dim) && fits(p.out, p.value_dim);
  const bool backward = g == nullptr || (fits(g->dout, p.value_dim) && fits(g->dq, p.dim) && fits(g->dk, p.dim) &&
                                         fits(g->dv, p.value_dim));
  return forward && backward && warpgroup_available();
}

}  // namespace cosformer::kernels::cuda
