// Causal linear attention with a gate per token: S_t = g_t S_{t−1} + (1 − g_t) φ(k_t) v_tᵀ, z_t alike.
#pragma once

#include <ATen/core/Tensor.h>

namespace cosformer::nn {

// query and key features [B, H, T, M], v [B, H, T, D], gate_logits [B, H, T] (g = sigmoid) →
// φ(q_t)·S_t / max(φ(q_t)·z_t, eps), [B, H, T, D]. Tokens that are not `present` ([B, T] bool, or undefined) leave the
// state as it is. Chunks of tokens by the quadratic form, the state from chunk to chunk: linear in T, differentiable.
at::Tensor gated_scan(const at::Tensor& query_features, const at::Tensor& key_features, const at::Tensor& v,
                      const at::Tensor& gate_logits, const at::Tensor& present, double eps);

}  // namespace cosformer::nn
