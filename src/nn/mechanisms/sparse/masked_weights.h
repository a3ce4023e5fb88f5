// Weights over keys of which some must not be seen; for mechanisms that form them.
#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

namespace cosformer::nn {

// [B or 1, 1, T or 1, T] bool, true = query may see key, to be broadcast over heads; undefined: all may. `like` gives
// the device.
at::Tensor visible_pairs(const at::Tensor& key_mask, std::int64_t time, bool causal, const at::Tensor& like);

// Softmax over the last dimension among what is visible. Finite (and meaningless) in rows where nothing is.
at::Tensor visible_softmax(const at::Tensor& scores, const at::Tensor& visible);

}  // namespace cosformer::nn
