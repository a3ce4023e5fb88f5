// What the launches of a pass share: which problems they serve, how views become their parameters, and what happens
// when one fails.
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

// A token's row is found by 32-bit strides.
inline bool narrow(std::int64_t time_stride) {
  return time_stride < (1LL << 31) && time_stride > -(1LL << 31);
}

inline bool valid(const Problem& p) {
  const bool shapes = p.dim > 0 && p.dim <= kMaxHeadDim && p.value_dim > 0 && p.value_dim <= kMaxHeadDim &&
                      p.heads > 0 && p.sequences >= 0 && p.q_length >= 0 && p.k_length >= 0 &&
                      p.q_length < (1LL << 30) && p.k_length < (1LL << 30) && narrow(p.q.time_stride) &&
                      narrow(p.k.time_stride) && narrow(p.v.time_stride) && narrow(p.out.time_stride) &&
                      narrow(p.denominator.time_stride);
  const bool state = p.state_kv_in != nullptr || p.state_kv_out != nullptr;
  const std::int64_t query_rows = p.cu_seqlens_q == nullptr ? p.sequences * p.q_length : p.total_q;
  return shapes && p.dtype != DType::kFloat64 && (p.cu_seqlens_q == nullptr) == (p.cu_seqlens_k == nullptr) &&
         (p.state_kv_in == nullptr) == (p.state_z_in == nullptr) &&
         (p.state_kv_out == nullptr) == (p.state_z_out == nullptr) && (!state || p.causal) &&
         (p.normalizer == Normalizer::kNone || p.denominator.data != nullptr || query_rows == 0);
}

// Shapes that the warpgroup kernels may serve, and of them those of narrow heads.
inline bool warpgroup_shape(const Problem& p) {
  return p.dtype == DType::kBFloat16 && p.feature_map == FeatureMap::kRelu && p.dim <= kWarpgroupDim &&
         p.value_dim <= kWarpgroupDim;
}
inline bool narrow_shape(const Problem& p) {
  return warpgroup_shape(p) && p.dim <= kNarrowDim && p.value_dim <= kNarrowDim;
}

// Whether queries and keys are known to be the same tokens.
inline bool same_tokens(const Problem& p) {
  return p.q_length == p.k_length && p.cu_seqlens_q == p.cu_seqlens_k;
}

// Whether the kernels for Hopper's warpgroups can serve.
inline bool suits_warpgroup(const Problem& p, const Gradients* g) {
  const auto fits = [&](const auto& view, std::int64_t columns) { return aligned(view, columns, p.dtype); };
  const bool forward =
      warpgroup_shape(p) && fits(p.q, p.dim) && fits(p.k, p.dim) && fits(p.v, p.value_dim) && fits(p.out, p.value_dim);
  const bool backward = g == nullptr || (fits(g->dout, p.value_dim) && fits(g->dq, p.dim) && fits(g->dk, p.dim) &&
                                         fits(g->dv, p.value_dim));
  return forward && backward && warpgroup_available();
}

}  // namespace cosformer::kernels::cuda
