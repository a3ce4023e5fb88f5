// Linear attention from finished features, on our operator: o_i = Σ_j φ(q_i)·φ(k_j) v_j / max(Σ_j φ(q_i)·φ(k_j), eps).
#pragma once

#include <ATen/core/Tensor.h>

namespace cosformer::nn {

// query_features and key_features [B, T, H, M] for any M (the operator takes 256 at a time), v [B, T, H, D]. Features
// of absent keys must be zero.
at::Tensor feature_attention(const at::Tensor& query_features, const at::Tensor& key_features, const at::Tensor& v,
                             bool causal, double eps);

}  // namespace cosformer::nn
