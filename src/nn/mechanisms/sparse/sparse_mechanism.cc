#include "nn/mechanisms/sparse/sparse_mechanism.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <ATen/ATen.h>
#include <fmt/core.h>

#include "base/error.h"
#include "nn/mechanisms/sparse/block_attention.h"

namespace cosformer::nn {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// More query rows at a time only cost memory.
constexpr std::int64_t kRowsOfAColumn = 128;

// |i − j| within `reach`, or beyond it.
PairRule distance_rule(std::int64_t reach, bool within, bool causal) {
  return [=](at::Tensor& scores, const at::Tensor& queries, const at::Tensor& keys) {
    const at::Tensor distance = queries.select(-1, 0) - keys.select(-1, 0);
    at::Tensor hidden = within ? distance.abs().gt(reach) : distance.abs().le(reach);
    if (causal) hidden = hidden.logical_or(distance.lt(0));
    scores.masked_fill_(hidden, -kInfinity);
  };
}

// [B, T, H, D] → [B, H·stride, T / stride, D]: the tokens of each residue modulo the stride, one after another.
at::Tensor columns(const at::Tensor& x, std::int64_t stride) {
  const std::int64_t rows = blocks_in(x.size(1), stride);
  return at::constant_pad_nd(x, {0, 0, 0, 0, 0, rows * stride - x.size(1)})
      .reshape({x.size(0), rows, stride, x.size(2), x.size(3)})
      .permute({0, 3, 2, 1, 4})
      .reshape({x.size(0), x.size(2) * stride, rows, x.size(3)});
}

// The way back, heads before time: [B, H·stride, rows, ...] → [B, H, T, ...].
at::Tensor heads_first(const at::Tensor& x, std::int64_t heads, std::int64_t time) {
  const std::int64_t stride = x.size(1) / heads, rows = x.size(2);
  const at::Tensor split = x.reshape({x.size(0), heads, stride, rows, -1});
  const at::Tensor joined = split.transpose(2, 3).reshape({x.size(0), heads, rows * stride, -1}).narrow(2, 0, time);
  return x.dim() == 3 ? joined.squeeze(-1) : joined;
}

}  // namespace

SparseMechanism::SparseMechanism(const AttentionConfig& config, const AttentionShape& shape)
    : config_(config), shape_(shape) {
  const bool is_fixed = config_.variant == "fixed";
  if (config_.stride == 0) {
    const auto root = static_cast<std::int64_t>(std::llround(std::sqrt(static_cast<double>(shape.max_length))));
    config_.stride = std::max<std::int64_t>(1, root);
    if (is_fixed) config_.stride = blocks_in(config_.stride, config_.summary) * config_.summary;
  }
  if (is_fixed && config_.stride % config_.summary != 0) {
    throw UserError(fmt::format(
        "settings: attention.stride must be a multiple of attention.summary in the fixed pattern; got {} and {}",
        config_.stride, config_.summary));
  }
}

at::Tensor SparseMechanism::forward(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                    const at::Tensor& key_mask) {
  return config_.variant == "fixed" ? fixed(q, k, v, key_mask) : strided(q, k, v, key_mask);
}

at::Tensor SparseMechanism::strided(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                    const at::Tensor& key_mask) const {
  const std::int64_t time = q.size(1), stride = config_.stride;
  BlockPattern near;
  near.query_block = near.key_block = std::min(stride, time);
  near.key_blocks = neighbouring_blocks(blocks_in(time, near.key_block), 1, shape_.causal ? 0 : 1, q.device());
  near.rule = distance_rule(stride, true, shape_.causal);
  near.key_present = mask_per_head(key_mask, shape_.heads);
  const PartialAttention window = block_attention(q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), near);
  const std::int64_t rows = blocks_in(time, stride);
  if (rows <= 2) return window.out.transpose(1, 2);  // nothing is farther than the stride and a multiple of it

  // Within a column the window holds the token itself and the rows next to it.
  BlockPattern column;
  column.query_block = std::min(rows, kRowsOfAColumn);
  column.key_block = rows;
  column.key_blocks =
      at::zeros({1, blocks_in(rows, column.query_block), 1}, at::TensorOptions(at::kLong).device(q.device()));
  column.rule = distance_rule(1, false, shape_.causal);
  if (key_mask.defined() || time % stride != 0) {
    const at::Tensor present =
        key_mask.defined() ? key_mask : at::ones({q.size(0), time}, q.options().dtype(at::kBool));
    const at::Tensor per_column = columns(present.unsqueeze(-1).unsqueeze(-1), stride).squeeze(-1);  // [B, l, rows]
    column.key_present = per_column.unsqueeze(1).expand({-1, shape_.heads, -1, -1}).reshape({-1, rows});
  }
  PartialAttention far = block_attention(columns(q, stride), columns(k, stride), columns(v, stride), column);
  far = {heads_first(far.out, shape_.heads, time), heads_first(far.lse, shape_.heads, time)};
  return merge({window, far}).transpose(1, 2);
}

at::Tensor SparseMechanism::fixed(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                  const at::Tensor& key_mask) const {
  const std::int64_t time = q.size(1), summary = config_.summary, parts = config_.stride / summary;
  const std::int64_t blocks = blocks_in(time, config_.stride);
  const auto options = at::TensorOptions(at::kLong).device(q.device());
  const at::Tensor own = at::arange(blocks, options).view({1, blocks, 1});
  const at::Tensor other = at::arange(blocks, options).view({1, 1, blocks});
  // Heads read different parts of a block, the first head the last one.
  const at::Tensor part = parts - 1 - at::arange(shape_.heads, options).remainder(parts).view({-1, 1, 1});
  const at::Tensor hidden = shape_.causal ? other.ge(own) : other.eq(own);
  at::Tensor lists = at::cat({(own * parts + at::arange(parts, options)).expand({shape_.heads, -1, -1}),
                              (other * parts + part).expand({-1, blocks, -1}).masked_fill(hidden, -1)},
                             2);
  lists = lists.masked_fill(lists.ge(blocks_in(time, summary)), -1);
  BlockPattern pattern;
  pattern.query_block = config_.stride;
  pattern.key_block = summary;
  pattern.key_blocks = lists.repeat({q.size(0), 1, 1});
  if (shape_.causal) pattern.rule = earlier_only();
  return attend_in_blocks(q, k, v, key_mask, pattern);
}

}  // namespace cosformer::nn
