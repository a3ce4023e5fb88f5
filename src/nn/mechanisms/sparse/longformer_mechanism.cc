#include "nn/mechanisms/sparse/longformer_mechanism.h"

#include <algorithm>
#include <limits>

#include <ATen/ATen.h>

#include "nn/mechanisms/sparse/block_attention.h"

namespace cosformer::nn {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// A window of 2·reach is covered by blocks; small ones waste less at its ends, but are slower to multiply.
std::int64_t block_for(std::int64_t reach) {
  return std::max(reach / 4, std::min<std::int64_t>(reach, 32));
}

// Not farther than `reach`, or one of the first `global` tokens.
PairRule near_or_global(std::int64_t reach, std::int64_t global, bool causal) {
  return [=](at::Tensor& scores, const at::Tensor& queries, const at::Tensor& keys) {
    const at::Tensor i = queries.select(-1, 0), j = keys.select(-1, 0);
    at::Tensor hidden = (i - j).abs().gt(reach);
    if (global > 0) hidden = hidden.logical_and(j.ge(global));
    if (causal) hidden = hidden.logical_or(j.gt(i));
    scores.masked_fill_(hidden, -kInfinity);
  };
}

}  // namespace

LongformerMechanism::LongformerMechanism(const AttentionConfig& config, const AttentionShape& shape)
    : config_(config), shape_(shape) {
  if (shape.causal || shape.width == 0 || config.global == 0) return;
  const std::int64_t inner = shape.heads * shape.dim;
  const auto linear = [&](std::int64_t out) {
    return torch::nn::Linear(torch::nn::LinearOptions(shape.width, out).bias(false));
  };
  global_q = register_module("global_q", linear(inner));
  global_kv = register_module("global_kv", linear(2 * inner));
}

at::Tensor LongformerMechanism::attend_to_window(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                                 const at::Tensor& key_mask) const {
  const std::int64_t time = q.size(1), reach = config_.window / 2, global = std::min(config_.global, time);
  const std::int64_t block = std::min(block_for(reach), time);
  BlockPattern pattern;
  pattern.query_block = pattern.key_block = block;
  pattern.key_blocks = with_leading_blocks(
      neighbouring_blocks(blocks_in(time, block), 1, shape_.causal ? 0 : 1, q.device()), blocks_in(global, block));
  pattern.rule = near_or_global(reach, global, shape_.causal);
  return attend_in_blocks(q, k, v, key_mask, pattern);
}

at::Tensor LongformerMechanism::forward(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                        const at::Tensor& key_mask) {
  const at::Tensor out = attend_to_window(q, k, v, key_mask);
  const std::int64_t time = q.size(1), global = std::min(config_.global, time);
  // Causal: the first tokens see those before them, which are global too.
  if (global == 0 || shape_.causal) return out;
  return at::cat({attend_to_all(q.narrow(1, 0, global), k, v, key_mask), out.narrow(1, global, time - global)}, 1);
}

at::Tensor LongformerMechanism::forward_with_input(const at::Tensor& x, const at::Tensor& q, const at::Tensor& k,
                                                   const at::Tensor& v, const at::Tensor& key_mask) {
  if (!global_q) return forward(q, k, v, key_mask);
  const std::int64_t batch = q.size(0), time = q.size(1), global = std::min(config_.global, time);
  const at::Tensor asked = global_q->forward(x.narrow(1, 0, global)).view({batch, global, shape_.heads, shape_.dim});
  const at::Tensor kv = global_kv->forward(x).view({batch, time, 2, shape_.heads, shape_.dim});
  const at::Tensor out = attend_to_window(q, k, v, key_mask);
  return at::cat({attend_to_all(asked, kv.select(2, 0), kv.select(2, 1), key_mask).to(out.scalar_type()),
                  out.narrow(1, global, time - global)},
                 1);
}

}  // namespace cosformer::nn
