// How far classifiers read: a lengthened model is the same model, and reads what longest_input() promises.
#include "models/longest_input.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "models/classifier.h"

namespace cosformer::models {
namespace {

constexpr std::int64_t kTrained = 40;

ModelConfig config_of(const std::string& attention, const std::string& positions) {
  ModelConfig config;
  config.input = {.vocabulary = 12, .max_length = kTrained, .classes = {"a", "b", "c"}};
  config.attention.name = attention;
  config.layers = 1;
  config.width = config.feed_forward = 16;
  config.heads = 2;
  config.positions = positions;
  config.dropout = 0;
  Settings settings;
  add_settings(settings, config, false);
  apply_preset(config, settings);
  return config;
}

at::Tensor tokens_of(std::int64_t length) {
  return at::arange(length, at::kInt).mul(7).remainder(10).add(2).to(at::kInt).unsqueeze(0);
}

std::shared_ptr<Classifier> with_weights_of(const Classifier& from, const ModelConfig& config) {
  const auto model = std::make_shared<Classifier>(config);
  const at::NoGradGuard no_grad;
  auto targets = model->named_parameters();
  for (const auto& item : model->named_buffers()) targets.insert(item.key(), item.value());
  auto sources = from.named_parameters();
  for (const auto& item : from.named_buffers()) sources.insert(item.key(), item.value());
  EXPECT_EQ(targets.size(), sources.size());
  for (const auto& item : sources) {
    EXPECT_EQ(targets[item.key()].sizes(), item.value().sizes()) << item.key();
    targets[item.key()].copy_(item.value());
  }
  model->eval();
  return model;
}

TEST(LongestInput, ALengthenedModelIsTheSameModel) {
  const at::NoGradGuard no_grad;
  std::size_t lengthened_ones = 0;
  for (const std::string& name : nn::attention_names()) {
    for (const char* positions : {"none", "sinusoidal"}) {
      SCOPED_TRACE(name + ", positions " + positions);
      ModelConfig config = config_of(name, positions);
      if (name == "cosformer" || name == "cosformer_plus") config.attention.horizon = 100;
      const std::optional<std::int64_t> longest = longest_input(config);
      if (longest == kTrained) continue;
      ++lengthened_ones;
      const std::int64_t length = longest.value_or(150);
      at::manual_seed(3);
      Classifier original(config);
      original.eval();
      const auto longer = with_weights_of(original, lengthened(config, length));
      at::manual_seed(5);
      const at::Tensor before = original.forward({tokens_of(kTrained), {}});
      at::manual_seed(5);
      EXPECT_TRUE(at::equal(longer->forward({tokens_of(kTrained), {}}), before));
      const at::Tensor beyond = longer->forward({tokens_of(length), {}});
      EXPECT_TRUE(beyond.isfinite().all().item<bool>());
      EXPECT_FALSE(at::equal(beyond, before));
    }
  }
  EXPECT_GE(lengthened_ones, 20U);
}

TEST(LongestInput, IsWhatTablesAndHorizonsAllow) {
  EXPECT_EQ(longest_input(config_of("softmax", "learned")), kTrained);
  EXPECT_EQ(longest_input(config_of("softmax", "rotary")), std::nullopt);
  EXPECT_EQ(longest_input(config_of("linear", "none")), std::nullopt);
  EXPECT_EQ(longest_input(config_of("linformer", "none")), kTrained);
  ModelConfig cosine = config_of("cosformer", "none");
  EXPECT_EQ(longest_input(cosine), kTrained);
  EXPECT_NE(why_not_longer(cosine).find("attention.horizon"), std::string::npos);
  cosine.attention.horizon = 64;
  EXPECT_EQ(longest_input(cosine), 64);
  cosine.pooling = "cls";
  EXPECT_EQ(longest_input(cosine), 63);
  cosine.attention.reweight = false;
  EXPECT_EQ(longest_input(cosine), std::nullopt);
  ModelConfig image = config_of("softmax", "none");
  image.input.image_width = 8;
  image.input.image_height = 5;
  EXPECT_EQ(longest_input(image), kTrained);
}

}  // namespace
}  // namespace cosformer::models
