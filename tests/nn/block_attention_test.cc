// The shared piece by itself: gradients through the logarithm of the sum, parts that are merged, long sequences.
#include "nn/mechanisms/sparse/block_attention.h"

#include "sparse_reference.h"

namespace cosformer::nn {
namespace {

// Random lists, different in each group, with different blocks for queries and keys, lengths and dimensions.
TEST(BlockAttention, SeesWhatIsListed) {
  for (unsigned seed = 0; seed < 40; ++seed) {
    Draw draw(seed);
    SCOPED_TRACE("seed " + std::to_string(seed));
    const std::int64_t batch = draw.between(1, 2), heads = draw.between(1, 3), groups = batch * heads;
    const std::int64_t queries = draw.between(1, 20), keys = draw.between(1, 30);
    BlockPattern p;
    p.query_block = draw.between(1, 6);
    p.key_block = draw.between(1, 6);
    const std::int64_t query_blocks = blocks_in(queries, p.query_block), key_blocks = blocks_in(keys, p.key_block);
    const std::int64_t listed = draw.between(1, key_blocks);
    p.key_blocks = at::rand({groups, query_blocks, key_blocks}).argsort(-1, false).narrow(2, 0, listed).clone();
    p.key_blocks.masked_fill_(at::rand(p.key_blocks.sizes()).lt(0.2), -1);
    if (draw.coin()) p.key_present = at::rand({groups, keys}).lt(0.7);
    if (draw.coin()) p.rule = earlier_only();
    const auto tensor = [&](std::int64_t time, std::int64_t dim) {
      return at::randn({batch, heads, time, dim}, at::kDouble).requires_grad_();
    };
    const at::Tensor q = tensor(queries, 3), k = tensor(keys, 3), v = tensor(keys, 5);
    at::Tensor visible = at::zeros({groups, queries, keys}, at::kBool);
    for (std::int64_t g = 0; g < groups; ++g) {
      for (std::int64_t i = 0; i < queries; ++i) {
        for (std::int64_t l = 0; l < listed; ++l) {
          const std::int64_t block = p.key_blocks[g][i / p.query_block][l].item<std::int64_t>();
          for (std::int64_t j = 0; j < keys; ++j) {
            const bool is_present = !p.key_present.defined() || p.key_present[g][j].item<bool>();
            if (j / p.key_block == block && is_present && !(p.rule && j > i)) visible[g][i][j] = true;
          }
        }
      }
    }
    visible = visible.view({batch, heads, queries, keys});
    const PartialAttention got = block_attention(q, k, v, p);
    const auto flip = [](const at::Tensor& x) { return x.transpose(1, 2); };
    expect_same(flip(got.out), dense_attention(flip(q), flip(k), flip(v), visible, {}), {q, k, v});
    const at::Tensor scores = at::matmul(q, k.transpose(2, 3)) / std::sqrt(3.0);
    const at::Tensor sums = (scores.exp() * visible).sum(-1);
    EXPECT_TRUE(got.lse.eq(-std::numeric_limits<double>::infinity()).equal(sums.eq(0)));
    const at::Tensor none = sums.eq(0);
    expect_same(got.lse.masked_fill(none, 0), (sums + none).log(), {q, k});
  }
}

TEST(BlockAttention, PartsMergeToTheWhole) {
  at::manual_seed(1);
  const auto tensor = [] { return at::randn({2, 3, 24, 4}, at::kDouble).requires_grad_(); };
  const at::Tensor q = tensor(), k = tensor(), v = tensor();
  const auto with_blocks = [&](const std::vector<std::int64_t>& blocks) {
    BlockPattern p;
    p.query_block = 24;
    p.key_block = 4;
    p.key_blocks = at::tensor(blocks).view({1, 1, -1});
    p.key_present = at::arange(24).ge(8).unsqueeze(0);  // the part of blocks 0 and 1 is empty
    return block_attention(q, k, v, p);
  };
  expect_same(merge({with_blocks({0, 1}), with_blocks({4, 2}), with_blocks({3, 5})}), with_blocks({2, 3, 4, 5}).out,
              {q, k, v});
}

// More scores than are held at once, in one group and over several.
TEST(BlockAttention, ChunksAreSeamless) {
  at::manual_seed(2);
  for (const std::int64_t time : {1500, 300}) {
    const std::int64_t heads = time == 300 ? 40 : 2;
    const auto tensor = [&] { return at::randn({1, time, heads, 2}, at::kDouble).requires_grad_(); };
    const at::Tensor q = tensor(), k = tensor(), v = tensor();
    BlockPattern p;
    p.query_block = p.key_block = 50;
    p.key_blocks = at::arange(time / 50).expand({1, time / 50, time / 50});
    p.rule = earlier_only();
    expect_same(attend_in_blocks(q, k, v, {}, p),
                dense_attention(q, k, v, at::ones({1, time, time}, at::kBool).tril(), {}), {q, k, v});
  }
}

TEST(BlockAttention, RefusesASecondDerivative) {
  const at::Tensor x = at::randn({1, 8, 1, 4}).requires_grad_();
  const at::Tensor out = attend_to_all(x, x, x, {});
  const at::Tensor g = torch::autograd::grad({out.sum()}, {x}, {}, true, /*create_graph=*/true)[0];
  EXPECT_THROW(g.sum().backward(), c10::Error);
}

}  // namespace
}  // namespace cosformer::nn
