#include "nn/mechanisms/sparse/sinkhorn_mechanism.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <ATen/ATen.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include "base/error.h"
#include "nn/mechanisms/sparse/block_attention.h"

namespace cosformer::nn {
namespace {

// [B, T, ...] with zeros after its end up to `length`.
at::Tensor padded(const at::Tensor& x, std::int64_t length) {
  if (x.size(1) == length) return x;
  std::vector<std::int64_t> rest = x.sizes().vec();
  rest[1] = length - x.size(1);
  return at::cat({x, at::zeros(rest, x.options())}, 1);
}

}  // namespace

at::Tensor sinkhorn_balance(at::Tensor logits, std::int64_t iterations) {
  for (std::int64_t turn = 0; turn < iterations; ++turn) {
    logits = logits - logits.logsumexp(-1, true);
    logits = logits - logits.logsumexp(-2, true);
  }
  return logits;
}

SinkhornMechanism::SinkhornMechanism(const AttentionConfig& config, const AttentionShape& shape)
    : config_(config), shape_(shape) {
  if (config.iterations < 1) {
    throw UserError("settings: attention.iterations must be at least 1 for \"sinkhorn\", which balances its sorting");
  }
  const std::int64_t width = shape.width > 0 ? shape.width : shape.heads * shape.dim;
  const std::int64_t blocks = blocks_in(shape.max_length, config.block);
  const auto weight = [&](std::int64_t in, std::int64_t out) {
    return at::randn({shape.heads, in, out}) / std::sqrt(static_cast<double>(in));
  };
  in_weight = register_parameter("in_weight", weight(width, shape.dim));
  in_bias = register_parameter("in_bias", at::zeros({shape.heads * shape.dim}));
  out_weight = register_parameter("out_weight", weight(shape.dim, blocks));
  out_bias = register_parameter("out_bias", at::zeros({shape.heads * blocks}));
}

at::Tensor SinkhornMechanism::sorting(const at::Tensor& sums, const at::Tensor& block_present) const {
  // Logarithms of a doubly stochastic matrix need their digits.
  c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::autocast_dispatch_keyset);
  const std::int64_t blocks = sums.size(1), heads = shape_.heads;
  const auto cast = [&](const at::Tensor& x) { return x.to(sums.scalar_type()); };
  const at::Tensor hidden =
      at::relu(at::matmul(sums.unsqueeze(1), cast(in_weight)) + cast(in_bias).view({heads, 1, -1}));
  at::Tensor logits = at::matmul(hidden, cast(out_weight).narrow(2, 0, blocks)) +
                      cast(out_bias).view({heads, 1, -1}).narrow(2, 0, blocks);
  if (is_training()) {
    const at::Tensor u = at::rand_like(logits).clamp_(1e-7, 1 - 1e-7);
    logits = logits - u.log().neg().log();  // Gumbel noise
  }
  logits = logits / config_.temperature;
  if (block_present.defined()) {
    // Absent blocks stay where they are, which leaves the balance of the others alone.
    const at::Tensor both = block_present.unsqueeze(1).logical_and(block_present.unsqueeze(2)).unsqueeze(1);
    const at::Tensor own = at::eye(blocks, logits.options()).to(at::kBool).logical_and(both.logical_not());
    logits = logits.masked_fill(both.logical_not(), -std::numeric_limits<double>::infinity()).masked_fill(own, 0);
  }
  return sinkhorn_balance(logits, config_.iterations).exp();
}

at::Tensor SinkhornMechanism::forward(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                      const at::Tensor& key_mask) {
  return forward_with_input(k.flatten(2), q, k, v, key_mask);
}

at::Tensor SinkhornMechanism::forward_with_input(const at::Tensor& x, const at::Tensor& q, const at::Tensor& k,
                                                 const at::Tensor& v, const at::Tensor& key_mask) {
  const std::int64_t batch = q.size(0), time = q.size(1), block = config_.block, blocks = blocks_in(time, block);
  const auto zeroed = [&](const at::Tensor& t) {
    if (!key_mask.defined()) return t;
    const at::Tensor mask = t.dim() == 3 ? key_mask.unsqueeze(-1) : key_mask.unsqueeze(-1).unsqueeze(-1);
    return t.masked_fill(mask.logical_not(), 0);
  };
  const auto in_blocks = [&](const at::Tensor& t) {  // [B, T, H, D] → [B, H, blocks, block · D]
    return padded(zeroed(t), blocks * block).transpose(1, 2).reshape({batch, t.size(2), blocks, -1});
  };
  const at::ScalarType sum_type = x.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
  const at::Tensor sums = padded(zeroed(x), blocks * block).view({batch, blocks, block, -1}).sum(2, false, sum_type);

  at::Tensor present, block_present;  // of tokens, [B, blocks, block], and of blocks
  if (key_mask.defined() || time % block != 0) {
    const at::Tensor mask = key_mask.defined() ? key_mask : at::ones({batch, time}, q.options().dtype(at::kBool));
    present = padded(mask, blocks * block).view({batch, blocks, block});
    if (key_mask.defined()) block_present = present.any(-1);
  }
  const at::Tensor order = sorting(sums, block_present);

  const auto own_and_sorted = [&](const at::Tensor& t) {  // [B, H, 2 · blocks · block, D]
    const at::Tensor own = in_blocks(t);
    const at::Tensor sorted = at::matmul(order.to(own.scalar_type()), own).to(own.scalar_type());
    return at::cat({own, sorted}, 2).view({batch, t.size(2), 2 * blocks * block, t.size(3)});
  };
  BlockPattern pattern;
  pattern.query_block = pattern.key_block = block;
  const at::Tensor number = at::arange(blocks, at::TensorOptions(at::kLong).device(q.device()));
  pattern.key_blocks = at::stack({number, number + blocks}, 1).unsqueeze(0);
  if (present.defined()) {
    // A token of a sorted block is a mixture of those at its place in all blocks: it is there if one of them is.
    const at::Tensor mixed = present.any(1, true).expand_as(present);
    pattern.key_present = mask_per_head(at::cat({present, mixed}, 1).flatten(1), shape_.heads);
  }
  return block_attention(q.transpose(1, 2), own_and_sorted(k), own_and_sorted(v), pattern).out.transpose(1, 2);
}

}  // namespace cosformer::nn
