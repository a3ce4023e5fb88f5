// The mechanisms that run on our operator: cosformer, cosformer_plus and linear (θ = 0).
#pragma once

#include "nn/mechanism.h"

namespace cosformer::nn {

class CosineMechanism : public Mechanism {
 public:
  CosineMechanism(const AttentionConfig& config, const AttentionShape& shape);
  at::Tensor forward(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                     const at::Tensor& key_mask) override;

  // ln γ of each head, ≤ 0; undefined without a decay.
  at::Tensor log_decay() const;

  at::Tensor log_rate;  // [H], a parameter: γ = exp(−exp(log_rate)), so that it stays in (0, 1)
  at::Tensor theta;     // [H], a buffer, with spread angles

 private:
  AttentionConfig config_;
  AttentionShape shape_;
};

}  // namespace cosformer::nn
