#include "models/language/language_model.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "lm_fixture.h"
#include "models/language/lm_losses.h"

namespace cosformer::models {
namespace {

// Twice the rounding of float32 that running the same model in float64 shows; sums of other orders differ by that much.
double rounding_of(LanguageModel& model, const at::Tensor& tokens) {
  at::NoGradGuard no_grad;
  const at::Tensor single = model.forward(tokens);
  model.to(at::kDouble);
  const double error = (model.forward(tokens) - single).abs().max().item<double>();
  model.to(at::kFloat);
  return 2 * error;
}

struct StreamCase {
  std::string attention, positions;
  std::vector<std::string> pattern = {};
  std::string name() const {
    std::string text = attention + "_" + positions;
    for (const std::string& mechanism : pattern) text += "_" + mechanism;
    return text;
  }
  LanguageModelConfig config() const {
    LanguageModelConfig c = tiny_language_model(attention, positions);
    c.model.pattern = pattern;
    if (!pattern.empty()) c.model.layers = static_cast<std::int64_t>(pattern.size());
    return c;
  }
};

std::vector<StreamCase> stream_cases() {
  return {{"cosformer", "none"},
          {"cosformer", "sinusoidal"},
          {"cosformer_plus", "none"},
          {"cosformer_plus", "learned"},
          {"linear", "learned"},
          {"softmax", "rotary"},
          {"softmax", "learned"},
          {"softmax", "none"},
          {"performer", "rotary"},
          {"cosformer_plus", "rotary", {"same", "softmax"}},
          {"softmax", "none", {"softmax", "linear", "linear"}},
          {"cosformer", "learned", {"cosformer", "softmax"}}};
}

class Streaming : public testing::TestWithParam<StreamCase> {
 protected:
  std::shared_ptr<LanguageModel> model_ = seeded_model(GetParam().config());
};

TEST_P(Streaming, AnySplitGivesTheLogitsOfTheWhole) {
  at::NoGradGuard no_grad;
  const at::Tensor tokens = random_tokens(2, 64);
  const at::Tensor whole = model_->forward(tokens);
  const double bound = rounding_of(*model_, tokens);
  for (const std::vector<std::int64_t>& split : std::vector<std::vector<std::int64_t>>{
           {64}, {1, 63}, {63, 1}, {17, 1, 1, 2, 43}, std::vector<std::int64_t>(64, 1)}) {
    LmState state = model_->empty_state(2);
    std::vector<at::Tensor> parts;
    std::int64_t begin = 0;
    for (const std::int64_t count : split) {
      parts.push_back(model_->stream(tokens.narrow(1, begin, count), state));
      begin += count;
    }
    EXPECT_LE((at::cat(parts, 1) - whole).abs().max().item<double>(), bound) << split.size() << " stretches";
    EXPECT_EQ(state.clock.consumed(), std::vector<std::int64_t>(2, 64));
  }
}

TEST_P(Streaming, GradientsThroughTheStateAreThoseOfTheWholeWindow) {
  model_->to(at::kDouble);
  const at::Tensor tokens = random_tokens(2, 40), targets = random_tokens(2, 40);
  model_->loss(tokens, targets).sum().backward();
  std::vector<at::Tensor> whole;
  for (const at::Tensor& p : model_->parameters()) whole.push_back(p.grad().clone());
  for (const at::Tensor& p : model_->parameters()) p.mutable_grad() = at::Tensor();
  LmState state = model_->empty_state(2);
  at::Tensor sum = at::zeros({}, at::kDouble);
  for (const auto& [begin, count] : {std::pair{0, 13}, {13, 1}, {14, 26}}) {
    sum = sum + model_->stream_loss(tokens.narrow(1, begin, count), targets.narrow(1, begin, count), state).sum();
  }
  sum.backward();
  const std::vector<at::Tensor> parameters = model_->parameters();
  for (std::size_t at = 0; at < whole.size(); ++at) {
    EXPECT_TRUE(at::allclose(parameters[at].grad(), whole[at], 1e-9, 1e-11)) << at;
  }
}

TEST_P(Streaming, ADetachedStateStopsGradientsAndKeepsValues) {
  const at::Tensor tokens = random_tokens(1, 20);
  LmState state = model_->empty_state(1);
  model_->stream(tokens.narrow(1, 0, 10), state);
  LmState detached = state;
  detached.detach();
  for (const auto& [name, tensor] : detached.tensors()) EXPECT_FALSE(tensor.requires_grad()) << name;
  EXPECT_TRUE(
      model_->stream(tokens.narrow(1, 10, 10), state).equal(model_->stream(tokens.narrow(1, 10, 10), detached)));
}

TEST_P(Streaming, CopiesOfAStateAreIndependent) {
  at::NoGradGuard no_grad;
  const at::Tensor tokens = random_tokens(1, 30), other = random_tokens(1, 10);
  LmState state = model_->empty_state(1);
  model_->stream(tokens.narrow(1, 0, 20), state);
  LmState copy = state;
  const at::Tensor expected = model_->stream(tokens.narrow(1, 20, 10), copy);
  LmState first = state, second = state;
  model_->stream(other, first);
  EXPECT_TRUE(model_->stream(tokens.narrow(1, 20, 10), second).equal(expected));
  LmState three = state.repeated(3);
  const at::Tensor rows = model_->stream(tokens.narrow(1, 20, 10).repeat({3, 1}), three);
  EXPECT_LE((rows - expected).abs().max().item<double>(), rounding_of(*model_, tokens));
}

TEST_P(Streaming, ARowThatIsBegunAnewForgetsAndTheOtherDoesNot) {
  at::NoGradGuard no_grad;
  const at::Tensor tokens = random_tokens(2, 30);
  LmState state = model_->empty_state(2);
  model_->stream(tokens.narrow(1, 0, 12), state);
  state.restart(1);
  EXPECT_EQ(state.clock.consumed(), (std::vector<std::int64_t>{12, 0}));
  const at::Tensor got =
      at::cat({model_->stream(tokens.narrow(1, 12, 17), state), model_->stream(tokens.narrow(1, 29, 1), state)}, 1);
  const double bound = rounding_of(*model_, tokens);
  const at::Tensor on = model_->forward(tokens.narrow(0, 0, 1)).narrow(1, 12, 18);
  const at::Tensor anew = model_->forward(tokens.narrow(0, 1, 1).narrow(1, 12, 18));
  EXPECT_LE((got.narrow(0, 0, 1) - on).abs().max().item<double>(), bound);
  EXPECT_LE((got.narrow(0, 1, 1) - anew).abs().max().item<double>(), bound);
}

TEST_P(Streaming, PackedDocumentsAreAsEachAlone) {
  if (GetParam().attention == "performer") {
    EXPECT_THROW(model_->forward(random_tokens(1, 4), at::tensor({0, 2, 4})), UserError);
    return;
  }
  at::NoGradGuard no_grad;
  const at::Tensor tokens = random_tokens(2, 32);
  const std::vector<std::int32_t> ends{0, 5, 6, 32, 50, 64};
  const at::Tensor packed = model_->forward(tokens, at::tensor(ends)).view({64, -1});
  const double bound = rounding_of(*model_, tokens);
  for (std::size_t at = 0; at + 1 < ends.size(); ++at) {
    const at::Tensor alone = model_->forward(tokens.view({1, 64}).narrow(1, ends[at], ends[at + 1] - ends[at]))[0];
    EXPECT_LE((packed.narrow(0, ends[at], alone.size(0)) - alone).abs().max().item<double>(), bound) << at;
  }
}

INSTANTIATE_TEST_SUITE_P(All, Streaming, testing::ValuesIn(stream_cases()),
                         [](const auto& info) { return info.param.name(); });

TEST(LanguageModel, LearnedAnglesStreamToo) {
  at::NoGradGuard no_grad;
  LanguageModelConfig config = tiny_language_model("cosformer_plus");
  config.model.attention.theta_learned = true;
  const auto model = seeded_model(config);
  const at::Tensor tokens = random_tokens(2, 50);
  LmState state = model->empty_state(2);
  const at::Tensor parts =
      at::cat({model->stream(tokens.narrow(1, 0, 20), state), model->stream(tokens.narrow(1, 20, 1), state),
               model->stream(tokens.narrow(1, 21, 29), state)},
              1);
  EXPECT_LE((parts - model->forward(tokens)).abs().max().item<double>(), rounding_of(*model, tokens));
}

TEST(LanguageModel, BeyondTheHorizonIsAnErrorThatSaysTheLimit) {
  at::NoGradGuard no_grad;
  for (const StreamCase& c : {StreamCase{"cosformer", "none"},
                              {"softmax", "rotary"},
                              {"softmax", "learned"},
                              {"linear", "rotary", {"linear", "softmax"}},
                              {"linear", "none", {"linear", "cosformer"}}}) {
    const auto model = seeded_model(c.config());
    ASSERT_EQ(model->longest_stream(), 64) << c.name();
    LmState state = model->empty_state(1);
    model->stream(random_tokens(1, 64), state);
    try {
      model->stream(random_tokens(1, 1), state);
      FAIL() << c.name();
    } catch (const UserError& error) {
      EXPECT_NE(std::string(error.what()).find("horizon is 64"), std::string::npos) << error.what();
    }
    EXPECT_EQ(state.clock.consumed().front(), 64);
  }
  EXPECT_FALSE(seeded_model(tiny_language_model("softmax"))->longest_stream().has_value());
  EXPECT_FALSE(seeded_model(tiny_language_model("linear"))->longest_stream().has_value());
}

TEST(LanguageModel, MechanismsWithoutAStateRefuse) {
  const auto model = seeded_model(tiny_language_model("local"));
  try {
    model->empty_state(1);
    FAIL();
  } catch (const UserError& error) {
    EXPECT_NE(std::string(error.what()).find("cosformer_plus"), std::string::npos) << error.what();
  }
}

TEST(LanguageModel, StateOfLinearAttentionDoesNotGrow) {
  at::NoGradGuard no_grad;
  const auto bytes_after = [](const std::string& attention, std::int64_t tokens) {
    const auto model = seeded_model(tiny_language_model(attention));
    LmState state = model->empty_state(1);
    model->stream(random_tokens(1, tokens), state);
    return state.bytes();
  };
  EXPECT_EQ(bytes_after("cosformer_plus", 2), bytes_after("cosformer_plus", 60));
  EXPECT_EQ(bytes_after("softmax", 60), 2U * 2 * 60 * 24 * sizeof(float));
}

TEST(TokenLosses, EqualCrossEntropyWithItsGradients) {
  const at::Tensor hidden = at::randn({10, 6}, at::kDouble).requires_grad_();
  const at::Tensor weight = at::randn({11, 6}, at::kDouble).requires_grad_();
  at::Tensor targets = at::randint(11, {10}, at::kLong);
  targets[3] = kNoTarget;
  const at::Tensor scale = at::rand({10}, at::kDouble);
  const at::Tensor expected =
      at::nll_loss(at::log_softmax(at::matmul(hidden, weight.t()), -1), targets, {}, at::Reduction::None, kNoTarget);
  const at::Tensor got = token_losses(hidden, weight, targets);
  EXPECT_TRUE(at::allclose(got, expected, 1e-12, 1e-12));
  (expected * scale).sum().backward();
  const at::Tensor d_hidden = hidden.grad().clone(), d_weight = weight.grad().clone();
  hidden.grad().zero_();
  weight.grad().zero_();
  (got * scale).sum().backward();
  EXPECT_TRUE(at::allclose(hidden.grad(), d_hidden, 1e-12, 1e-12));
  EXPECT_TRUE(at::allclose(weight.grad(), d_weight, 1e-12, 1e-12));
}

TEST(AdaptiveVocabulary, LossesAreThoseOfItsProbabilitiesWhichSumToOne) {
  for (const bool tied : {true, false}) {
    LanguageModelConfig config = tiny_language_model("cosformer_plus");
    config.language = {tied, {"4", "9"}, 2};
    const auto model = seeded_model(config);
    model->to(at::kDouble);
    const at::Tensor tokens = random_tokens(2, 40);
    at::Tensor targets = random_tokens(2, 40);
    targets[0][3] = kNoTarget;
    const at::Tensor hidden = model->hidden(tokens), logits = model->logits(hidden);
    EXPECT_TRUE(at::allclose(logits.exp().sum(-1), at::ones({2, 40}, at::kDouble), 1e-12, 1e-12));
    const at::Tensor expected =
        logits.gather(2, targets.clamp_min(0).unsqueeze(2)).squeeze(2).neg() * (targets != kNoTarget).to(at::kDouble);
    EXPECT_TRUE(at::allclose(model->losses(hidden, targets), expected, 1e-12, 1e-12));
    const auto gradients = [&](const at::Tensor& losses) {
      std::vector<at::Tensor> result;
      for (const at::Tensor& p : model->parameters()) p.mutable_grad() = at::Tensor();
      losses.sum().backward();
      for (const at::Tensor& p : model->parameters()) result.push_back(p.grad().clone());
      return result;
    };
    const std::vector<at::Tensor> got = gradients(model->loss(tokens, targets));
    const at::Tensor again = model->forward(tokens).gather(2, targets.clamp_min(0).unsqueeze(2)).squeeze(2).neg();
    const std::vector<at::Tensor> wanted = gradients(again * (targets != kNoTarget).to(at::kDouble));
    for (std::size_t at = 0; at < got.size(); ++at) EXPECT_TRUE(at::allclose(got[at], wanted[at], 1e-9, 1e-11)) << at;
  }
}

TEST(LanguageConfig, ReadsBackAndRefusesWhatCannotBe) {
  LanguageModelConfig config = tiny_language_model("cosformer_plus");
  config.tokenizer = "abc";
  config.language.cutoffs = {"5", "9"};
  const LanguageModelConfig back = language_model_config_from_toml(to_toml(config), "x");
  EXPECT_EQ(to_toml(back), to_toml(config));
  EXPECT_EQ(cutoffs_of(back.language, 17), (std::vector<std::int64_t>{5, 9}));
  config.language.cutoffs = {"5", "5"};
  EXPECT_THROW(require_possible(config), UserError);
  config.language.cutoffs = {"17"};
  EXPECT_THROW(require_possible(config), UserError);
}

}  // namespace
}  // namespace cosformer::models
