// LSH attention against its rule applied token by token with the same projections.
#include "nn/mechanisms/sparse/reformer_mechanism.h"

#include <algorithm>

#include "base/error.h"
#include "nn/positions/token_order.h"
#include "sparse_reference.h"

namespace cosformer::nn {
namespace {

struct Hashed {
  std::int64_t bucket, token;
};

// The hash of one vector in one round, number by number.
std::int64_t bucket_of(const at::Tensor& x, const at::Tensor& rotations, const std::vector<std::int64_t>& factors,
                       std::int64_t round, std::int64_t rounds) {
  std::int64_t bucket = 0, column = round * (rotations.size(1) / rounds);
  for (const std::int64_t factor : factors) {
    std::vector<double> turned;
    for (std::int64_t c = 0; c < factor / 2; ++c) {
      turned.push_back(at::dot(x, rotations.select(1, column + c)).item<double>());
    }
    for (std::int64_t c = 0; c < factor / 2; ++c) turned.push_back(-turned[static_cast<std::size_t>(c)]);
    const std::int64_t most = std::max_element(turned.begin(), turned.end()) - turned.begin();
    bucket = bucket * factor + most;
    column += factor / 2;
  }
  return bucket;
}

// [B, H, T, T]: the same bucket, and the same chunk or the one before it, in any round; itself only if it sees no
// other.
at::Tensor lsh_pairs(const ReformerMechanism& m, const Drawn& d, std::int64_t chunk, std::int64_t rounds, bool causal) {
  at::Tensor visible = at::zeros({d.batch, d.heads, d.time, d.time}, at::kBool);
  auto table = visible.accessor<bool, 4>();
  for (std::int64_t b = 0; b < d.batch; ++b) {
    for (std::int64_t h = 0; h < d.heads; ++h) {
      for (std::int64_t round = 0; round < rounds; ++round) {
        std::vector<Hashed> order;
        for (std::int64_t t = 0; t < d.time; ++t) {
          if (d.mask.defined() && !d.mask[b][t].item<bool>()) continue;
          const at::Tensor rotations = m.rotations[h].to(at::kDouble);
          order.push_back({bucket_of(d.q.detach()[b][t][h], rotations, m.factors(), round, rounds), t});
        }
        std::stable_sort(order.begin(), order.end(),
                         [](const Hashed& x, const Hashed& y) { return x.bucket < y.bucket; });
        const auto count = static_cast<std::int64_t>(order.size());
        for (std::int64_t i = 0; i < count; ++i) {
          for (std::int64_t j = 0; j < count; ++j) {
            const Hashed query = order[static_cast<std::size_t>(i)], key = order[static_cast<std::size_t>(j)];
            const std::int64_t back = i / chunk - j / chunk;
            if (query.bucket != key.bucket || back < 0 || back > 1 || (causal && key.token > query.token)) continue;
            table[b][h][query.token][key.token] = true;
          }
        }
      }
      for (std::int64_t t = 0; t < d.time; ++t) {
        if (visible[b][h][t].sum().item<std::int64_t>() > 1) table[b][h][t][t] = false;
      }
    }
  }
  return visible;
}

TEST(Reformer, IsSoftmaxOverWhatAnyRoundFinds) {
  for (unsigned seed = 0; seed < 40; ++seed) {
    Draw draw(seed);
    const Drawn d = draw.inputs(40);
    SCOPED_TRACE(text_of(d, seed));
    const bool causal = draw.coin();
    const std::int64_t chunk = draw.between(1, 10), rounds = draw.between(1, 4), buckets = 2 * draw.between(1, 5);
    const auto mechanism = make_mechanism(config_of({"model.attention=reformer", option("block", chunk),
                                                     option("rounds", rounds), option("buckets", buckets)}),
                                          {d.heads, d.dim, 40, causal});
    mechanism->eval();
    const at::Tensor visible = lsh_pairs(dynamic_cast<const ReformerMechanism&>(*mechanism), d, chunk, rounds, causal);
    const at::Tensor keys = d.q / d.q.norm(2, -1, true);
    const at::Tensor rows = (d.mask.defined() ? d.mask : at::ones({d.batch, d.time}, at::kBool))
                                .unsqueeze(-1)
                                .unsqueeze(-1)
                                .to(at::kDouble);
    const at::Tensor got = mechanism->forward(d.q, d.q, d.v, d.mask);
    expect_same(got * rows, dense_attention(d.q, keys, d.v, visible, {}) * rows, {d.q, d.v});
  }
}

TEST(Reformer, ManyBucketsAreTwoHashes) {
  at::manual_seed(5);
  const auto factors = [](std::int64_t buckets) {
    return ReformerMechanism(config_of({"model.attention=reformer", option("buckets", buckets)}), {2, 4, 4096, false})
        .factors();
  };
  EXPECT_EQ(factors(0), (std::vector<std::int64_t>{8, 16}));  // two for each of 64 chunks
  EXPECT_EQ(factors(64), (std::vector<std::int64_t>{64}));
  EXPECT_EQ(factors(100), (std::vector<std::int64_t>{10, 10}));
  EXPECT_THROW(factors(7), UserError);
  EXPECT_THROW(factors(66), UserError);
  Draw draw(6);
  const Drawn d = draw.inputs(40);
  ReformerMechanism m(
      config_of({"model.attention=reformer", option("block", 8), option("rounds", 2), option("buckets", 100)}),
      {d.heads, d.dim, 40, false});
  const at::Tensor got = m.buckets_of(d.q.transpose(1, 2), m.rotations);
  for (std::int64_t round = 0; round < 2; ++round) {
    for (std::int64_t t = 0; t < d.time; ++t) {
      EXPECT_EQ(got[0][0][round][t].item<std::int64_t>(),
                bucket_of(d.q.detach()[0][t][0], m.rotations[0].to(at::kDouble), m.factors(), round, 2));
    }
  }
}

// Training draws new projections from torch's generator: the same seed gives the same, another gives others.
TEST(Reformer, TrainingHashesAnewAndRepeatably) {
  Draw draw(8);
  const auto tensor = [] { return at::randn({2, 64, 2, 8}); };
  const at::Tensor q = tensor(), v = tensor();
  ReformerMechanism m(config_of({"model.attention=reformer", option("block", 8), option("rounds", 1)}),
                      {2, 8, 64, false});
  const auto run = [&](std::uint64_t seed) {
    at::manual_seed(seed);
    return m.forward(q, q, v, {});
  };
  m.train();
  EXPECT_TRUE(run(1).equal(run(1)));
  EXPECT_FALSE(run(1).equal(run(2)));
  m.eval();
  EXPECT_TRUE(run(1).equal(run(2)));
}

TEST(Reformer, NothingComesFromTheFuture) {
  Draw draw(9);
  constexpr std::int64_t kTime = 50, kNow = 20;
  const auto tensor = [] { return at::randn({1, kTime, 2, 4}, at::kDouble).requires_grad_(); };
  const at::Tensor q = tensor(), v = tensor();
  const auto m = make_mechanism(config_of({"model.attention=reformer", option("block", 8), option("buckets", 4)}),
                                {2, 4, kTime, true});
  const at::Tensor past = m->forward(q, q, v, {}).narrow(1, 0, kNow);
  for (const at::Tensor& g : torch::autograd::grad({past}, {q, v}, {at::randn_like(past)})) {
    EXPECT_EQ(g.narrow(1, kNow, kTime - kNow).abs().max().item<double>(), 0);
    EXPECT_GT(g.narrow(1, 0, kNow).abs().max().item<double>(), 0);
  }
}

TEST(TokenOrder, SortsAndRestores) {
  at::manual_seed(10);
  const at::Tensor keys = at::rand({3, 17}).argsort(-1, false);
  const TokenOrder order(keys);
  const at::Tensor x = at::randn({3, 17, 5}, at::kDouble).requires_grad_();
  const at::Tensor sorted = order.sort(x);
  for (std::int64_t t = 0; t < 17; ++t) EXPECT_TRUE(sorted[1][keys[1][t].item<std::int64_t>()].equal(x[1][t]));
  EXPECT_TRUE(order.restore(sorted).equal(x));
  const at::Tensor factors = at::randn({3, 17, 5}, at::kDouble);
  const auto of = [&](const at::Tensor& y) { return torch::autograd::grad({(y * factors).sum()}, {x})[0]; };
  const auto naive = [&](const at::Tensor& index) { return of(x.gather(1, index.unsqueeze(-1).expand({3, 17, 5}))); };
  expect_close(of(order.sort(x)), naive(order.token()), "sort");
  expect_close(of(order.restore(x)), naive(order.place()), "restore");
}

}  // namespace
}  // namespace cosformer::nn
