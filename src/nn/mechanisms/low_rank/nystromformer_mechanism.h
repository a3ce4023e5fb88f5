// Nyströmformer (Xiong et al. 2021): softmax's matrix from landmarks, the means of segments of queries and keys.
#pragma once

#include "nn/mechanisms/mechanism.h"

namespace cosformer::nn {

// The published iteration towards the Moore-Penrose inverse of matrices [..., M, M].
at::Tensor iterative_inverse(const at::Tensor& a, std::int64_t iterations);

class NystromformerMechanism : public Mechanism {
 public:
  NystromformerMechanism(const AttentionConfig& config, const AttentionShape& shape);
  at::Tensor forward(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                     const at::Tensor& key_mask) override;

  at::Tensor value_convolution;  // [H, 1, width, 1], a parameter; undefined without

 private:
  AttentionConfig config_;
  AttentionShape shape_;
};

}  // namespace cosformer::nn
