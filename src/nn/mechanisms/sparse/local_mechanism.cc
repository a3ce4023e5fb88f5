#include "nn/mechanisms/sparse/local_mechanism.h"

#include <algorithm>

#include "nn/mechanisms/sparse/block_attention.h"

namespace cosformer::nn {

at::Tensor LocalMechanism::forward(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                   const at::Tensor& key_mask) {
  const std::int64_t time = q.size(1), block = std::min(config_.block, time);
  BlockPattern pattern;
  pattern.query_block = pattern.key_block = block;
  pattern.key_blocks = neighbouring_blocks(blocks_in(time, block), config_.neighbours,
                                           shape_.causal ? 0 : config_.neighbours, q.device());
  if (shape_.causal) pattern.rule = earlier_only();
  return attend_in_blocks(q, k, v, key_mask, pattern);
}

}  // namespace cosformer::nn
