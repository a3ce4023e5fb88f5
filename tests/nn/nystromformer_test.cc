// Nyströmformer against its definition, sequence by sequence and segment by segment.
#include <cmath>

#include "base/error.h"
#include "mechanism_case.h"
#include "nn/mechanisms/low_rank/nystromformer_mechanism.h"

namespace cosformer::nn::testing {
namespace {

// The published iteration, as the paper writes it.
at::Tensor published_inverse(const at::Tensor& a, int iterations) {
  const at::Tensor one = at::eye(a.size(0), at::kDouble);
  at::Tensor z = a.t() / (a.abs().sum(0).max() * a.abs().sum(1).max());
  for (int at = 0; at < iterations; ++at) {
    const at::Tensor az = a.mm(z);
    z = 0.25 * z.mm(13 * one - az.mm(15 * one - az.mm(7 * one - az)));
  }
  return z;
}

// One head of one sequence without padding: q, k, v [T, D]; filter [width] or undefined.
at::Tensor of_one_head(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, std::int64_t landmarks,
                       const at::Tensor& filter) {
  const std::int64_t time = q.size(0);
  const double scale = 1 / std::sqrt(static_cast<double>(q.size(1)));
  std::vector<at::Tensor> query_marks, key_marks;
  for (std::int64_t segment = 0; segment < landmarks; ++segment) {
    std::vector<at::Tensor> queries, keys;
    for (std::int64_t t = 0; t < time; ++t) {
      if (t * landmarks / time != segment) continue;
      queries.push_back(q[t]);
      keys.push_back(k[t]);
    }
    if (queries.empty()) continue;  // fewer tokens than segments
    query_marks.push_back(at::stack(queries).mean(0));
    key_marks.push_back(at::stack(keys).mean(0));
  }
  const at::Tensor qm = at::stack(query_marks), km = at::stack(key_marks);
  const auto weights = [&](const at::Tensor& a, const at::Tensor& b) { return (a.mm(b.t()) * scale).softmax(-1); };
  at::Tensor out = weights(q, km).mm(published_inverse(weights(qm, km), 6)).mm(weights(qm, k).mm(v));
  if (!filter.defined()) return out;
  std::vector<at::Tensor> rows;
  const std::int64_t half = filter.size(0) / 2;
  for (std::int64_t t = 0; t < time; ++t) {
    at::Tensor sum = at::zeros_like(v[0]);
    for (std::int64_t w = 0; w < filter.size(0); ++w) {
      const std::int64_t from = t + w - half;
      if (from >= 0 && from < time) sum = sum + filter[w] * v[from];
    }
    rows.push_back(sum);
  }
  return out + at::stack(rows);
}

TEST(Nystromformer, IsItsDefinition) {
  for (std::uint64_t seed = 0; seed < 16; ++seed) {
    const RandomCase c(seed, seed % 2 == 1);
    SCOPED_TRACE(trace(seed, c, false));
    const bool with_window = seed % 4 < 2;
    const auto config = config_of({"model.attention=nystromformer", "attention.landmarks=5",
                                   std::string("attention.value_window=") + (with_window ? "7" : "0")});
    const auto mechanism = make<NystromformerMechanism>(config, c.shape(false));
    std::vector<at::Tensor> rows;
    for (std::int64_t b = 0; b < c.batch; ++b) {
      const std::int64_t length = c.mask.defined() ? c.lengths[b].item<std::int64_t>() : c.time;
      std::vector<at::Tensor> heads;
      for (std::int64_t h = 0; h < c.heads; ++h) {
        const auto part = [&](const at::Tensor& x) { return x[b].narrow(0, 0, length).select(1, h); };
        const at::Tensor filter = with_window ? mechanism->value_convolution[h].flatten() : at::Tensor();
        const at::Tensor out = of_one_head(part(c.q), part(c.k), part(c.v), 5, filter);
        heads.push_back(at::cat({out, at::zeros({c.time - length, c.dim}, at::kDouble)}));
      }
      rows.push_back(at::stack(heads, 1));
    }
    std::vector<at::Tensor> inputs{c.q, c.k, c.v};
    if (with_window) inputs.push_back(mechanism->value_convolution);
    expect_same(mechanism->forward(c.q, c.k, c.v, c.mask), at::stack(rows), c.mask, inputs);
    if (c.mask.defined()) expect_padding_changes_nothing(*mechanism, c);
  }
}

TEST(Nystromformer, TheIterationConvergesToTheInverse) {
  at::manual_seed(2);
  const at::Tensor a = at::randn({3, 6, 6}, at::kDouble).softmax(-1);
  EXPECT_LT(difference(iterative_inverse(a, 30), at::linalg_pinv(a)), 1e-6);
}

TEST(Nystromformer, RefusesWhatItCannotDo) {
  EXPECT_THROW(make_mechanism(config_of({"model.attention=nystromformer"}), {2, 4, 9, true}), UserError);
  EXPECT_THROW(make_mechanism(config_of({"model.attention=nystromformer", "attention.value_window=4"}), {2, 4, 9}),
               UserError);
}

}  // namespace
}  // namespace cosformer::nn::testing
