#include "nn/attention_config.h"

#include "base/error.h"

namespace cosformer::nn {
namespace {

// What a name stands for.
AttentionConfig preset(const std::string& name, bool causal) {
  AttentionConfig config;
  config.name = name;
  if (name == "cosformer_plus") {
    config.decay = causal;
    config.convolution = 5;
    config.gate = true;
  } else if (name == "linear") {
    config.feature_map = "elu1";
    config.reweight = false;
  }
  return config;
}

bool is_kernel_mechanism(const std::string& name) {
  return name == "cosformer" || name == "cosformer_plus" || name == "linear";
}

// Options beyond the paper that are switched on.
std::string extras(const AttentionConfig& c) {
  std::string text;
  const auto note = [&](bool is_on, const char* option) {
    if (is_on) text += (text.empty() ? "" : ", ") + std::string(option);
  };
  note(c.decay, "attention.decay");
  note(c.theta_spread, "attention.theta_spread");
  note(c.head_norm, "attention.head_norm");
  note(c.convolution > 0, "attention.convolution");
  note(c.gate, "attention.gate");
  return text;
}

}  // namespace

std::vector<std::string> attention_names() {
  return {"cosformer", "cosformer_plus", "softmax", "linear"};
}

void add_settings(Settings& s, AttentionConfig& c) {
  s.add("model.attention", c.name, "the attention mechanism", attention_names());
  s.add("attention.horizon", c.horizon, "M, the greatest distance between tokens; 0: the model's greatest length");
  s.add("attention.feature_map", c.feature_map, "what is applied to queries and keys",
        {"relu", "elu1", "leaky_relu", "silu", "identity"});
  s.add("attention.reweight", c.reweight, "weigh by the cosine of the distance");
  s.add("attention.eps", c.eps, "lower bound of the divisor", 1e-30);
  s.add("attention.decay", c.decay, "a learned decay per head");
  s.add("attention.decay_shortest", c.decay_shortest, "the shortest window that a head starts with, in tokens", 0.1);
  s.add("attention.decay_longest", c.decay_longest, "the longest", 0.1);
  s.add("attention.theta_spread", c.theta_spread, "angles spread over the heads; needs head_norm");
  s.add("attention.head_norm", c.head_norm, "RMSNorm per head in place of the division by the row sum");
  s.add("attention.convolution", c.convolution, "width of a depthwise convolution on q, k and v; 0: none", 0, 64);
  s.add("attention.gate", c.gate, "an output gate");
  s.add("attention.dropout", c.dropout, "dropout of the weights, for softmax", 0, 0.999);
}

void apply_preset(AttentionConfig& c, const Settings& s, bool causal) {
  const AttentionConfig p = preset(c.name, causal);
  const auto fill = [&](const char* key, auto& value, const auto& implied) {
    if (!s.was_set(key)) value = implied;
  };
  fill("attention.feature_map", c.feature_map, p.feature_map);
  fill("attention.reweight", c.reweight, p.reweight);
  fill("attention.decay", c.decay, p.decay);
  fill("attention.theta_spread", c.theta_spread, p.theta_spread);
  fill("attention.head_norm", c.head_norm, p.head_norm);
  fill("attention.convolution", c.convolution, p.convolution);
  fill("attention.gate", c.gate, p.gate);
}

void require_possible(const AttentionConfig& c) {
  const auto refuse = [](const std::string& reason) { throw UserError("settings: " + reason); };
  if (c.name == "cosformer" && !extras(c).empty()) {
    refuse("attention \"cosformer\" is the published method, which has no " + extras(c) +
           "; set model.attention = \"cosformer_plus\" and switch off what you do not want of it");
  }
  if (!is_kernel_mechanism(c.name) && (c.decay || c.theta_spread)) {
    refuse("attention \"" + c.name + "\" has neither attention.decay nor attention.theta_spread");
  }
  if (c.name == "linear" && (c.reweight || c.theta_spread)) {
    refuse("attention \"linear\" has no re-weighting (attention.reweight, attention.theta_spread)");
  }
  if (c.theta_spread && !c.head_norm) {
    refuse(
        "attention.theta_spread makes weights of both signs, under which the division by their sum is unstable; set "
        "attention.head_norm = true as well");
  }
  if (c.name == "softmax" && c.head_norm) refuse("attention \"softmax\" keeps its division: no attention.head_norm");
  if (c.name != "softmax" && c.dropout > 0) {
    refuse("attention.dropout drops weights of softmax; \"" + c.name + "\" never forms them");
  }
  if (c.decay_shortest > c.decay_longest) refuse("attention.decay_shortest must not exceed attention.decay_longest");
}

std::string label_of(const AttentionConfig& c, bool causal) {
  const AttentionConfig p = preset(c.name, causal);
  std::string changes;
  const auto compare = [&](bool differs, const std::string& text) {
    if (differs) changes += (changes.empty() ? "" : ", ") + text;
  };
  const auto flag = [](const char* name, bool value) { return std::string(name) + (value ? "=true" : "=false"); };
  compare(c.feature_map != p.feature_map, "feature_map=" + c.feature_map);
  compare(c.reweight != p.reweight, flag("reweight", c.reweight));
  compare(c.decay != p.decay, flag("decay", c.decay));
  compare(c.theta_spread != p.theta_spread, flag("theta_spread", c.theta_spread));
  compare(c.head_norm != p.head_norm, flag("head_norm", c.head_norm));
  compare(c.convolution != p.convolution, "convolution=" + std::to_string(c.convolution));
  compare(c.gate != p.gate, flag("gate", c.gate));
  return changes.empty() ? c.name : c.name + " (" + changes + ")";
}

}  // namespace cosformer::nn
