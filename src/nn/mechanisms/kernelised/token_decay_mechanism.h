// cosformer_plus and linear with a decay that each token decides on: causal,
//
//     w_ts = φ(q_t)·φ(k_s) cos(θ(t − s)) exp(−Σ_{s<u≤t} a_u),   a_u = min(softplus(W x_u + b) · rate, 0.9) per head
//
// where x is the block's input and b begins so that a_u is about the head's rate. The operator's decay belongs to a
// head, so queries and keys are scaled by the exponentials on either side of the sum instead, from the beginning of
// segments that are short enough for both to be ordinary numbers; the state goes from segment to segment.
#pragma once

#include <torch/nn/modules/linear.h>

#include "nn/mechanisms/kernelised/cosine_mechanism.h"

namespace cosformer::nn {

class TokenDecayMechanism : public CosineMechanism {
 public:
  TokenDecayMechanism(const AttentionConfig& config, const AttentionShape& shape);
  at::Tensor forward(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                     const at::Tensor& key_mask) override;
  at::Tensor forward_with_input(const at::Tensor& x, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                const at::Tensor& key_mask) override;
  at::Tensor forward_packed(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                            const Packing& packing) override;
  at::Tensor forward_stream(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, MechanismState& state,
                            const StreamClock& clock) override;
  at::Tensor forward_stream_with_input(const at::Tensor& x, const at::Tensor& q, const at::Tensor& k,
                                       const at::Tensor& v, MechanismState& state, const StreamClock& clock) override;

  // −a of each token, x [B, T, width] → [B, T, H], in float32 at least.
  at::Tensor log_kept(const at::Tensor& x);

  torch::nn::Linear step_proj{nullptr};

 private:
  at::Tensor scan(const at::Tensor& log_kept, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                  const at::Tensor& key_mask, AttentionState& state) const;
};

}  // namespace cosformer::nn
