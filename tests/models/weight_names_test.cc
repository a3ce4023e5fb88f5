// Every tensor of every kind of model is named in docs/weights.md.
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>

#include <gtest/gtest.h>

#include "models/classifier.h"
#include "models/language/language_model.h"
#include "models/text_to_text/encoder_decoder.h"
#include "nn/mechanisms/attention_traits.h"

namespace cosformer::models {
namespace {

std::string page() {
  const auto root = std::filesystem::path(__FILE__).parent_path().parent_path().parent_path();
  std::ifstream file(root / "docs" / "weights.md");
  return {std::istreambuf_iterator<char>(file), {}};
}

// As the page has it: numbers of layers and bands are I, what stands before a block's parts is told apart from them.
std::string documented(const std::string& name) {
  std::string text = std::regex_replace(name, std::regex("_[0-9]+"), "_I");
  text = std::regex_replace(text, std::regex("^(encoder\\.|encoder_|decoder_)?block_I\\."), "");
  return std::regex_replace(text, std::regex("^cross\\.mechanism\\."), "attention.mechanism.");
}

template <class Model>
void add_names(const Model& model, std::set<std::string>& names) {
  for (const auto& item : model.named_parameters()) names.insert(documented(item.key()));
  for (const auto& item : model.named_buffers()) names.insert(documented(item.key()));
}

ModelConfig tiny(const std::vector<std::string>& assignments) {
  ModelConfig config;
  Settings settings;
  add_settings(settings, config, true);
  for (const char* assignment : {"model.layers=2", "model.width=16", "model.heads=2", "model.feed_forward=16",
                                 "input.vocabulary=40", "input.max_length=64", "input.classes=a,b"}) {
    settings.assign(assignment);
  }
  for (const std::string& assignment : assignments) settings.assign(assignment);
  apply_preset(config, settings);
  return config;
}

TEST(WeightNames, AreAllDocumented) {
  std::set<std::string> names;
  std::vector<std::vector<std::string>> variants{
      {"model.pooling=cls", "model.positions=learned", "model.attention_bias=true"},
      {"model.pooled_norm=batch", "model.norm=rms", "model.activation=gated"},
      {"model.positions=grid", "input.vocabulary=0", "input.image_width=8", "input.image_height=8"},
      {"model.attention=cosformer_plus", "attention.head_norm=true", "attention.theta_spread=true"},
      {"model.attention=cosformer_plus", "attention.theta_learned=true", "attention.decay=true"},
      {"model.attention=performer", "model.positions=stochastic", "model.stochastic_gated=true"}};
  for (const std::string& attention : nn::attention_names()) {
    variants.push_back({"model.attention=" + attention});
    for (const std::string& variant : nn::traits_of(attention).variants) {
      const bool forgets = variant.ends_with("gated");  // what came before, which only a causal model has
      variants.push_back({"model.attention=" + attention, "attention.variant=" + variant,
                          std::string("model.causal=") + (forgets ? "true" : "false")});
    }
  }
  for (const std::vector<std::string>& variant : variants) {
    SCOPED_TRACE(::testing::PrintToString(variant));
    add_names(Classifier(tiny(variant)), names);
  }
  for (const bool tied : {false, true}) {
    for (const std::vector<std::int64_t>& cutoffs : {std::vector<std::int64_t>{}, std::vector<std::int64_t>{20}}) {
      LanguageModelConfig language;
      language.model = tiny({"model.causal=true", "model.positions=learned", "attention.token_decay=true",
                             "model.attention=cosformer_plus"});
      language.language.tied = tied;
      for (const std::int64_t cutoff : cutoffs) language.language.cutoffs.push_back(std::to_string(cutoff));
      add_names(LanguageModel(language), names);
    }
  }
  for (const char* bias : {"false", "true"}) {
    const ModelConfig model = tiny({"model.attention=cosformer_plus", std::string("model.attention_bias=") + bias});
    DecoderOptions options;
    options.decay = true;
    add_names(EncoderDecoder(encoder_decoder_config(model, options, "")), names);
  }
  const std::string text = page();
  ASSERT_FALSE(text.empty());
  for (const std::string& name : names) {
    EXPECT_NE(text.find('`' + name + '`'), std::string::npos) << "docs/weights.md does not name " << name;
  }
  EXPECT_GT(names.size(), 60U);
}

}  // namespace
}  // namespace cosformer::models
