// Sinkhorn attention against its definition, block by block.
#include "nn/mechanisms/sparse/sinkhorn_mechanism.h"

#include "base/error.h"
#include "sparse_reference.h"

namespace cosformer::nn {
namespace {

struct Options {
  std::int64_t block, iterations;
  double temperature;
};

// One sequence, one head: x [T, W], q, k, v [T, D] of tokens in whole blocks, present [T] as 0 or 1.
at::Tensor one_head(const SinkhornMechanism& m, const Options& o, std::int64_t head, const at::Tensor& x,
                    const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const std::vector<bool>& present) {
  const std::int64_t blocks = q.size(0) / o.block, most = m.out_weight.size(2), dim = q.size(1);
  const auto is_there = [&](std::int64_t block, std::int64_t place) {
    return present[static_cast<std::size_t>(block * o.block + place)];
  };
  std::vector<std::int64_t> there;  // blocks with a token
  std::vector<bool> place_is_there(static_cast<std::size_t>(o.block), false);
  for (std::int64_t block = 0; block < blocks; ++block) {
    bool any = false;
    for (std::int64_t place = 0; place < o.block; ++place) {
      if (!is_there(block, place)) continue;
      any = true;
      place_is_there[static_cast<std::size_t>(place)] = true;
    }
    if (any) there.push_back(block);
  }
  // exp of the network's answers, then rows and columns divided by their sums in turn.
  std::vector<at::Tensor> rows;
  for (const std::int64_t block : there) {
    at::Tensor sum = at::zeros({x.size(1)}, at::kDouble);
    for (std::int64_t place = 0; place < o.block; ++place) {
      if (is_there(block, place)) sum = sum + x[block * o.block + place];
    }
    const at::Tensor hidden = (at::matmul(sum, m.in_weight[head]) + m.in_bias.narrow(0, head * dim, dim)).relu();
    const at::Tensor answer = at::matmul(hidden, m.out_weight[head]) + m.out_bias.narrow(0, head * most, most);
    std::vector<at::Tensor> row;
    for (const std::int64_t other : there) row.push_back((answer[other] / o.temperature).exp());
    rows.push_back(at::stack(row));
  }
  at::Tensor out = at::zeros_like(q);
  if (there.empty()) return out;
  at::Tensor order = at::stack(rows);
  for (std::int64_t turn = 0; turn < o.iterations; ++turn) {
    order = order / order.sum(1, true);
    order = order / order.sum(0, true);
  }
  std::vector<at::Tensor> outputs(static_cast<std::size_t>(q.size(0)), at::zeros({dim}, at::kDouble));
  for (std::size_t number = 0; number < there.size(); ++number) {
    const std::int64_t own = there[number] * o.block;
    std::vector<at::Tensor> keys, values;
    for (std::int64_t place = 0; place < o.block; ++place) {
      if (is_there(there[number], place)) {
        keys.push_back(k[own + place]);
        values.push_back(v[own + place]);
      }
      if (!place_is_there[static_cast<std::size_t>(place)]) continue;
      at::Tensor key = at::zeros({dim}, at::kDouble), value = at::zeros({dim}, at::kDouble);
      for (std::size_t other = 0; other < there.size(); ++other) {
        if (!is_there(there[other], place)) continue;
        const at::Tensor share = order[static_cast<std::int64_t>(number)][static_cast<std::int64_t>(other)];
        key = key + share * k[there[other] * o.block + place];
        value = value + share * v[there[other] * o.block + place];
      }
      keys.push_back(key);
      values.push_back(value);
    }
    for (std::int64_t place = 0; place < o.block; ++place) {
      const at::Tensor scores = at::matmul(at::stack(keys), q[own + place]) / std::sqrt(static_cast<double>(dim));
      outputs[static_cast<std::size_t>(own + place)] = at::matmul(at::softmax(scores, 0), at::stack(values));
    }
  }
  return at::stack(outputs);
}

TEST(Sinkhorn, IsSoftmaxOverTheBlockAndASortedOne) {
  for (unsigned seed = 0; seed < 30; ++seed) {
    Draw draw(seed);
    const Drawn d = draw.inputs(24);
    SCOPED_TRACE(text_of(d, seed));
    const Options o{draw.between(1, 7), draw.between(1, 6), 0.5 + 0.25 * static_cast<double>(draw.between(0, 3))};
    const std::int64_t width = draw.between(1, 5);
    AttentionShape shape{d.heads, d.dim, 24, false};
    shape.width = width;
    SinkhornMechanism m(
        config_of({"model.attention=sinkhorn", option("block", o.block), option("iterations", o.iterations),
                   "attention.temperature=" + std::to_string(o.temperature)}),
        shape);
    m.to(at::kDouble);
    m.eval();
    {
      at::NoGradGuard no_grad;
      m.in_bias.normal_();
      m.out_bias.normal_();
    }
    const at::Tensor x = at::randn({d.batch, d.time, width}, at::kDouble).requires_grad_();
    const std::int64_t whole = (d.time + o.block - 1) / o.block * o.block;
    const auto pad = [&](const at::Tensor& t) { return at::constant_pad_nd(t, {0, 0, 0, whole - d.time}); };
    const at::Tensor mask = d.mask.defined() ? d.mask : at::ones({d.batch, d.time}, at::kBool);
    std::vector<at::Tensor> batches;
    for (std::int64_t b = 0; b < d.batch; ++b) {
      std::vector<bool> present(static_cast<std::size_t>(whole), false);
      for (std::int64_t t = 0; t < d.time; ++t) present[static_cast<std::size_t>(t)] = mask[b][t].item<bool>();
      std::vector<at::Tensor> heads;
      for (std::int64_t h = 0; h < d.heads; ++h) {
        const auto one = [&](const at::Tensor& t) { return pad(t[b].select(1, h)); };
        heads.push_back(one_head(m, o, h, pad(x[b]), one(d.q), one(d.k), one(d.v), present).narrow(0, 0, d.time));
      }
      batches.push_back(at::stack(heads, 1));
    }
    const at::Tensor rows = mask.unsqueeze(-1).unsqueeze(-1).to(at::kDouble);  // absent queries may get anything
    const at::Tensor got = m.forward_with_input(x, d.q, d.k, d.v, d.mask);
    EXPECT_TRUE(at::isfinite(got).all().item<bool>());
    expect_same(got * rows, at::stack(batches) * rows,
                {x, d.q, d.k, d.v, m.in_weight, m.in_bias, m.out_weight, m.out_bias});
  }
}

TEST(Sinkhorn, BalancesRowsAndColumns) {
  at::manual_seed(4);
  const at::Tensor order = sinkhorn_balance(at::randn({3, 9, 9}, at::kDouble), 60).exp();
  EXPECT_LT((order.sum(-1) - 1).abs().max().item<double>(), 1e-6);
  EXPECT_LT((order.sum(-2) - 1).abs().max().item<double>(), 1e-6);
}

TEST(Sinkhorn, TrainingAddsNoiseThatRepeats) {
  at::manual_seed(5);
  const auto tensor = [] { return at::randn({2, 32, 2, 4}); };
  const at::Tensor q = tensor(), k = tensor(), v = tensor();
  SinkhornMechanism m(config_of({"model.attention=sinkhorn", option("block", 4)}), {2, 4, 32, false});
  const auto run = [&](std::uint64_t seed) {
    at::manual_seed(seed);
    return m.forward(q, k, v, {});
  };
  EXPECT_TRUE(run(1).equal(run(1)));
  EXPECT_FALSE(run(1).equal(run(2)));
  m.eval();
  EXPECT_TRUE(run(1).equal(run(2)));
}

TEST(Sinkhorn, Refuses) {
  EXPECT_THROW(make_mechanism(config_of({"model.attention=sinkhorn"}), {2, 4, 60, true}), UserError);
  EXPECT_THROW(make_mechanism(config_of({"model.attention=sinkhorn", option("iterations", 0)}), {2, 4, 60, false}),
               UserError);
  EXPECT_THROW(require_positions_possible(config_of({"model.attention=sinkhorn"}), "rotary"), UserError);
}

}  // namespace
}  // namespace cosformer::nn
