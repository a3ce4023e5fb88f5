#include "nn/mechanisms/sparse/bigbird_mechanism.h"

#include <algorithm>

#include <ATen/ATen.h>

#include "nn/mechanisms/sparse/block_attention.h"

namespace cosformer::nn {

BigBirdMechanism::BigBirdMechanism(const AttentionConfig& config, const AttentionShape& shape)
    : config_(config), shape_(shape) {
  draws = register_buffer("draws",
                          at::rand({shape.heads, blocks_in(shape.max_length, config.block), config.random_blocks}));
}

at::Tensor BigBirdMechanism::random_blocks(std::int64_t blocks, std::int64_t leading) const {
  const at::Tensor u = draws.narrow(1, 0, blocks);
  // Blocks that are not to be drawn, ascending; what is not in the sequence counts as `blocks`, past every draw.
  at::Tensor taken = with_leading_blocks(neighbouring_blocks(blocks, 1, 1, draws.device()), leading);
  taken = std::get<0>(taken.masked_fill(taken.lt(0), blocks).sort(-1)).expand({shape_.heads, -1, -1});
  std::vector<at::Tensor> chosen;
  for (std::int64_t draw = 0; draw < config_.random_blocks; ++draw) {
    const at::Tensor free = blocks - taken.lt(blocks).sum(-1);
    at::Tensor block = (u.select(2, draw) * free).floor().to(at::kLong);
    block = at::minimum(block, free - 1);
    for (std::int64_t at = 0; at < taken.size(2); ++at) block = block + block.ge(taken.select(2, at)).to(at::kLong);
    const at::Tensor none = free.eq(0);
    chosen.push_back(block.masked_fill(none, -1));
    taken = std::get<0>(at::cat({taken, block.masked_fill(none, blocks).unsqueeze(-1)}, 2).sort(-1));
  }
  return at::stack(chosen, 2);
}

at::Tensor BigBirdMechanism::forward(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                     const at::Tensor& key_mask) {
  const std::int64_t batch = q.size(0), time = q.size(1), block = std::min(config_.block, time);
  const std::int64_t blocks = blocks_in(time, block);
  const std::int64_t leading = std::min(blocks, blocks_in(config_.global, config_.block));
  BlockPattern pattern;
  pattern.query_block = pattern.key_block = block;
  pattern.key_blocks = with_leading_blocks(neighbouring_blocks(blocks, 1, 1, q.device()), leading);
  if (config_.random_blocks > 0) {
    const at::Tensor lists =
        at::cat({pattern.key_blocks.expand({shape_.heads, -1, -1}), random_blocks(blocks, leading)}, 2);
    pattern.key_blocks = lists.repeat({batch, 1, 1});
  }
  const at::Tensor out = attend_in_blocks(q, k, v, key_mask, pattern);
  if (leading == 0) return out;
  const std::int64_t global = std::min(time, leading * block);
  return at::cat({attend_to_all(q.narrow(1, 0, global), k, v, key_mask), out.narrow(1, global, time - global)}, 1);
}

}  // namespace cosformer::nn
