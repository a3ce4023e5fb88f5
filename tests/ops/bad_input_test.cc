// Every refusal of the contract: it happens before any work and names the argument, what was expected and what came.
#include <functional>
#include <limits>
#include <stdexcept>

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "cosformer/attention.h"

namespace cosformer {
namespace {

void expect_refused(const std::function<void()>& call, const std::vector<std::string>& words) {
  try {
    call();
    FAIL() << "accepted; expected a refusal with '" << words[0] << "'";
  } catch (const std::runtime_error& error) {  // and no c10::Error, whose what() goes on with a backtrace
    const std::string message = error.what();
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
    for (const std::string& word : words)
      EXPECT_NE(message.find(word), std::string::npos) << message << "\nlacks " << word;
  }
}

class BadInput : public testing::Test {
 protected:
  at::Tensor q = at::randn({2, 6, 3, 8}), k = at::randn({2, 7, 3, 8}), v = at::randn({2, 7, 3, 4});
  AttentionOptions o;

  void refuse(const std::vector<std::string>& words) {
    expect_refused([this] { attention(q, k, v, o); }, words);
  }
};

TEST_F(BadInput, Rank) {
  q = at::randn({6, 3, 8});
  refuse({"cosformer::attention", "'q'", "4 dimensions [batch, time, heads, dim]", "got 3"});
}

TEST_F(BadInput, ShapeOfKeys) {
  k = at::randn({2, 7, 3, 9});
  refuse({"'k'", "[2, time, 3, 8] (batch, heads and dim of q)", "[2, 7, 3, 9]"});
}

TEST_F(BadInput, ShapeOfValues) {
  v = at::randn({2, 6, 3, 4});
  refuse({"'v'", "[2, 7, 3, dim] (batch, time and heads of k)", "[2, 6, 3, 4]"});
}

TEST_F(BadInput, HeadDimensionOutOfRange) {
  q = at::randn({2, 6, 3, 257});
  k = at::randn({2, 7, 3, 257});
  refuse({"'q'", "head dimension 1 to 256", "257"});
  q = at::randn({2, 6, 3, 0});
  refuse({"'q'", "head dimension 1 to 256", "got 0"});
}

TEST_F(BadInput, Dtype) {
  q = q.to(at::kInt);
  refuse({"'q'", "float32, bfloat16, float16", "Int"});
}

TEST_F(BadInput, MixedDtypes) {
  v = v.to(at::kBFloat16);
  refuse({"'v'", "q's dtype Float", "BFloat16"});
}

TEST_F(BadInput, MixedDevices) {
  k = at::empty({2, 7, 3, 8}, at::TensorOptions().device(at::kMeta));
  refuse({"'k'", "q's device cpu", "meta"});
}

TEST_F(BadInput, LastDimensionNotContiguous) {
  q = at::randn({2, 6, 8, 3}).transpose(2, 3);
  refuse({"'q'", "contiguous in its last dimension", "stride 3"});
}

TEST_F(BadInput, KeysAndValuesNotContiguous) {
  k = at::randn({2, 7, 8, 3}).transpose(2, 3);
  refuse({"'k'", "contiguous in its last dimension", "stride 3"});
  k = at::randn({2, 7, 3, 8});
  v = at::randn({2, 7, 4, 3}).transpose(2, 3);
  refuse({"'v'", "contiguous in its last dimension", "stride 3"});
}

TEST_F(BadInput, Horizon) {
  for (const double horizon : {0.0, -3.0, std::numeric_limits<double>::infinity(), std::nan("")}) {
    o.horizon = horizon;
    refuse({"'horizon'", "a finite number above 0"});
  }
}

TEST_F(BadInput, PairsBeyondTheHorizon) {
  o.horizon = 5.5;
  refuse({"'horizon'", "at least 6", "farthest pair", "got 5.5", "larger horizon"});
  o.causal = true;
  o.horizon = 4;
  refuse({"at least 5"});
  o.horizon = 5;
  attention(q, k, v, o);  // a distance of M itself has weight zero and is allowed
  o.reweight = false;
  o.horizon = 1;
  attention(q, k, v, o);  // without re-weighting no weight turns negative
}

TEST_F(BadInput, PairsBeyondTheHorizonInAPackedSequence) {
  q = k = at::randn({1, 9, 1, 4});
  v = q;
  o.cu_seqlens_q = o.cu_seqlens_k = at::tensor({0, 2, 9}, at::kInt);
  o.horizon = 5;
  refuse({"at least 6", "in sequence 1"});
  o.horizon = 6;
  attention(q, k, v, o);
}

TEST_F(BadInput, Theta) {
  o.theta = at::zeros({2});
  refuse({"'theta'", "[3], one number per head", "[2]"});
  o.theta = at::zeros({3}, at::kInt);
  refuse({"'theta'", "float32", "Int"});
  o.theta = at::full({3}, std::nan(""));
  refuse({"'theta'", "finite"});
  o.theta = at::zeros({3});
  o.reweight = false;
  refuse({"'theta'", "absent when reweight is false"});
}

TEST_F(BadInput, LogDecay) {
  o.log_decay = at::zeros({3, 1});
  refuse({"'log_decay'", "[3], one number per head", "[3, 1]"});
  o.log_decay = at::tensor({-0.1F, 0.1F, 0.0F});
  refuse({"'log_decay'", "at most 0", "got 0.1", "for head 1"});
}

TEST_F(BadInput, KeyMask) {
  o.key_mask = at::ones({2, 7});
  refuse({"'key_mask'", "bool", "Float"});
  o.key_mask = at::ones({2, 6}, at::kBool);
  refuse({"'key_mask'", "[2, 7] (batch and time of k)", "[2, 6]"});
}

TEST_F(BadInput, Names) {
  o.feature_map = "gelu";
  refuse({"'feature_map'", "relu, elu1, leaky_relu, silu, identity", "'gelu'"});
  o.feature_map = "relu";
  o.normalizer = "max";
  refuse({"'normalizer'", "sum, none", "'max'"});
}

TEST_F(BadInput, Eps) {
  o.eps = 0;
  refuse({"'eps'", "at least", "got 0"});
  o.eps = 1e-40;  // zero in float32 arithmetic
  refuse({"'eps'", "at least 1.17549e-38"});
}

TEST_F(BadInput, PackedBoundaries) {
  q = k = v = at::randn({1, 6, 1, 4});
  const auto good = at::tensor({0, 2, 6}, at::kInt);
  o.cu_seqlens_k = good;
  refuse({"'cu_seqlens_q'", "given together with cu_seqlens_k"});
  o.cu_seqlens_k = at::Tensor();
  o.cu_seqlens_q = good.unsqueeze(0);
  o.cu_seqlens_k = good;
  refuse({"'cu_seqlens_q'", "[sequences + 1]"});
  o.cu_seqlens_k = at::Tensor();
  o.cu_seqlens_q = good;
  refuse({"'cu_seqlens_k'", "given together with cu_seqlens_q"});
  o.cu_seqlens_k = at::tensor({1, 2, 6}, at::kInt);
  refuse({"'cu_seqlens_k'", "starting at 0", "got 1"});
  o.cu_seqlens_k = at::tensor({0, 4, 2, 6}, at::kInt);
  refuse({"'cu_seqlens_k'", "non-decreasing", "4 then 2 at index 2"});
  o.cu_seqlens_k = at::tensor({0, 2, 5}, at::kInt);
  refuse({"'cu_seqlens_k'", "ending at 6", "got 5"});
  o.cu_seqlens_k = at::tensor({0, 6}, at::kInt);
  refuse({"'cu_seqlens_k'", "cu_seqlens_q's size [3]", "[2]"});
  o.cu_seqlens_k = at::tensor({0.0, 2.0, 6.0});
  refuse({"'cu_seqlens_k'", "int32 or int64"});
  o.cu_seqlens_k = good;
  q = k = v = at::randn({2, 6, 1, 4});
  refuse({"'q'", "batch 1 when sequences are packed", "batch 2"});
}

class BadState : public testing::Test {
 protected:
  at::Tensor x = at::randn({2, 3, 2, 4});
  AttentionState state = AttentionState::empty(2, 2, 4, 4, x.options());
  StreamOptions o{.horizon = 10};

