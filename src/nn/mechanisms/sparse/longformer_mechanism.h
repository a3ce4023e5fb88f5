// Longformer (Beltagy et al.): a sliding window, and first tokens that see all and are seen by all.
#pragma once

#include <torch/nn/modules/linear.h>

#include "nn/mechanisms/mechanism.h"

namespace cosformer::nn {

class LongformerMechanism : public Mechanism {
 public:
  LongformerMechanism(const AttentionConfig& config, const AttentionShape& shape);
  // Global tokens use the q, k and v given: for callers that have no input to project.
  at::Tensor forward(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                     const at::Tensor& key_mask) override;
  at::Tensor forward_with_input(const at::Tensor& x, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                const at::Tensor& key_mask) override;

  // What global tokens ask of all others: projections of their own. None in causal models, or without a width.
  torch::nn::Linear global_q{nullptr}, global_kv{nullptr};

 private:
  at::Tensor attend_to_window(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                              const at::Tensor& key_mask) const;

  AttentionConfig config_;
  AttentionShape shape_;
};

}  // namespace cosformer::nn
