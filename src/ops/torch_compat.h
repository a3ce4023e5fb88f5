// The differences between libtorch versions (1.13 to 2.x), all of them in this one place.
#pragma once

#include <cmath>
#include <limits>
#include <optional>

#include <ATen/ATen.h>
#include <ATen/autocast_mode.h>
#include <torch/version.h>

namespace cosformer::ops {

#if TORCH_VERSION_MAJOR >= 2
inline constexpr bool kHasFusedSoftmax = true;
template <class T>
using Optional = std::optional<T>;
#else
inline constexpr bool kHasFusedSoftmax = false;
template <class T>
using Optional = c10::optional<T>;
#endif

// softmax(q kᵀ/√d) v on [batch, heads, time, dim], by the best kernel that this libtorch has.
inline at::Tensor softmax_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, bool causal) {
#if TORCH_VERSION_MAJOR >= 2
  return at::scaled_dot_product_attention(q, k, v, {}, 0.0, causal);
#else
  at::Tensor scores = at::matmul(q, k.transpose(-2, -1)) * (1.0 / std::sqrt(static_cast<double>(q.size(-1))));
  if (causal) {
    const at::Tensor hidden = at::ones({q.size(-2), k.size(-2)}, q.options().dtype(at::kBool)).triu(1);
    scores = scores.masked_fill(hidden, -std::numeric_limits<double>::infinity());
  }
  return at::matmul(at::softmax(scores, -1), v);
#endif
}

// The low precision that autocast has been set to on a device.
inline at::ScalarType autocast_type(c10::DeviceType device) {
#if TORCH_VERSION_MAJOR > 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 4)
  return at::autocast::get_autocast_dtype(device);
#else
  return device == c10::DeviceType::CPU ? at::autocast::get_autocast_cpu_dtype()
                                        : at::autocast::get_autocast_gpu_dtype();
#endif
}

}  // namespace cosformer::ops
