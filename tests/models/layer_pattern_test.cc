// Hybrids: which attention each layer has, what is refused, and that such models stream, count and store as others do.
#include "models/layer_pattern.h"

#include <algorithm>
#include <random>

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "lm_fixture.h"
#include "models/classifier.h"
#include "models/longest_input.h"
#include "models/model_size.h"
#include "models/text_to_text/encoder_decoder.h"
#include "nn/mechanisms/attention_options.h"

namespace cosformer::models {
namespace {

using Names = std::vector<std::string>;

// As a run has it: settings, then what they imply.
ModelConfig config_of(const Names& assignments) {
  ModelConfig config;
  config.input = {.vocabulary = 17, .max_length = 48, .classes = {"a", "b", "c"}};
  config.layers = 4;
  config.width = 24;
  config.heads = 3;
  config.feed_forward = 32;
  config.positions = "none";
  config.dropout = 0;
  Settings settings;
  add_settings(settings, config, false);
  for (const std::string& assignment : assignments) settings.assign(assignment);
  apply_preset(config, settings);
  return config;
}

std::string refusal(const Names& assignments) {
  try {
    require_possible(config_of(assignments));
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

Names names_of(const ModelConfig& config) {
  Names names;
  for (const nn::AttentionConfig& attention : layer_attentions(config)) names.push_back(attention.name);
  return names;
}

TEST(LayerPattern, IsRepeatedOverTheLayers) {
  const Names linear_softmax{"linear", "linear", "softmax", "linear", "linear", "softmax", "linear"};
  EXPECT_EQ(names_of(config_of({"model.layers=7", "model.pattern=linear,linear,softmax"})), linear_softmax);
  EXPECT_EQ(names_of(config_of({"model.layers=7", "model.attention=linear", "model.pattern=same,same,softmax"})),
            linear_softmax);
  EXPECT_EQ(names_of(config_of({"model.attention=performer"})), Names(4, "performer"));
}

TEST(LayerPattern, EachMechanismHasItsOwnOptions) {
  const ModelConfig config =
      config_of({"model.pattern=softmax,cosformer_plus", "attention.convolution=3",
                 "model.pattern_options=cosformer_plus.gate=false,cosformer_plus.eps=0.12345678901"});
  EXPECT_EQ(config.attention.name, "softmax") << "the first one, since nobody chose model.attention";
  const std::vector<nn::AttentionConfig> layers = layer_attentions(config);
  EXPECT_EQ(layers[0].convolution, 3);
  EXPECT_EQ(layers[1].convolution, nn::preset_of("cosformer_plus", false).convolution);
  EXPECT_FALSE(layers[1].gate);
  EXPECT_EQ(layers[1].eps, 0.12345678901);
  EXPECT_EQ(label_of(config), "hybrid(softmax (convolution=3):1, cosformer_plus (eps=0.123457, gate=false):1)");
  EXPECT_EQ(label_of(config_of({"model.pattern=cosformer_plus,same,cosformer_plus,softmax"})),
            "hybrid(cosformer_plus:3, softmax:1)");
  EXPECT_EQ(label_of(config_of({"model.pattern=linear,same"})), "linear");
}

// A preset may change; what a model was built with is what its file says.
TEST(LayerPattern, WhatIsStoredDoesNotDependOnPresets) {
  for (const std::string& name : nn::attention_names()) {
    if (name == "softmax") continue;
    const ModelConfig config = config_of({"model.attention=softmax", "model.pattern=softmax," + name});
    const ModelConfig back = model_config_from_toml(to_toml(config), "stored");
    EXPECT_EQ(to_toml(back), to_toml(config));
    const Names& options = back.pattern_options;
    const nn::AttentionConfig preset = nn::preset_of(name, false), plain;
    for (const nn::AttentionOption& option : nn::attention_options()) {
      const bool is_written = std::any_of(options.begin(), options.end(), [&](const std::string& text) {
        return text.starts_with(name + "." + option.name + "=");
      });
      EXPECT_TRUE(is_written || nn::same_value(option, preset, plain)) << name << " " << option.name;
      EXPECT_TRUE(is_written || !option.is_read_by(name)) << name << " " << option.name;
    }
  }
}

TEST(LayerPattern, AModelWithoutOneIsWrittenAsBefore) {
  EXPECT_EQ(to_toml(config_of({})).find("pattern"), std::string::npos);
  EXPECT_EQ(to_toml(tiny_language_model("softmax")).find("pattern"), std::string::npos);
  EXPECT_NE(to_toml(config_of({"model.pattern=linear,softmax"})).find("pattern = [\"linear\", \"softmax\"]"),
            std::string::npos);
}

TEST(LayerPattern, RefusalsSayWhatIsWrong) {
  const std::vector<std::pair<Names, std::string>> cases{
      {{"model.pattern=linear,soft"}, "got \"soft\""},
      {{"model.layers=2", "model.pattern=linear,linear,softmax"}, "names 3 layers, and the model has 2"},
      {{"model.attention=cosformer", "model.pattern=linear,softmax"}, "no layer in model.pattern has model.attention"},
      {{"model.pattern=linear,softmax", "model.positions=rotary"}, ""},
      {{"model.pattern=linear,cosformer", "model.positions=rotary"}, "rotary positions do not go with"},
      {{"model.pattern=linear,softmax", "model.positions=stochastic"}, ""},
      {{"model.pattern=longformer,softmax", "model.positions=stochastic"}, "stochastic positions do not go with"},
      {{"model.pattern=softmax,linformer", "model.causal=true"}, "the layers of \"linformer\" in model.pattern"},
      {{"model.pattern_options=softmax.gate=true"}, "belongs to model.pattern"},
      {{"model.pattern=linear,softmax", "model.pattern_options=softmax.gate"}, "MECHANISM.OPTION=VALUE"},
      {{"model.pattern=linear,softmax", "model.pattern_options=softmax.gates=true"}, "did you mean 'attention.gate'"},
      {{"model.pattern=linear,softmax", "model.pattern_options=softmax.gate=7"}, "true or false"},
      {{"model.pattern=linear,softmax", "model.pattern_options=softmax.features=7"}, "does not read"},
      {{"model.pattern=linear,softmax", "model.pattern_options=linear.gate=true"}, "set attention.gate"},
      {{"model.pattern=linear,softmax", "model.pattern_options=cosformer.horizon=70"}, "has no layer of \"cosformer\""},
      {{"model.pattern=linear,softmax", "attention.features=7"}, "does not read"}};
  for (const auto& [assignments, words] : cases) {
    const std::string said = refusal(assignments);
    EXPECT_EQ(said.empty(), words.empty()) << assignments.back() << ": " << said;
    EXPECT_NE(said.find(words), std::string::npos) << assignments.back() << ": " << said;
  }
}

TEST(LayerPattern, OfOneMechanismIsTheModelWithoutIt) {
  at::NoGradGuard no_grad;
  LanguageModelConfig config = tiny_language_model("cosformer_plus");
  const at::Tensor tokens = random_tokens(2, 30), plain = seeded_model(config)->forward(tokens);
  config.model.pattern = {"same", "cosformer_plus"};
  EXPECT_TRUE(seeded_model(config)->forward(tokens).equal(plain));
  config.model.pattern = {"same", "softmax"};
  EXPECT_FALSE(seeded_model(config)->forward(tokens).equal(plain));
}

// Only the layers that can have rotary positions have them: turning the tokens' order is felt through them alone.
TEST(LayerPattern, RotaryPositionsAreOfTheLayersThatTakeThem) {
  at::NoGradGuard no_grad;
  const auto outputs = [](const std::string& positions, const std::string& pattern) {
    at::manual_seed(3);
    Classifier model(config_of({"model.pattern=" + pattern, "model.positions=" + positions, "model.attention=linear"}));
    model.eval();
    return model.forward({at::arange(40, at::kInt).mul(7).remainder(17).unsqueeze(0), {}});
  };
  EXPECT_TRUE(outputs("none", "linear,linear").equal(outputs("none", "same")));
  EXPECT_FALSE(outputs("rotary", "linear,softmax").equal(outputs("none", "linear,softmax")));
  EXPECT_THROW(outputs("rotary", "linear"), UserError);
}

// Numbers that a model has, and those that are known before it is built, which are at most as many.
struct Counts {
  double built = 0, predicted = 0;
};

Counts counts_of(const LanguageModelConfig& config) {
  return {static_cast<double>(LanguageModel(config).parameter_count()), size_of(config).parameters};
}

// From models that have one mechanism alone: what a second layer adds, for each layer, and once what is around them.
Counts sum_of_layers(const LanguageModelConfig& config) {
  Counts sum;
  for (const nn::AttentionConfig& attention : layer_attentions(config.model)) {
    LanguageModelConfig alone = config;
    alone.model.pattern = alone.model.pattern_options = {};
    alone.model.attention = attention;
    if (config.model.positions == "rotary") alone.model.positions = "none";  // they have no parameters
    alone.model.layers = 1;
    const Counts one = counts_of(alone);
    alone.model.layers = 2;
    const Counts two = counts_of(alone);
    if (sum.built == 0) sum = {2 * one.built - two.built, 2 * one.predicted - two.predicted};
    sum.built += two.built - one.built;
    sum.predicted += two.predicted - one.predicted;
  }
  return sum;
}

TEST(LayerPattern, AnyHybridStreamsAndIsCountedBeforeItIsBuilt) {
  at::NoGradGuard no_grad;
  const auto seed = std::random_device{}();
  RecordProperty("seed", std::to_string(seed));
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  const auto one_of = [&](const Names& names) { return names[random() % names.size()]; };
  for (int round = 0; round < 12; ++round) {
    LanguageModelConfig config = tiny_language_model("cosformer_plus");
    ModelConfig& m = config.model;
    m.layers = 1 + static_cast<std::int64_t>(random() % 5);
    m.pattern.clear();
    for (std::size_t count = 1 + random() % static_cast<std::size_t>(m.layers); count > 0; --count) {
      m.pattern.push_back(one_of({"cosformer", "cosformer_plus", "linear", "softmax", "performer"}));
    }
    m.attention = nn::preset_of(one_of(m.pattern), true);
    m.positions = one_of({"none", "rotary", "learned"});
    try {
      require_possible(config);
    } catch (const UserError&) {
      m.positions = "none";  // there is no layer that takes rotary ones
    }
    complete_pattern_options(m);
    SCOPED_TRACE(label_of(m) + ", " + std::to_string(m.layers) + " layers, positions " + m.positions);
    const auto model = seeded_model(config);
    const Counts expected = sum_of_layers(config);
    EXPECT_EQ(static_cast<double>(model->parameter_count()), expected.built);
    EXPECT_EQ(size_of(config).parameters, expected.predicted);
    EXPECT_LE(expected.predicted, expected.built);
    model->to(at::kDouble);
    const at::Tensor tokens = random_tokens(2, 48), whole = model->forward(tokens);
    LmState state = model->empty_state(2);
    std::vector<at::Tensor> parts;
    for (std::int64_t begin = 0; begin < 48;) {
      const auto count = std::min<std::int64_t>(1 + static_cast<std::int64_t>(random() % 20), 48 - begin);
      parts.push_back(model->stream(tokens.narrow(1, begin, count), state));
      begin += count;
    }
    EXPECT_TRUE(at::allclose(at::cat(parts, 1), whole, 1e-9, 1e-9));
  }
}

// Linformer's projections have a place for each token, and are counted for the layers that have them.
TEST(LayerPattern, NumbersThatGrowWithTheLengthAreCountedInTheirLayers) {
  const auto predicted = [](const std::string& pattern) {
    return size_of(config_of({"model.pattern=" + pattern, "model.attention=softmax"}), 4).parameters;
  };
  const double plain = predicted("softmax"), half = predicted("softmax,linformer"),
               quarter = predicted("same,same,same,linformer");
  EXPECT_EQ(half - plain, 2 * (quarter - plain));
  EXPECT_EQ(quarter - plain, 48 * 48);
  EXPECT_EQ(size_of(config_of({"model.pattern=linear,softmax", "model.positions=rotary"}), 4).tables, 2 * 8 * 48);
}

TEST(LayerPattern, CachesGrowBesideStatesThatDoNot) {
  at::NoGradGuard no_grad;
  LanguageModelConfig config = tiny_language_model("cosformer_plus");
  config.model.layers = 4;
  config.model.pattern = {"same", "same", "same", "softmax"};
  const auto model = seeded_model(config);
  const auto bytes_after = [&](std::int64_t tokens) {
    LmState state = model->empty_state(1);
    model->stream(random_tokens(1, tokens), state);
    return state.bytes();
  };
  EXPECT_EQ(bytes_after(60) - bytes_after(20), 40U * 2 * 24 * sizeof(float));  // of one layer's keys and values
}

TEST(LayerPattern, TheShortestHorizonIsTheModels) {
  ModelConfig config = config_of({"model.attention=linear", "model.pattern=linear,cosformer,softmax",
                                  "model.pattern_options=cosformer.horizon=70", "model.positions=rotary"});
  EXPECT_EQ(longest_input(config), 70);
  EXPECT_NE(why_not_longer(config).find("attention.horizon"), std::string::npos);
  const ModelConfig longer = lengthened(config, 70);
  EXPECT_EQ(longer.input.max_length, 70);
  EXPECT_EQ(layer_attentions(longer)[1].horizon, 70);
  require_possible(longer);
  config.pattern = {"linear", "softmax"};
  config.pattern_options = {};
  EXPECT_EQ(longest_input(config), std::nullopt);
  config.pattern = {"linear", "linformer"};
  EXPECT_EQ(longest_input(config), 48);
  EXPECT_NE(why_not_longer(config).find("linformer"), std::string::npos);
}

TEST(LayerPattern, ANoteOnOrderOnlyWhereNoLayerKnowsIt) {
  EXPECT_EQ(note_on_order(config_of({"model.pattern=softmax,cosformer"})), "");
  EXPECT_NE(note_on_order(config_of({"model.pattern=softmax,linear"})), "");
  EXPECT_EQ(note_on_order(config_of({"model.pattern=softmax,linear", "model.positions=rotary"})), "");
}

TEST(LayerPattern, TheEncoderOfTextToTextHasOne) {
  at::NoGradGuard no_grad;
  const ModelConfig model = config_of({"model.pattern=cosformer_plus,softmax", "model.layers=3"});
  const EncoderDecoderConfig config = encoder_decoder_config(model, {}, "");
  EXPECT_EQ(label_of(config), "hybrid(cosformer_plus:1, softmax:1)");
  const EncoderDecoderConfig back = encoder_decoder_config_from(to_metadata(config), "stored");
  EXPECT_EQ(to_metadata(back), to_metadata(config));
  const auto names = EncoderDecoder(back).named_parameters();
  EXPECT_TRUE(names.contains("encoder_block_0.attention.convolution.weight"));
  EXPECT_FALSE(names.contains("encoder_block_1.attention.convolution.weight"));
  EXPECT_TRUE(names.contains("encoder_block_2.attention.convolution.weight"));
  for (int layer = 0; layer < 3; ++layer) {
    EXPECT_TRUE(names.contains("decoder_block_" + std::to_string(layer) + ".attention.convolution.weight"));
  }
}

}  // namespace
}  // namespace cosformer::models
