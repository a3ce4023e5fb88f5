// The Sparse Transformer's patterns against full matrices that say who sees whom.
#include "nn/mechanisms/sparse/sparse_mechanism.h"

#include <cstdlib>

#include "base/error.h"
#include "sparse_reference.h"

namespace cosformer::nn {
namespace {

TEST(Sparse, StridedSeesAWindowAndEveryStride) {
  for (unsigned seed = 0; seed < 60; ++seed) {
    Draw draw(seed);
    const Drawn d = draw.inputs(50);
    SCOPED_TRACE(text_of(d, seed));
    const bool causal = draw.coin();
    const std::int64_t l = draw.between(1, 12);
    const auto mechanism =
        make_mechanism(config_of({"model.attention=sparse", option("stride", l)}), {d.heads, d.dim, 50, causal});
    const at::Tensor visible = visible_pairs(d.heads, d.time, [&](std::int64_t, std::int64_t i, std::int64_t j) {
      return (std::abs(i - j) <= l || (i - j) % l == 0) && (!causal || j <= i);
    });
    expect_same(mechanism->forward(d.q, d.k, d.v, d.mask), dense_attention(d.q, d.k, d.v, visible, d.mask),
                {d.q, d.k, d.v});
  }
}

TEST(Sparse, FixedSeesItsBlockAndAPartOfTheOthers) {
  for (unsigned seed = 100; seed < 160; ++seed) {
    Draw draw(seed);
    const Drawn d = draw.inputs(50);
    SCOPED_TRACE(text_of(d, seed));
    const bool causal = draw.coin();
    const std::int64_t c = draw.between(1, 4), parts = draw.between(1, 4), l = c * parts;
    const auto mechanism = make_mechanism(
        config_of({"model.attention=sparse", "attention.variant=fixed", option("stride", l), option("summary", c)}),
        {d.heads, d.dim, 50, causal});
    const at::Tensor visible = visible_pairs(d.heads, d.time, [&](std::int64_t h, std::int64_t i, std::int64_t j) {
      const bool is_summary = j % l / c == parts - 1 - h % parts;
      return (i / l == j / l || is_summary) && (!causal || j <= i);
    });
    expect_same(mechanism->forward(d.q, d.k, d.v, d.mask), dense_attention(d.q, d.k, d.v, visible, d.mask),
                {d.q, d.k, d.v});
  }
}

TEST(Sparse, TheStrideFollowsTheGreatestLength) {
  const auto stride = [](const std::vector<std::string>& more) {
    std::vector<std::string> all{"model.attention=sparse"};
    all.insert(all.end(), more.begin(), more.end());
    return SparseMechanism(config_of(all), {2, 4, 4096, true}).stride();
  };
  EXPECT_EQ(stride({}), 64);
  EXPECT_EQ(stride({"attention.variant=fixed", option("summary", 24)}), 72);
  EXPECT_EQ(stride({option("stride", 100)}), 100);
  EXPECT_THROW(stride({"attention.variant=fixed", option("stride", 100), option("summary", 24)}), UserError);
  EXPECT_THROW(make_mechanism(config_of({"model.attention=sparse", "attention.variant=dense"}), {2, 4, 9, true}),
               UserError);
}

}  // namespace
}  // namespace cosformer::nn
