// Classifiers in all their forms: they build from a stored config, padding does not matter, every weight is trained.
#include "models/classifier.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "base/error.h"

namespace cosformer::models {
namespace {

ModelConfig small_config(const std::vector<std::string>& assignments = {}) {
  ModelConfig config;
  config.layers = 2;
  config.width = 16;
  config.heads = 2;
  config.feed_forward = 24;
  config.dropout = 0;
  config.input = {20, 33, false, 0, 0, 1, {"a", "b", "c"}};
  Settings settings;
  add_settings(settings, config, true);
  for (const std::string& assignment : assignments) settings.assign(assignment);
  apply_preset(config, settings);
  return config;
}

Sequences tokens(std::int64_t batch, std::int64_t time) {
  return {at::randint(2, 20, {batch, time}, at::kInt), {}};
}

const std::vector<std::vector<std::string>>& variants() {
  static const std::vector<std::vector<std::string>> all{
      {"model.attention=cosformer"},
      {"model.attention=cosformer_plus", "model.causal=true"},
      {"model.attention=cosformer_plus"},
      {"model.attention=softmax", "model.positions=rotary"},
      {"model.attention=linear", "model.positions=sinusoidal", "model.pooling=cls"},
      {"model.attention=cosformer", "model.pooling=cls", "model.norm=rms", "model.activation=gated"},
      {"model.attention=cosformer_plus", "attention.head_norm=true", "attention.theta_spread=true",
       "model.norm_place=after", "model.activation=relu", "model.positions=none", "model.attention_bias=true",
       "model.head_dim=5"},
      {"model.attention=cosformer", "model.positions=grid", "input.image_width=11", "input.image_height=3"},
      {"model.attention=linear", "model.positions=grid", "model.pooling=cls", "input.image_width=3",
       "input.image_height=11"},
      {"model.attention=cosformer_plus", "attention.theta_learned=true", "model.causal=true"},
      {"model.attention=cosformer", "attention.feature_map=softmax"},
      {"model.attention=performer", "model.positions=rotary", "attention.features=24"},
      {"model.attention=performer", "model.causal=true", "model.positions=stochastic"},
      {"model.attention=linear", "model.positions=stochastic", "model.stochastic_gated=true"},
      {"model.attention=rfa", "attention.variant=arc_cosine"},
      {"model.attention=rfa", "attention.variant=gaussian_gated", "model.causal=true"},
      {"model.attention=linformer", "attention.rank=8"},
      {"model.attention=nystromformer", "attention.landmarks=6", "attention.value_window=5"},
      {"model.attention=synthesizer"},
      {"model.attention=synthesizer", "attention.variant=random", "model.causal=true"},
      {"model.attention=one_vs_each", "model.positions=rotary"},
      {"model.attention=cosformer", "model.pooled_norm=batch"},
      {"model.attention=cosformer", "model.positions=grid", "model.skip_blank=true", "input.image_width=11",
       "input.image_height=3"},
  };
  return all;
}

TEST(Classifier, PaddingChangesNothing) {
  for (const auto& variant : variants()) {
    SCOPED_TRACE(testing::PrintToString(variant));
    at::manual_seed(5);
    Classifier model(small_config(variant));
    model.eval();
    Sequences padded = tokens(2, 33);
    padded.mask = at::ones({2, 33}, at::kBool);
    padded.mask[1].narrow(0, 21, 12).fill_(false);
    const at::Tensor together = model.forward(padded);
    const at::Tensor alone = model.forward({padded.content.narrow(0, 1, 1).narrow(1, 0, 21).contiguous(), {}});
    EXPECT_LT((together[1] - alone[0]).abs().max().item<double>(), 1e-5);
  }
}

TEST(Classifier, EveryWeightGetsAGradient) {
  for (const auto& variant : variants()) {
    SCOPED_TRACE(testing::PrintToString(variant));
    at::manual_seed(6);
    Classifier model(small_config(variant));
    const at::Tensor loss = at::cross_entropy_loss(model.forward(tokens(4, 33)), at::tensor({0, 1, 2, 1}, at::kLong));
    loss.backward();
    for (const auto& item : model.named_parameters()) {
      ASSERT_TRUE(item.value().grad().defined()) << item.key();
      EXPECT_GT(item.value().grad().abs().sum().item<double>(), 0) << item.key();
    }
  }
}

TEST(Classifier, ReadsValuesAndPairs) {
  Classifier values(small_config({"input.vocabulary=0"}));
  EXPECT_EQ(values.forward({at::rand({3, 30}), {}}).sizes(), at::IntArrayRef({3, 3}));
  for (const char* features : {"both", "interaction"}) {
    Classifier pairs(small_config({"input.pairs=true", std::string("model.pair_features=") + features}));
    pairs.eval();
    const Sequences a = tokens(2, 33), b = tokens(2, 17);
    const at::Tensor forth = pairs.forward(a, b), back = pairs.forward(b, a);
    EXPECT_EQ(forth.sizes(), at::IntArrayRef({2, 3}));
    EXPECT_FALSE(at::allclose(forth, back));
  }
}

// What the classifier reads differs between examples by about one, however alike they are; one alone is read with what
// was seen before.
TEST(Classifier, PooledNormShowsSmallDifferences) {
  at::manual_seed(8);
  Classifier plain(small_config({"model.attention=cosformer"}));
  at::manual_seed(8);
  Classifier normed(small_config({"model.attention=cosformer", "model.pooled_norm=batch"}));
  Sequences alike = tokens(6, 33);
  alike.content.copy_(alike.content[0].unsqueeze(0).expand({6, 33}).clone());
  for (int row = 1; row < 6; ++row) alike.content[row][row] = alike.content[0][row + 6];
  const double before = plain.forward(alike).std(0).mean().item<double>();
  EXPECT_GT(normed.forward(alike).std(0).mean().item<double>(), 5 * before);
  const at::Tensor alone = normed.forward(tokens(1, 33));
  EXPECT_TRUE(alone.isfinite().all().item<bool>());
  normed.eval();
  const Sequences first{alike.content.narrow(0, 0, 1), {}};
  EXPECT_TRUE(at::allclose(normed.forward(alike).narrow(0, 0, 1), normed.forward(first), 1e-5, 1e-6));
}

// Both documents of all pairs are one batch.
TEST(Classifier, PooledNormOfPairsKnowsNoOrder) {
  at::manual_seed(9);
  Classifier model(small_config({"input.pairs=true", "model.pair_features=both", "model.pooled_norm=batch"}));
  const Sequences a = tokens(4, 33), b = tokens(4, 17);
  model.forward(a, b);
  const at::Tensor mean = model.named_buffers()["pooled_norm.running_mean"].clone();
  at::manual_seed(9);
  Classifier again(small_config({"input.pairs=true", "model.pair_features=both", "model.pooled_norm=batch"}));
  again.forward(b, a);
  EXPECT_TRUE(at::allclose(mean, again.named_buffers()["pooled_norm.running_mean"], 1e-5, 1e-7));
}

// What does not know of order does not notice how images are read; what does, reads the second layer's by columns.
TEST(Classifier, EverySecondLayerMayReadColumns) {
  const std::vector<std::string> image{"input.image_width=11", "input.image_height=3", "model.positions=grid"};
  const auto logits = [&](std::vector<std::string> assignments, const Sequences& input) {
    assignments.insert(assignments.end(), image.begin(), image.end());
    at::manual_seed(10);
    Classifier model(small_config(assignments));
    model.eval();
    return model.forward(input);
  };
  Sequences input = tokens(3, 33);
  for (const char* pooling : {"model.pooling=mean", "model.pooling=cls"}) {
    const auto differ = [&](const std::string& attention, const std::string& layers) {
      const at::Tensor rows = logits({attention, layers, pooling}, input);
      return !at::allclose(rows, logits({attention, layers, pooling, "model.scan=alternate"}, input), 1e-5, 1e-5);
    };
    EXPECT_FALSE(differ("model.attention=softmax", "model.layers=3"));
    EXPECT_FALSE(differ("model.attention=cosformer", "model.layers=1"));
    EXPECT_TRUE(differ("model.attention=cosformer", "model.layers=2"));
    EXPECT_TRUE(differ("model.attention=cosformer_plus", "model.layers=3"));
  }
  input.mask = at::rand({3, 33}).lt(0.7);  // it is turned with the pixels
  EXPECT_TRUE(at::allclose(logits({"model.attention=softmax", "model.scan=alternate"}, input),
                           logits({"model.attention=softmax"}, input), 1e-5, 1e-5));
  EXPECT_THROW(logits({"model.scan=alternate"}, tokens(2, 30)), UserError);
}

// Without blank pixels a model answers as with a mask over them, where the mechanism does not see the gaps.
TEST(Classifier, BlankPixelsMayBeSkipped) {
  for (const char* pooling : {"model.pooling=mean", "model.pooling=cls"}) {
    for (const char* positions : {"grid", "learned", "sinusoidal", "none"}) {
      for (const bool values : {false, true}) {
        std::vector<std::string> assignments{"model.attention=softmax", "input.image_width=11", "input.image_height=3",
                                             pooling, std::string("model.positions=") + positions};
        assignments.emplace_back(values ? "input.vocabulary=0" : "input.blank=2");
        SCOPED_TRACE(testing::PrintToString(assignments));
        Sequences images = tokens(4, 33);
        images.content = at::where(at::rand({4, 33}).lt(0.6), at::full({}, 2, at::kInt), images.content);
        images.content[1].fill_(2);  // nothing is drawn: the first pixel stays
        if (values) images.content = images.content.sub(2).to(at::kFloat);
        Sequences masked = images;
        masked.mask = images.content.ne(values ? 0 : 2);
        masked.mask[1][0] = true;
        const auto logits = [&](const Sequences& input, bool skip, bool training) {
          std::vector<std::string> all = assignments;
          all.push_back(std::string("model.skip_blank=") + (skip ? "true" : "false"));
          if (training) all.emplace_back("input.most_drawn=30");
          at::manual_seed(11);
          Classifier model(small_config(all));
          model.train(training);
          return model.forward(input);
        };
        const at::Tensor expected = logits(masked, false, false);
        EXPECT_TRUE(at::allclose(logits(images, true, false), expected, 1e-4, 1e-5));
        EXPECT_TRUE(at::allclose(logits(images, true, true), expected, 1e-4, 1e-5));
      }
    }
  }
}

TEST(ModelConfig, ReadsBackFromWhatIsStored) {
  for (const auto& variant : variants()) {
    const ModelConfig config = small_config(variant);
    EXPECT_EQ(to_toml(model_config_from_toml(to_toml(config), "stored")), to_toml(config));
  }
}

TEST(ModelConfig, RefusesWhatCannotBeBuilt) {
  EXPECT_THROW(Classifier(small_config({"model.heads=3"})), UserError);
  EXPECT_THROW(Classifier(small_config({"model.causal=true", "model.pooling=cls"})), UserError);
  EXPECT_THROW(Classifier(small_config({"input.classes=a"})), UserError);
  EXPECT_THROW(Classifier(small_config({"model.attention=cosformer", "attention.horizon=20"})), UserError);
  EXPECT_THROW(Classifier(small_config({"model.attention=cosformer", "model.positions=rotary"})), UserError);
  EXPECT_THROW(Classifier(small_config({"model.positions=grid"})), UserError);
  EXPECT_THROW(Classifier(small_config({"model.scan=alternate"})), UserError);
  EXPECT_THROW(Classifier(small_config({"model.skip_blank=true"})), UserError);
  EXPECT_THROW(Classifier(small_config({"model.skip_blank=true", "model.attention=softmax", "model.positions=rotary",
                                        "input.image_width=11", "input.image_height=3"})),
               UserError);
  EXPECT_THROW(Classifier(small_config(
                   {"model.skip_blank=true", "model.scan=alternate", "input.image_width=11", "input.image_height=3"})),
               UserError);
  EXPECT_THROW(Classifier(small_config(
                   {"model.scan=alternate", "model.causal=true", "input.image_width=11", "input.image_height=3"})),
               UserError);
  EXPECT_THROW(Classifier(small_config({"model.attention=softmax", "model.positions=stochastic"})), UserError);
  EXPECT_THROW(Classifier(small_config({"model.stochastic_sines=7"})), UserError);
  EXPECT_THROW(Classifier(small_config({"model.attention=linformer", "model.causal=true"})), UserError);
  EXPECT_THROW(Classifier(small_config({"model.attention=softmax", "attention.features=8"})), UserError);
}

}  // namespace
}  // namespace cosformer::models
