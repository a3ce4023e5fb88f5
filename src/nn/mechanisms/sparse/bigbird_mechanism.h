// BigBird (Zaheer et al.), in blocks: the block itself and its two neighbours, first blocks that see all and are seen
// by all, and a few random blocks that are drawn once.
#pragma once

#include "nn/mechanisms/mechanism.h"

namespace cosformer::nn {

class BigBirdMechanism : public Mechanism {
 public:
  BigBirdMechanism(const AttentionConfig& config, const AttentionShape& shape);
  at::Tensor forward(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                     const at::Tensor& key_mask) override;

  // [H, blocks, random_blocks] int64: for each block of a sequence of `blocks` blocks, different blocks that it does
  // not see anyway; −1 where there are no more.
  at::Tensor random_blocks(std::int64_t blocks, std::int64_t leading) const;

  at::Tensor draws;  // [H, greatest number of blocks, random_blocks] in [0, 1), a buffer: where the choice comes from

 private:
  AttentionConfig config_;
  AttentionShape shape_;
};

}  // namespace cosformer::nn
