#include "nn/reformer_mechanism.h"

#include <algorithm>
#include <bit>
#include <limits>

#include <ATen/ATen.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include "base/error.h"
#include "nn/block_attention.h"
#include "nn/token_order.h"

namespace cosformer::nn {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// What is taken off a token's score for itself, so that it attends to itself only if there is nothing else.
constexpr double kSelfPenalty = 1e5;

// A hash of more buckets is made of two, or the projections would cost as much as attention does.
constexpr std::int64_t kMostBucketsOfOneHash = 64;

std::vector<std::int64_t> factors_of(std::int64_t buckets) {
  if (buckets < 2 || buckets % 2 != 0) {
    throw UserError("settings: attention.buckets must be even; got " + std::to_string(buckets));
  }
  if (buckets <= kMostBucketsOfOneHash) return {buckets};
  if (buckets % 4 != 0) {
    throw UserError("settings: attention.buckets beyond " + std::to_string(kMostBucketsOfOneHash) +
                    " must be a multiple of 4, being the product of two even numbers; got " + std::to_string(buckets));
  }
  std::int64_t first = 2;
  for (std::int64_t f = 2; f * f <= buckets; f += 2) {
    if (buckets % f == 0 && (buckets / f) % 2 == 0) first = f;
  }
  return {first, buckets / first};
}

// Tags of a token: its position, its cell in this round, and, with several rounds, its cell in each. A cell is
// bucket · (chunks + 2) + chunk: a query sees a key if its cell is the same or the next.
PairRule hash_rule(std::int64_t rounds, bool causal) {
  return [=](at::Tensor& scores, const at::Tensor& queries, const at::Tensor& keys) {
    const auto sees = [&](std::int64_t tag) {
      return (queries.select(-1, tag) - keys.select(-1, tag)).bitwise_and_(~1).eq(0);
    };
    const at::Tensor i = queries.select(-1, 0), j = keys.select(-1, 0);
    at::Tensor hidden = sees(1).logical_not_();
    if (causal) hidden.logical_or_(j.gt(i));
    scores.masked_fill_(hidden, -kInfinity);
    scores.sub_(j.eq(i).to(scores.scalar_type()).mul_(kSelfPenalty));
    if (rounds == 1) return;
    // A key that several rounds find counts once.
    at::Tensor count = sees(2).to(scores.scalar_type());
    for (std::int64_t round = 1; round < rounds; ++round) count.add_(sees(2 + round));
    scores.sub_(count.clamp_min_(1).log_());
  };
}

}  // namespace

ReformerMechanism::ReformerMechanism(const AttentionConfig& config, const AttentionShape& shape)
    : config_(config), shape_(shape) {
  if (config_.buckets == 0) {
    const std::int64_t wanted = std::max<std::int64_t>(2, 2 * blocks_in(shape.max_length, config.block));
    config_.buckets = static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(wanted)));
  }
  factors_ = factors_of(config_.buckets);
  std::int64_t columns = 0;
  for (const std::int64_t factor : factors_) columns += factor / 2;
  rotations = register_buffer("rotations", at::randn({shape.heads, shape.query_dim(), config_.rounds * columns}));
}

at::Tensor ReformerMechanism::buckets_of(const at::Tensor& q, const at::Tensor& drawn) const {
  // In low precision close projections would fall together.
  c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::autocast_dispatch_keyset);
  const at::Tensor x = q.scalar_type() == at::kDouble ? q : q.to(at::kFloat);
  const at::Tensor turned = at::matmul(x, drawn.to(x.scalar_type()))
                                .view({q.size(0), q.size(1), q.size(2), config_.rounds, -1})
                                .transpose(2, 3);  // [B, H, rounds, T, columns]
  at::Tensor bucket;
  std::int64_t column = 0;
  for (const std::int64_t factor : factors_) {
    const at::Tensor part = turned.narrow(-1, column, factor / 2);
    const at::Tensor number = at::cat({part, part.neg()}, -1).argmax(-1);
    bucket = bucket.defined() ? bucket * factor + number : number;
    column += factor / 2;
  }
  return bucket;
}

at::Tensor ReformerMechanism::forward(const at::Tensor& q, const at::Tensor& /*k*/, const at::Tensor& v,
                                      const at::Tensor& key_mask) {
  const std::int64_t batch = q.size(0), time = q.size(1), heads = q.size(2), rounds = config_.rounds;
  const std::int64_t chunk = std::min(config_.block, time), chunks = blocks_in(time, chunk);
  const at::Tensor queries = q.transpose(1, 2);

  TokenOrder order;
  BlockPattern pattern;
  {
    at::NoGradGuard no_grad;
    at::Tensor bucket = buckets_of(queries, is_training() ? at::randn_like(rotations) : rotations);
    // Absent tokens are sorted behind all others, so that those are where they would be without them.
    if (key_mask.defined()) {
      bucket = bucket.masked_fill(key_mask.logical_not().view({batch, 1, 1, time}), config_.buckets);
    }
    bucket = bucket.view({batch * heads, rounds, time});
    order = TokenOrder(bucket * time + at::arange(time, bucket.options()));
    const at::Tensor cell = bucket * (chunks + 2) + order.place().floor_divide(chunk);  // [G, rounds, T]
    std::vector<at::Tensor> tags{order.token(), order.sorted(cell)};
    for (std::int64_t round = 0; rounds > 1 && round < rounds; ++round) {
      tags.push_back(order.sorted(cell.narrow(1, round, 1).expand({-1, rounds, -1})));
    }
    pattern.query_tags = at::stack(tags, -1).to(at::kInt).view({batch * heads * rounds, time, -1});
    pattern.key_tags = pattern.query_tags;
    if (key_mask.defined()) {
      const at::Tensor present = mask_per_head(key_mask, heads).unsqueeze(1).expand({-1, rounds, -1});
      pattern.key_present = order.sorted(present).view({batch * heads * rounds, time});
    }
    pattern.query_block = pattern.key_block = chunk;
    pattern.key_blocks = neighbouring_blocks(chunks, 1, 0, q.device());
    pattern.rule = hash_rule(rounds, shape_.causal);
  }

  const at::ScalarType sums = q.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
  const at::Tensor in_sums = queries.to(sums);
  const at::Tensor keys = (in_sums / in_sums.norm(2, -1, true).clamp_min(1e-12)).to(q.scalar_type());
  const auto by_round = [&](const at::Tensor& x) {
    return order.sort(x.reshape({batch * heads, time, x.size(3)})).view({batch, heads * rounds, time, x.size(3)});
  };
  const PartialAttention found =
      block_attention(by_round(queries), by_round(keys), by_round(v.transpose(1, 2)), pattern);
  const at::Tensor out = order.restore(found.out.reshape({batch * heads, rounds, time, v.size(3)}));
  const at::Tensor lse = order.restore(found.lse.reshape({batch * heads, rounds, time, 1})).squeeze(-1);
  std::vector<PartialAttention> parts;
  for (std::int64_t round = 0; round < rounds; ++round) parts.push_back({out.select(1, round), lse.select(1, round)});
  return merge(parts).view({batch, heads, time, v.size(3)}).transpose(1, 2);
}

}  // namespace cosformer::nn
