// Synthesizer (Tay et al. 2021): weights that no product of queries and keys has made. "random" learns the matrix
// itself, the same for every input; "dense" computes a token's row from that token alone.
#pragma once

#include "nn/mechanisms/mechanism.h"

namespace cosformer::nn {

class SynthesizerMechanism : public Mechanism {
 public:
  SynthesizerMechanism(const AttentionConfig& config, const AttentionShape& shape);

  // q is read by "dense" only, k never.
  at::Tensor forward(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                     const at::Tensor& key_mask) override;

  at::Tensor scores;                // [H, max_length, max_length]: random
  at::Tensor row_weight, row_bias;  // [H, D, max_length], [H · max_length]: dense

 private:
  AttentionConfig config_;
  AttentionShape shape_;
};

}  // namespace cosformer::nn
