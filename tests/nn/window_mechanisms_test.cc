// local, longformer and bigbird against full matrices that say who sees whom.
#include <cstdlib>
#include <set>

#include "base/error.h"
#include "nn/mechanisms/sparse/bigbird_mechanism.h"
#include "nn/mechanisms/sparse/longformer_mechanism.h"
#include "nn/multi_head_attention.h"
#include "sparse_reference.h"

namespace cosformer::nn {
namespace {

TEST(Local, IsSoftmaxWithinBlocks) {
  for (unsigned seed = 0; seed < 40; ++seed) {
    Draw draw(seed);
    const Drawn d = draw.inputs(40);
    SCOPED_TRACE(text_of(d, seed));
    const bool causal = draw.coin();
    const std::int64_t block = draw.between(1, 12), neighbours = draw.between(0, 2);
    const auto mechanism =
        make_mechanism(config_of({"model.attention=local", option("block", block), option("neighbours", neighbours)}),
                       {d.heads, d.dim, 40, causal});
    const at::Tensor visible = visible_pairs(d.heads, d.time, [&](std::int64_t, std::int64_t i, std::int64_t j) {
      return std::abs(i / block - j / block) <= neighbours && (!causal || j <= i);
    });
    expect_same(mechanism->forward(d.q, d.k, d.v, d.mask), dense_attention(d.q, d.k, d.v, visible, d.mask),
                {d.q, d.k, d.v});
  }
}

TEST(Longformer, IsSoftmaxOverAWindowAndGlobalTokens) {
  for (unsigned seed = 100; seed < 150; ++seed) {
    Draw draw(seed);
    const Drawn d = draw.inputs(40);
    SCOPED_TRACE(text_of(d, seed));
    const bool causal = draw.coin();
    const std::int64_t window = draw.between(2, 16), global = draw.between(0, 9);
    const auto mechanism =
        make_mechanism(config_of({"model.attention=longformer", option("window", window), option("global", global)}),
                       {d.heads, d.dim, 40, causal});
    const at::Tensor visible = visible_pairs(d.heads, d.time, [&](std::int64_t, std::int64_t i, std::int64_t j) {
      return (std::abs(i - j) <= window / 2 || j < global || i < global) && (!causal || j <= i);
    });
    expect_same(mechanism->forward(d.q, d.k, d.v, d.mask), dense_attention(d.q, d.k, d.v, visible, d.mask),
                {d.q, d.k, d.v});
  }
}

TEST(Longformer, GlobalTokensAskWithProjectionsOfTheirOwn) {
  Draw draw(7);
  constexpr std::int64_t kWidth = 6, kHeads = 2, kDim = 3, kTime = 19, kGlobal = 2;
  AttentionShape shape{kHeads, kDim, 40, false};
  shape.width = kWidth;
  LongformerMechanism mechanism(config_of({"model.attention=longformer", option("window", 6), option("global", 2)}),
                                shape);
  mechanism.to(at::kDouble);
  const at::Tensor x = at::randn({2, kTime, kWidth}, at::kDouble).requires_grad_();
  const auto tensor = [&] { return at::randn({2, kTime, kHeads, kDim}, at::kDouble).requires_grad_(); };
  const at::Tensor q = tensor(), k = tensor(), v = tensor(), mask = at::rand({2, kTime}).lt(0.7);
  const at::Tensor window = visible_pairs(
      1, kTime, [](std::int64_t, std::int64_t i, std::int64_t j) { return std::abs(i - j) <= 3 || j < kGlobal; });
  const auto heads = [&](const at::Tensor& y) { return y.view({2, kTime, kHeads, kDim}); };
  const at::Tensor gq = heads(at::matmul(x, mechanism.global_q->weight.t()));
  const at::Tensor w = mechanism.global_kv->weight;
  const at::Tensor gk = heads(at::matmul(x, w.narrow(0, 0, kHeads * kDim).t()));
  const at::Tensor gv = heads(at::matmul(x, w.narrow(0, kHeads * kDim, kHeads * kDim).t()));
  const at::Tensor all = dense_attention(gq, gk, gv, at::ones({1, kTime, kTime}, at::kBool), mask);
  const at::Tensor expected = at::cat(
      {all.narrow(1, 0, kGlobal), dense_attention(q, k, v, window, mask).narrow(1, kGlobal, kTime - kGlobal)}, 1);
  expect_same(mechanism.forward_with_input(x, q, k, v, mask), expected, {x, q, k, v, mechanism.global_q->weight, w});
}

TEST(BigBird, IsSoftmaxOverNeighboursGlobalAndRandomBlocks) {
  for (unsigned seed = 200; seed < 250; ++seed) {
    Draw draw(seed);
    const Drawn d = draw.inputs(60);
    SCOPED_TRACE(text_of(d, seed));
    const std::int64_t block = draw.between(1, 6), global = draw.between(0, 9), random = draw.between(0, 3);
    const auto mechanism = make_mechanism(config_of({"model.attention=bigbird", option("block", block),
                                                     option("global", global), option("random_blocks", random)}),
                                          {d.heads, d.dim, 60, false});
    const std::int64_t blocks = (d.time + block - 1) / block, leading = (global + block - 1) / block;
    const at::Tensor chosen =
        random == 0 ? at::zeros({d.heads, blocks, 0}, at::kLong)
                    : dynamic_cast<BigBirdMechanism&>(*mechanism).random_blocks(blocks, std::min(leading, blocks));
    const auto choice = chosen.accessor<std::int64_t, 3>();
    const at::Tensor visible = visible_pairs(d.heads, d.time, [&](std::int64_t h, std::int64_t i, std::int64_t j) {
      const std::int64_t from = i / block, to = j / block;
      if (std::abs(from - to) <= 1 || from < leading || to < leading) return true;
      for (std::int64_t r = 0; r < random; ++r) {
        if (choice[h][from][r] == to) return true;
      }
      return false;
    });
    expect_same(mechanism->forward(d.q, d.k, d.v, d.mask), dense_attention(d.q, d.k, d.v, visible, d.mask),
                {d.q, d.k, d.v});
  }
}

// As many as asked for as long as there are any, all different, none that is seen anyway; every such block is drawn.
TEST(BigBird, RandomBlocksAreOthers) {
  at::manual_seed(3);
  constexpr std::int64_t kLeading = 2, kRandom = 3;
  BigBirdMechanism mechanism(config_of({"model.attention=bigbird", option("block", 4), option("global", 8)}),
                             {50, 4, 160, false});
  for (const std::int64_t blocks : {1, 2, 5, 6, 7, 8, 40}) {
    const at::Tensor chosen = mechanism.random_blocks(blocks, std::min(kLeading, blocks));
    std::set<std::int64_t> ever;
    for (std::int64_t h = 0; h < 50; ++h) {
      for (std::int64_t i = 0; i < blocks; ++i) {
        std::set<std::int64_t> free, drawn;
        for (std::int64_t j = kLeading; j < blocks; ++j) {
          if (std::abs(i - j) > 1) free.insert(j);
        }
        for (std::int64_t r = 0; r < kRandom; ++r) {
          const std::int64_t block = chosen[h][i][r].item<std::int64_t>();
          if (block < 0) continue;
          EXPECT_TRUE(free.count(block) == 1 && drawn.insert(block).second) << blocks << " " << block;
        }
        EXPECT_EQ(drawn.size(), std::min<std::size_t>(kRandom, free.size()));
        if (i == 0) ever.insert(drawn.begin(), drawn.end());
      }
    }
    EXPECT_EQ(ever.size(), static_cast<std::size_t>(std::max<std::int64_t>(0, blocks - kLeading)));
  }
}

TEST(BigBird, CannotBeCausal) {
  EXPECT_THROW(make_mechanism(config_of({"model.attention=bigbird"}), {2, 4, 60, true}), UserError);
}

}  // namespace
}  // namespace cosformer::nn
