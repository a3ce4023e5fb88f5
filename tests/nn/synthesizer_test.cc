// Synthesizer against its definition.
#include "base/error.h"
#include "mechanism_case.h"
#include "nn/mechanisms/low_rank/synthesizer_mechanism.h"
#include "nn/multi_head_attention.h"

namespace cosformer::nn::testing {
namespace {

TEST(Synthesizer, IsItsDefinition) {
  for (std::uint64_t seed = 0; seed < 24; ++seed) {
    const bool causal = seed % 2 == 1, dense = seed % 3 > 0;
    const RandomCase c(seed, seed % 4 >= 2);
    SCOPED_TRACE(trace(seed, c, causal));
    const auto config =
        config_of({"model.attention=synthesizer", std::string("attention.variant=") + (dense ? "dense" : "random")});
    const auto mechanism = make<SynthesizerMechanism>(config, c.shape(causal));
    at::Tensor rows;
    if (dense) {
      at::NoGradGuard no_grad;
      mechanism->row_bias.normal_();
    }
    if (dense) {
      rows = at::einsum("bihd,hdj->bhij", {c.q.clamp_min(0), mechanism->row_weight.narrow(2, 0, c.time)}) +
             mechanism->row_bias.view({1, c.heads, 1, c.time + 3}).narrow(3, 0, c.time);
    } else {
      rows = mechanism->scores.narrow(1, 0, c.time).narrow(2, 0, c.time).unsqueeze(0);
    }
    const at::Tensor expected =
        attend(rows.exp().expand({c.batch, c.heads, c.time, c.time}), c.v, c.mask, causal, 1e-300);
    std::vector<at::Tensor> inputs{c.v};
    if (dense) {
      inputs.insert(inputs.end(), {c.q, mechanism->row_weight, mechanism->row_bias});
    } else {
      inputs.push_back(mechanism->scores);
    }
    expect_same(mechanism->forward(c.q, c.k, c.v, c.mask), expected, c.mask, inputs);
    if (c.mask.defined()) expect_padding_changes_nothing(*mechanism, c);
  }
}

// A block makes only the projections that are read.
TEST(Synthesizer, NoWeightIsIdle) {
  for (const auto& [variant, projections] : {std::pair{"dense", 2}, {"random", 1}}) {
    MultiHeadAttention attention({8, {2, 4, 9, false}, true}, config_of({"model.attention=synthesizer",
                                                                         std::string("attention.variant=") + variant}));
    EXPECT_EQ(attention.qkv_proj->weight.size(0), projections * 8);
    attention.forward(at::randn({2, 9, 8}), {}).square().sum().backward();
    for (const auto& item : attention.named_parameters()) {
      EXPECT_GT(item.value().grad().abs().sum().item<double>(), 0) << variant << " " << item.key();
    }
  }
}

}  // namespace
}  // namespace cosformer::nn::testing
