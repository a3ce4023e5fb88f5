#include "nn/mechanisms/attention_traits.h"

#include <fmt/core.h>

#include "base/error.h"

namespace cosformer::nn {
namespace {

constexpr const char* kTurnedFeatures =
    "they turn queries and keys by angles, after which products of its features are no function of the distance";
constexpr const char* kFormsScores =
    "it estimates a matrix of position weights for mechanisms that work with features of queries and keys alone, and "
    "this one forms scores";

std::vector<AttentionTraits> table() {
  return {
      {.name = "cosformer", .no_rotary = kTurnedFeatures},
      {.name = "cosformer_plus",
       .preset =
           [](AttentionConfig& c, bool causal) {
             c.decay = causal;
             c.convolution = 5;
             c.gate = true;
           },
       .no_rotary = kTurnedFeatures},
      {.name = "softmax", .no_stochastic = kFormsScores},
      {.name = "linear",
       .preset =
           [](AttentionConfig& c, bool) {
             c.feature_map = "elu1";
             c.reweight = false;
           },
       .no_rotary = kTurnedFeatures},
      // Its kernel, and rfa's, is a function of products of queries and keys: turning both is as good as for softmax.
      {.name = "performer",
       .preset =
           [](AttentionConfig& c, bool) {
             c.features = 128;
             c.redraw = 1000;
           }},
      {.name = "rfa",
       .preset =
           [](AttentionConfig& c, bool) {
             c.features = 64;
             c.redraw = 1;
             c.eps = 1e-2;
           },
       .variants = {"gaussian", "arc_cosine", "gaussian_gated", "arc_cosine_gated"}},
      {.name = "linformer",
       .preset = [](AttentionConfig& c, bool) { c.rank = 256; },
       .no_causal = "each of its keys is a mixture of all places, later ones too",
       .no_rotary = "its keys are mixtures of places, which have no angle of their own",
       .no_stochastic = kFormsScores},
      {.name = "nystromformer",
       .preset =
           [](AttentionConfig& c, bool) {
             c.landmarks = 64;
             c.iterations = 6;
             c.value_window = 33;
           },
       .no_causal = "its landmarks are means over segments, in which a token sees later ones",
       .no_stochastic = kFormsScores},
      {.name = "synthesizer",
       .variants = {"dense", "random"},
       .no_rotary = "it forms no products of queries and keys, which alone would feel the angles",
       .no_stochastic = "it forms no products of queries and keys, which alone would feel them"},
      {.name = "one_vs_each", .no_stochastic = kFormsScores},
      {.name = "local", .no_stochastic = kFormsScores},
      {.name = "longformer", .no_stochastic = kFormsScores},
      {.name = "bigbird",
       .preset = [](AttentionConfig& c, bool) { c.global = 128; },
       .no_causal = "its global and random blocks see what comes later; the paper has it in encoders only",
       .no_stochastic = kFormsScores},
      {.name = "sparse", .variants = {"strided", "fixed"}, .no_stochastic = kFormsScores},
      {.name = "reformer", .no_stochastic = kFormsScores},
      {.name = "sinkhorn",
       .preset = [](AttentionConfig& c, bool) { c.iterations = 8; },
       .no_causal = "balancing rows and columns of its sorting lets earlier blocks depend on later ones",
       .no_rotary = "its sorted blocks are mixtures of keys from different positions",
       .no_stochastic = kFormsScores},
  };
}

}  // namespace

const std::vector<AttentionTraits>& attention_traits() {
  static const std::vector<AttentionTraits> all = table();
  return all;
}

const AttentionTraits& traits_of(const std::string& name) {
  std::string names;
  for (const AttentionTraits& t : attention_traits()) {
    if (t.name == name) return t;
    names += (names.empty() ? "" : ", ") + t.name;
  }
  throw UserError(fmt::format("settings: model.attention must be one of {}; got \"{}\"", names, name));
}

AttentionConfig preset_of(const std::string& name, bool causal) {
  const AttentionTraits& traits = traits_of(name);
  AttentionConfig config;
  config.name = name;
  if (!traits.variants.empty()) config.variant = traits.variants.front();
  if (traits.preset) traits.preset(config, causal);
  return config;
}

std::string projections_of(const AttentionConfig& config) {
  if (config.name == "synthesizer") return config.variant == "dense" ? "qv" : "v";
  if (config.name == "reformer") return "qv";
  return "qkv";
}

bool reads_input_in_float(const AttentionConfig& config) {
  return config.token_decay || config.name == "sinkhorn" || (config.name == "rfa" && config.variant.ends_with("gated"));
}

bool changes_while_training(const AttentionConfig& config) {
  return config.redraw > 0;
}

}  // namespace cosformer::nn
