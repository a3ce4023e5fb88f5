// The module against the method written out in tensor operations, as the released implementation has it.
#include <functional>
#include <numbers>
#include <stdexcept>

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "base/error.h"
#include "cosformer/nn.h"

namespace cosformer::nn {
namespace {

// The quadratic form on projected inputs [batch, time, embed].
at::Tensor written_out(CosformerAttentionImpl& m, const at::Tensor& query, const at::Tensor& key,
                       const at::Tensor& value, double horizon, bool causal) {
  const auto heads = [&](const at::Tensor& x) {
    return x.view({x.size(0), x.size(1), m.options.num_heads, -1}).transpose(1, 2);
  };
  const auto q = heads(at::linear(query, m.q_proj->weight, m.q_proj->bias)).relu();
  const auto k = heads(at::linear(key, m.k_proj->weight, m.k_proj->bias)).relu();
  const auto v = heads(at::linear(value, m.v_proj->weight, m.v_proj->bias));
  const auto i = at::arange(query.size(1), at::kDouble), j = at::arange(key.size(1), at::kDouble);
  auto w = at::matmul(q, k.transpose(2, 3)) * at::cos((i.unsqueeze(1) - j) * (std::numbers::pi / (2 * horizon)));
  if (causal) w = w.tril();
  const auto out = at::matmul(w / w.sum(-1, true).clamp_min(1e-6), v).transpose(1, 2).flatten(2);
  return m.options.out_projection ? at::linear(out, m.out_proj->weight, m.out_proj->bias) : out;
}

void expect_close(const at::Tensor& a, const at::Tensor& b) {
  ASSERT_EQ(a.sizes(), b.sizes());
  EXPECT_LE((a - b).abs().max().item<double>(), 1e-12 * std::max(1.0, b.abs().max().item<double>()));
}

TEST(CosformerAttention, SelfAttention) {
  torch::manual_seed(1);
  for (const bool causal : {false, true}) {
    CosformerAttention m(CosformerAttentionOptions{.embed_dim = 24, .num_heads = 3, .causal = causal});
    m->to(at::kDouble);
    const auto x = at::randn({2, 11, 24}, at::kDouble);
    expect_close(m->forward(x), written_out(*m, x, x, x, 11, causal));
  }
}

TEST(CosformerAttention, CrossAttentionWithItsOwnWidths) {
  torch::manual_seed(2);
  CosformerAttention m(
      CosformerAttentionOptions{.embed_dim = 16, .num_heads = 2, .kdim = 10, .vdim = 12, .out_projection = false});
  m->to(at::kDouble);
  const auto query = at::randn({2, 5, 16}, at::kDouble), key = at::randn({2, 8, 10}, at::kDouble),
             value = at::randn({2, 8, 12}, at::kDouble);
  expect_close(m->forward(query, key, value), written_out(*m, query, key, value, 8, false));
  EXPECT_TRUE(m->out_proj.is_empty());
}

TEST(CosformerAttention, MaskAndHorizon) {
  torch::manual_seed(3);
  CosformerAttention m(CosformerAttentionOptions{.embed_dim = 8, .num_heads = 2, .horizon = 40});
  m->to(at::kDouble);
  const auto x = at::randn({1, 9, 8}, at::kDouble), shorter = x.narrow(1, 0, 6);
  const auto mask = at::arange(9).lt(6).unsqueeze(0);
  expect_close(m->forward(x, x, x, mask), written_out(*m, x, shorter, shorter, 40, false));
}

TEST(CosformerAttention, StreamEqualsTheWhole) {
  torch::manual_seed(4);
  CosformerAttention m(CosformerAttentionOptions{.embed_dim = 16, .num_heads = 4, .causal = true, .horizon = 64});
  m->to(at::kDouble);
  const auto x = at::randn({3, 20, 16}, at::kDouble);
  AttentionState state = m->empty_state(3);
  std::vector<at::Tensor> parts{m->stream(x.narrow(1, 0, 7), state)};
  for (std::int64_t t = 7; t < 20; ++t) parts.push_back(m->stream(x.narrow(1, t, 1), state));
  expect_close(at::cat(parts, 1), m->forward(x));
}

TEST(CosformerAttention, ParameterNamesOfTheReleasedImplementation) {
  CosformerAttention m(CosformerAttentionOptions{.embed_dim = 8, .num_heads = 2, .kdim = 6, .vdim = 4});
  std::map<std::string, std::vector<std::int64_t>> shapes;
  for (const auto& item : m->named_parameters()) shapes[item.key()] = item.value().sizes().vec();
  const std::map<std::string, std::vector<std::int64_t>> expected{
      {"q_proj.weight", {8, 8}}, {"q_proj.bias", {8}}, {"k_proj.weight", {8, 6}},   {"k_proj.bias", {8}},
      {"v_proj.weight", {8, 4}}, {"v_proj.bias", {8}}, {"out_proj.weight", {8, 8}}, {"out_proj.bias", {8}}};
  EXPECT_EQ(shapes, expected);
}

TEST(CosformerAttention, RefusesWhatCannotWork) {
  EXPECT_THROW(CosformerAttention(CosformerAttentionOptions{.embed_dim = 10, .num_heads = 3}), UserError);
  CosformerAttention m(CosformerAttentionOptions{.embed_dim = 8, .num_heads = 2, .causal = true});
  AttentionState state = m->empty_state(1);
  EXPECT_THROW(m->stream(at::randn({1, 1, 8}), state), UserError);
  EXPECT_THROW(CosformerAttention(CosformerAttentionOptions{.embed_dim = 8, .kdim = -1}), UserError);
}

// What nn.h promises: std::runtime_error that names the argument, in our words and without torch's backtrace.
TEST(CosformerAttention, InputsThatDoNotFitAreRefusedByName) {
  CosformerAttention m(
      CosformerAttentionOptions{.embed_dim = 8, .num_heads = 2, .kdim = 6, .causal = true, .horizon = 9});
  const auto x = at::randn({2, 5, 8}), keys = at::randn({2, 5, 6});
  const auto refuse = [](const std::function<void()>& call, const std::vector<std::string>& words) {
    try {
      call();
      ADD_FAILURE() << "accepted; expected a refusal with '" << words[0] << "'";
    } catch (const std::runtime_error& error) {
      const std::string message = error.what();
      EXPECT_EQ(message.find('\n'), std::string::npos) << message;
      for (const std::string& word : words) {
        EXPECT_NE(message.find(word), std::string::npos) << message << "\nlacks " << word;
      }
    }
  };
  refuse([&] { m->forward(x); }, {"'key'", "[batch, time, 6]", "[2, 5, 8]"});
  refuse([&] { m->forward(x[0], keys, x); }, {"'query'", "[batch, time, 8]", "[5, 8]"});
  refuse([&] { m->forward(x, keys, x.unsqueeze(0)); }, {"'value'", "[batch, time, 8]", "[1, 2, 5, 8]"});
  refuse([&] { m->forward(x.to(at::kDouble), keys, x); }, {"'query'", "dtype Float", "Double"});
  refuse([&] { m->forward(at::ones({2, 5, 8}, at::kLong), keys, x); }, {"'query'", "dtype Float", "Long"});
  refuse([&] { m->forward(x, {}, x); }, {"'key'", "nothing"});
  refuse([&] { m->forward(x, keys, at::randn({3, 5, 8})); }, {"'v'", "[2, 5, 2, dim]"});
  refuse([&] { m->forward(x, keys, x, at::ones({2, 4}, at::kBool)); }, {"'key_mask'", "[2, 5]"});
  refuse([&] { m->forward(x.to(at::kMeta), keys, x); }, {"'query'", "device cpu", "meta"});
  AttentionState state = m->empty_state(2);
  refuse([&] { m->stream(x, state); }, {"kdim and vdim must be embed_dim", "got kdim 6"});
  refuse([&] { m->empty_state(-1); }, {"at least 0", "batch -1"});
  CosformerAttention own(CosformerAttentionOptions{.embed_dim = 8, .num_heads = 2, .causal = true, .horizon = 9});
  refuse([&] { own->stream(x[0], state); }, {"'x'", "[batch, time, 8]", "[5, 8]"});
  AttentionState three = own->empty_state(3);
  refuse([&] { own->stream(x, three); }, {"'state_kv'", "[2, 2, 2, 4, 4]", "[3, 2, 2, 4, 4]"});
  AttentionState nothing;
  refuse([&] { own->stream(x, nothing); }, {"'state_kv'", "nothing"});
}

}  // namespace
}  // namespace cosformer::nn
