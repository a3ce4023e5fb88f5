// Reformer (Kitaev et al.): attention among tokens whose queries fall in the same bucket of a locality-sensitive hash,
// in several rounds. Queries are also the keys, at length 1. Tokens are sorted by bucket and cut in chunks; a chunk
// sees itself and the one before it.
#pragma once

#include <vector>

#include "nn/mechanisms/mechanism.h"

namespace cosformer::nn {

class ReformerMechanism : public Mechanism {
 public:
  ReformerMechanism(const AttentionConfig& config, const AttentionShape& shape);
  // k is not read.
  at::Tensor forward(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                     const at::Tensor& key_mask) override;

  // [B, H, rounds, T] int64 of q [B, H, T, D].
  at::Tensor buckets_of(const at::Tensor& q, const at::Tensor& rotations) const;

  // [H, D, rounds · Σ factor/2], a buffer: the projections that evaluation hashes with. Training draws them anew.
  at::Tensor rotations;

  // Whose product is the number of buckets: a hash of many buckets is made of two of few.
  const std::vector<std::int64_t>& factors() const { return factors_; }

 private:
  AttentionConfig config_;
  AttentionShape shape_;
  std::vector<std::int64_t> factors_;
};

}  // namespace cosformer::nn
