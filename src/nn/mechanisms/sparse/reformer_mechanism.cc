#include "nn/mechanisms/sparse/reformer_mechanism.h"

#include <algorithm>
#include <bit>
#include <limits>

#include <ATen/ATen.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <fmt/core.h>

#include "base/error.h"
#include "nn/mechanisms/sparse/block_attention.h"
#include "nn/positions/token_order.h"

namespace cosformer::nn {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// What is taken off a token's score for itself, so that it attends to itself only if there is nothing else.
constexpr double kSelfPenalty = 1e5;

// A hash of more buckets is made of two, or the projections would cost as much as attention does.
constexpr std::int64_t kMostBucketsOfOneHash = 64;

std::vector<std::int64_t> factors_of(std::int64_t buckets) {
  if (buckets < 2 || buckets % 2 != 0) {
    throw UserError(fmt::format("settings: attention.buckets must be even; got {}", buckets));
  }
  if (buckets <= kMostBucketsOfOneHash) return {buckets};
  if (buckets % 4 != 0) {
    throw UserError(fmt::format(
        "settings: attention.buckets beyond {} must be a multiple of 4, being the product of two even numbers; got {}",
        kMostBucketsOfOneHash, buckets));
  }
  std::int64_t first = 2;
  for (std::int64_t f = 2; f * f <= buckets; f += 2) {
    if (buckets % f == 0 && (buckets / f) % 2 == 0) first = f;
  }
  return {first, buckets / first};
}

// Tags of a token: its position, its bucket in this round, and its cell in each round before. A cell is
// bucket · (chunks + 2) + chunk: in its round a query has seen a key whose cell is the same or the last before.
PairRule hash_rule(std::int64_t earlier_rounds, bool causal) {
  return [=](at::Tensor& scores, const at::Tensor& queries, const at::Tensor& keys) {
    const auto query = [&](std::int64_t tag) { return queries.select(-1, tag); };
    const auto key = [&](std::int64_t tag) { return keys.select(-1, tag); };
    at::Tensor hidden = query(1).ne(key(1));
    if (causal) hidden.logical_or_(key(0).gt(query(0)));
    for (std::int64_t tag = 2; tag < 2 + earlier_rounds; ++tag) {  // a key that several rounds find counts once
      hidden.logical_or_(query(tag).eq(key(tag))).logical_or_((query(tag) - 1).eq(key(tag)));
    }
    scores.masked_fill_(hidden, -kInfinity);
    if (earlier_rounds == 0) scores.add_(key(0).eq(query(0)), -kSelfPenalty);  // later ones do not find it again
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
  const std::int64_t batch = q.size(0), time = q.size(1), heads = q.size(2), groups = batch * heads;
  const std::int64_t chunk = std::min(config_.block, time), chunks = blocks_in(time, chunk);
  const auto by_group = [&](const at::Tensor& x) { return x.reshape({groups, time, x.size(3)}); };
  const at::Tensor queries = by_group(q.transpose(1, 2)), values = by_group(v.transpose(1, 2));
  const at::ScalarType sums = q.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
  const at::Tensor in_sums = queries.to(sums);
  const at::Tensor keys = (in_sums / in_sums.norm(2, -1, true).clamp_min(1e-12)).to(q.scalar_type());

  const at::Tensor present = mask_per_head(key_mask, heads);
  at::Tensor buckets = buckets_of(q.detach().transpose(1, 2), is_training() ? at::randn_like(rotations) : rotations)
                           .reshape({groups, config_.rounds, time});
  // Absent tokens are sorted behind all others, so that those are where they would be without them.
  if (present.defined()) buckets = buckets.masked_fill(present.logical_not().unsqueeze(1), config_.buckets);

  std::vector<PartialAttention> parts;
  std::vector<at::Tensor> cells;  // [G, T] of each round so far
  for (std::int64_t round = 0; round < config_.rounds; ++round) {
    const at::Tensor bucket = buckets.select(1, round);
    const TokenOrder order(bucket * time + at::arange(time, bucket.options()));
    std::vector<at::Tensor> tags{order.token(), order.sorted(bucket)};
    for (const at::Tensor& cell : cells) tags.push_back(order.sorted(cell));
    BlockPattern pattern;
    pattern.query_block = pattern.key_block = chunk;
    pattern.key_blocks = neighbouring_blocks(chunks, 1, 0, q.device());
    pattern.query_tags = pattern.key_tags = at::stack(tags, -1).to(at::kInt);
    if (present.defined()) pattern.key_present = order.sorted(present);
    pattern.rule = hash_rule(round, shape_.causal);

    const auto sorted = [&](const at::Tensor& x) { return order.sort(x).view({batch, heads, time, x.size(2)}); };
    const PartialAttention found = block_attention(sorted(queries), sorted(keys), sorted(values), pattern);
    parts.push_back({order.restore(by_group(found.out)), order.restore(by_group(found.lse.unsqueeze(-1))).squeeze(-1)});
    cells.push_back(bucket * (chunks + 2) + order.place().floor_divide(chunk));
  }
  return merge(parts).view({batch, heads, time, v.size(3)}).transpose(1, 2);
}

}  // namespace cosformer::nn
