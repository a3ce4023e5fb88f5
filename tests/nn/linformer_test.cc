// Linformer against its definition.
#include <cmath>

#include "base/error.h"
#include "mechanism_case.h"
#include "nn/mechanisms/low_rank/linformer_mechanism.h"

namespace cosformer::nn::testing {
namespace {

TEST(Linformer, IsItsDefinition) {
  for (std::uint64_t seed = 0; seed < 16; ++seed) {
    const RandomCase c(seed, seed % 2 == 1);
    SCOPED_TRACE(trace(seed, c, false));
    const auto mechanism =
        make<LinformerMechanism>(config_of({"model.attention=linformer", "attention.rank=6"}), c.shape(false));
    at::Tensor e = mechanism->length_proj.narrow(1, 0, c.time);
    ASSERT_EQ(e.size(0), std::min<std::int64_t>(6, c.time + 3));
    const at::Tensor there =
        c.mask.defined() ? c.mask.to(at::kDouble).unsqueeze(-1).unsqueeze(-1) : at::ones({1}, at::kDouble);
    const at::Tensor keys = at::einsum("rt,bthd->brhd", {e, c.k * there});
    const at::Tensor values = at::einsum("rt,bthd->brhd", {e, c.v * there});
    const at::Tensor scores = at::einsum("bihd,brhd->bhir", {c.q, keys}) / std::sqrt(static_cast<double>(c.dim));
    const at::Tensor expected = at::einsum("bhir,brhd->bihd", {scores.softmax(-1), values});
    expect_same(mechanism->forward(c.q, c.k, c.v, c.mask), expected, c.mask, {c.q, c.k, c.v, mechanism->length_proj});
    if (c.mask.defined()) expect_padding_changes_nothing(*mechanism, c);
  }
}

TEST(Linformer, RefusesWhatItCannotDo) {
  const auto config = config_of({"model.attention=linformer"});
  EXPECT_THROW(make_mechanism(config, {2, 4, 9, true}), UserError);
  EXPECT_THROW(make_mechanism(config_of({"model.attention=linformer", "attention.rank=0"}), {2, 4, 9, false}),
               UserError);
  const at::Tensor longer = at::randn({1, 10, 2, 4});
  EXPECT_ANY_THROW(make_mechanism(config, {2, 4, 9, false})->forward(longer, longer, longer, {}));
}

}  // namespace
}  // namespace cosformer::nn::testing