  void refuse(const std::vector<std::string>& words) {
    expect_refused([this] { attention_with_state(x, x, x, state, o); }, words);
  }
};

TEST_F(BadState, ShapesAndTypes) {
  state.kv = at::zeros({2, 2, 2, 4, 5});
  refuse({"cosformer::attention_with_state", "'state_kv'", "[2, 2, 2, 4, 4]", "[2, 2, 2, 4, 5]"});
  state = AttentionState::empty(2, 2, 4, 4, x.options());
  state.z = state.z.to(at::kHalf);
  refuse({"'state_z'", "float32", "Half"});
  state = AttentionState::empty(2, 2, 4, 4, x.options());
  state.position = at::zeros({2}, at::kInt);
  refuse({"'position'", "int64", "Int"});
  state.position = at::zeros({3}, at::kLong);
  refuse({"'position'", "[2], one per sequence", "[3]"});
  state.position = at::full({2}, -1, at::kLong);
  refuse({"'position'", "at least 0", "-1"});
}

TEST_F(BadState, Absent) {
  state = {};
  refuse({"'state_kv'", "AttentionState::empty", "nothing"});
  state = AttentionState::empty(2, 2, 4, 4, x.options());
  state.position = at::Tensor();
  refuse({"'position'", "nothing"});
}

TEST_F(BadState, PositionThatWouldOverflow) {
  state.position = at::full({2}, std::numeric_limits<std::int64_t>::max(), at::kLong);
  refuse({"'position'", "at most 4611686018427387904"});
}

TEST_F(BadState, PastTheHorizon) {
  state.position = at::tensor({0, 9}, at::kLong);  // tokens 9, 10 and 11: the last reaches back 11
  refuse({"'horizon'", "at least 11", "got 10"});
  state.position = at::tensor({0, 8}, at::kLong);
  attention_with_state(x, x, x, state, o);
}

TEST_F(BadState, NoHorizon) {
  o.horizon = 0;
  refuse({"'horizon'", "a finite number above 0", "got 0"});
}

TEST_F(BadState, TimeOfQueriesAndKeysDiffer) {
  const auto longer = at::randn({2, 4, 2, 4});
  expect_refused([&] { attention_with_state(x, longer, longer, state, o); },
                 {"'k'", "q's time 3 when a state is carried", "got 4"});
}

}  // namespace
}  // namespace cosformer
