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

// softmax(q kᵀ/√d) v on [batch, heads, time, dim], by the best kernel that this libtorch has. `visible` (bool, true =
// may be attended to, to be broadcast over the scores) may be undefined.
inline at::Tensor softmax_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, bool causal,
                                    at::Tensor visible = {}, double dropout = 0) {
  if (causal && visible.defined()) {
    visible = visible.logical_and(at::ones({q.size(-2), k.size(-2)}, q.options().dtype(at::kBool)).tril());
    causal = false;
  }
#if TORCH_VERSION_MAJOR >= 2
  return at::scaled_dot_product_attention(q, k, v, visible.defined() ? Optional<at::Tensor>(visible) : std::nullopt,
                                          dropout, causal);
#else
  at::Tensor scores = at::matmul(q, k.transpose(-2, -1)) * (1.0 / std::sqrt(static_cast<double>(q.size(-1))));
  if (causal) visible = at::ones({q.size(-2), k.size(-2)}, q.options().dtype(at::kBool)).tril();
  if (visible.defined()) {
    scores = scores.masked_fill(visible.logical_not(), -std::numeric_limits<double>::infinity());
  }
  at::Tensor weights = at::softmax(scores, -1);
  if (dropout > 0) weights = at::dropout(weights, dropout, true);
  return at::matmul(weights, v);
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

// Switches autocast on a device on or off; for code that scopes it.
inline void set_autocast(c10::DeviceType device, bool enabled, at::ScalarType type) {
#if TORCH_VERSION_MAJOR > 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 4)
  at::autocast::set_autocast_enabled(device, enabled);
  at::autocast::set_autocast_dtype(device, type);
#else
  if (device == c10::DeviceType::CPU) {
    at::autocast::set_cpu_enabled(enabled);
    at::autocast::set_autocast_cpu_dtype(type);
  } else {
    at::autocast::set_enabled(enabled);
    at::autocast::set_autocast_gpu_dtype(type);
  }
#endif
}

}  // namespace cosformer::ops
