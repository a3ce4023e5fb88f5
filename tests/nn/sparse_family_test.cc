// What all sparse mechanisms share, in a block: padding, causality, empty rows, low precision, gradients, stored state.
#include <ATen/autocast_mode.h>

#include "nn/multi_head_attention.h"
#include "ops/torch_compat.h"
#include "sparse_reference.h"

namespace cosformer::nn {
namespace {

struct Member {
  std::vector<std::string> assignments;
  bool can_be_causal = true;
  bool is_causal_to_the_bit = true;  // what is seen does not depend on later tokens
};

const std::vector<Member>& members() {
  static const std::vector<Member> all{
      {{"model.attention=local", option("block", 5), option("neighbours", 1)}},
      {{"model.attention=longformer", option("window", 6), option("global", 2)}},
      {{"model.attention=bigbird", option("block", 4), option("global", 4)}, false},
      {{"model.attention=sparse", option("stride", 5)}},
      {{"model.attention=sparse", "attention.variant=fixed", option("stride", 6), option("summary", 2)}},
      {{"model.attention=reformer", option("block", 6), option("rounds", 3), option("buckets", 4)}, true, false},
      {{"model.attention=sinkhorn", option("block", 4)}, false},
  };
  return all;
}

constexpr std::int64_t kWidth = 12, kHeads = 2, kDim = 4, kLongest = 48;

std::shared_ptr<MultiHeadAttention> block_of(const Member& member, bool causal) {
  const auto attention = std::make_shared<MultiHeadAttention>(
      MultiHeadConfig{kWidth, {kHeads, kDim, kLongest, causal}, true, false}, config_of(member.assignments, causal));
  attention->eval();
  return attention;
}

template <class Function>
void for_each_member(Function function) {
  for (const Member& member : members()) {
    for (const bool causal : {false, true}) {
      if (causal && !member.can_be_causal) continue;
      SCOPED_TRACE(member.assignments[0] + " " + member.assignments[1] + (causal ? " causal" : ""));
      function(member, causal);
    }
  }
}

TEST(SparseFamily, AMaskedSequenceIsTheShorterOne) {
  at::manual_seed(1);
  for_each_member([](Member member, bool causal) {
    if (member.assignments[0] == "model.attention=bigbird") member.assignments.push_back(option("random_blocks", 0));
    const auto attention = block_of(member, causal);
    attention->to(at::kDouble);
    for (const std::int64_t present : {1, 4, 17, 30, 41}) {
      const at::Tensor x = at::randn({2, 41, kWidth}, at::kDouble);
      const at::Tensor mask = at::arange(41).lt(present).unsqueeze(0).expand({2, 41});
      expect_close(attention->forward(x, mask).narrow(1, 0, present),
                   attention->forward(x.narrow(1, 0, present).contiguous(), {}), std::to_string(present));
    }
  });
}

TEST(SparseFamily, TheFutureDoesNotTouchThePast) {
  at::manual_seed(2);
  for_each_member([](const Member& member, bool causal) {
    if (!causal || !member.is_causal_to_the_bit) return;
    const auto attention = block_of(member, causal);
    const at::Tensor x = at::randn({2, 41, kWidth});
    for (std::int64_t now = 1; now < 41; now += 3) {
      at::Tensor other = x.clone();
      other.narrow(1, now, 41 - now).normal_();
      const at::Tensor a = attention->forward(x, {}), b = attention->forward(other, {});
      EXPECT_TRUE(a.narrow(1, 0, now).equal(b.narrow(1, 0, now))) << now;
      EXPECT_FALSE(a.select(1, now).equal(b.select(1, now))) << now;
    }
  });
}

TEST(SparseFamily, NothingToSeeGivesZero) {
  at::manual_seed(3);
  for_each_member([](const Member& member, bool causal) {
    const auto mechanism = make_mechanism(config_of(member.assignments, causal), {kHeads, kDim, kLongest, causal});
    const auto tensor = [] { return at::randn({2, 33, kHeads, kDim}).requires_grad_(); };
    const at::Tensor q = tensor(), k = tensor(), v = tensor();
    at::Tensor mask = at::ones({2, 33}, at::kBool);
    mask[1].fill_(false);
    const at::Tensor out = mechanism->forward(q, k, v, mask);
    EXPECT_EQ(out[1].abs().max().item<double>(), 0);
    EXPECT_GT(out[0].abs().min().item<double>(), 0);
    out.square().sum().backward();
    for (const at::Tensor& x : {q, k, v}) {
      if (!x.grad().defined()) continue;  // keys of shared queries
      EXPECT_TRUE(at::isfinite(x.grad()).all().item<bool>());
      EXPECT_EQ(x.grad()[1].abs().max().item<double>(), 0);
    }
  });
}

TEST(SparseFamily, EveryParameterIsTrained) {
  at::manual_seed(4);
  for_each_member([](const Member& member, bool causal) {
    const auto attention = block_of(member, causal);
    attention->train();
    attention->forward(at::randn({2, 41, kWidth}), {}).square().sum().backward();
    for (const auto& item : attention->named_parameters()) {
      const at::Tensor gradient = item.value().grad();
      ASSERT_TRUE(gradient.defined()) << item.key();
      EXPECT_TRUE(at::isfinite(gradient).all().item<bool>()) << item.key();
      EXPECT_GT(gradient.abs().max().item<double>(), 0) << item.key();
    }
  });
}

TEST(SparseFamily, WeightsAndBuffersAreAllThereIs) {
  for_each_member([](const Member& member, bool causal) {
    at::manual_seed(5);
    const auto first = block_of(member, causal);
    at::manual_seed(6);
    const auto second = block_of(member, causal);
    const at::Tensor x = at::randn({2, 41, kWidth});
    EXPECT_FALSE(first->forward(x, {}).equal(second->forward(x, {})));
    at::NoGradGuard no_grad;
    for (auto& item : second->named_parameters()) item.value().copy_(first->named_parameters()[item.key()]);
    for (auto& item : second->named_buffers()) item.value().copy_(first->named_buffers()[item.key()]);
    EXPECT_TRUE(first->forward(x, {}).equal(second->forward(x, {})));
  });
}

// bfloat16 autocast: scores, sums and outputs are made in float32 from rounded inputs, so the result is as near to the
// exact one as rounding inputs, weights and outputs allows: no farther than twice what softmax attention loses.
TEST(SparseFamily, Bfloat16IsAsGoodAsSoftmaxInBfloat16) {
  at::manual_seed(7);
  double softmax_error = 0;
  const auto error_of = [](const std::vector<std::string>& assignments, bool causal) {
    const auto mechanism = make_mechanism(config_of(assignments, causal), {kHeads, 32, kLongest, causal});
    mechanism->eval();
    double most = 0;
    for (int repeat = 0; repeat < 5; ++repeat) {
      const auto tensor = [] { return at::randn({2, 41, kHeads, 32}).to(at::kBFloat16); };
      const at::Tensor q = tensor(), k = tensor(), v = tensor();
      const at::Tensor exact = mechanism->forward(q.to(at::kDouble), k.to(at::kDouble), v.to(at::kDouble), {});
      ops::set_autocast(at::kCPU, true, at::kBFloat16);
      const at::Tensor out = mechanism->forward(q, k, v, {});
      ops::set_autocast(at::kCPU, false, at::kBFloat16);
      EXPECT_EQ(out.scalar_type(), at::kBFloat16);
      most = std::max(most, (out.to(at::kDouble) - exact).abs().max().item<double>());
    }
    return most;
  };
  softmax_error = error_of({"model.attention=softmax"}, false);
  for_each_member([&](const Member& member, bool causal) {
    // Sorting rounds its mixtures, and a changed bucket changes what is seen: those are checked for being finite.
    if (member.assignments[0] == "model.attention=sinkhorn" || member.assignments[0] == "model.attention=reformer") {
      EXPECT_TRUE(std::isfinite(error_of(member.assignments, causal)));
      return;
    }
    EXPECT_LT(error_of(member.assignments, causal), 2 * softmax_error);
  });
}

TEST(SparseFamily, RunsUnderAutocastWithGradients) {
  at::manual_seed(8);
  for_each_member([](const Member& member, bool causal) {
    const auto attention = block_of(member, causal);
    attention->train();
    const at::Tensor x = at::randn({2, 41, kWidth}).requires_grad_();
    ops::set_autocast(at::kCPU, true, at::kBFloat16);
    const at::Tensor loss = attention->forward(x, {}).to(at::kFloat).square().sum();
    ops::set_autocast(at::kCPU, false, at::kBFloat16);
    at::autocast::clear_cache();
    loss.backward();
    EXPECT_TRUE(at::isfinite(x.grad()).all().item<bool>());
    for (const auto& item : attention->named_parameters()) EXPECT_TRUE(item.value().grad().defined()) << item.key();
  });
}

}  // namespace
}  // namespace cosformer::nn
