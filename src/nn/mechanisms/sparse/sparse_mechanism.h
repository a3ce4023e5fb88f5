// The Sparse Transformer's patterns (Child et al.): strided and fixed, at a cost of N·√N.
#pragma once

#include "nn/mechanisms/mechanism.h"

namespace cosformer::nn {

class SparseMechanism : public Mechanism {
 public:
  SparseMechanism(const AttentionConfig& config, const AttentionShape& shape);
  at::Tensor forward(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                     const at::Tensor& key_mask) override;

  std::int64_t stride() const { return config_.stride; }  // l, as it was set or follows from the greatest length

 private:
  at::Tensor strided(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const at::Tensor& key_mask) const;
  at::Tensor fixed(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const at::Tensor& key_mask) const;

  AttentionConfig config_;
  AttentionShape shape_;
};

}  // namespace cosformer::nn
