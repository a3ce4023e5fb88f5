// Cross-entropy over large vocabularies without keeping its logits.
#pragma once

#include <ATen/core/Tensor.h>

namespace cosformer::models {

inline constexpr std::int64_t kNoTarget = -100;  // nothing is to be predicted here (data/batches/lm_batches.h)

// −ln p(target) of each row: hidden [N, width], weight [V, width], targets [N] int64 → [N] float32 (float64 for
// float64); 0 where the target is kNoTarget. Logits live a chunk at a time and are made again in the backward pass.
// Differentiable in hidden and weight, once. Nothing waits for the device.
at::Tensor token_losses(const at::Tensor& hidden, const at::Tensor& weight, const at::Tensor& targets);

}  // namespace cosformer::models
