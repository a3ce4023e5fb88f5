#include "nn/mechanisms/attention_config.h"

#include <algorithm>

#include <fmt/core.h>

#include "base/error.h"
#include "nn/mechanisms/attention_options.h"
#include "nn/mechanisms/attention_traits.h"

namespace cosformer::nn {
namespace {

std::string joined(const std::vector<std::string>& items) {
  std::string text;
  for (const std::string& item : items) text += (text.empty() ? "" : ", ") + item;
  return text;
}

[[noreturn]] void refuse(const std::string& reason) {
  throw UserError("settings: " + reason);
}

// Options that are not as the mechanism's preset has them although it does not read them.
void require_read(const AttentionConfig& config, bool causal) {
  const AttentionConfig preset = preset_of(config.name, causal);
  std::vector<std::string> keys;
  const AttentionOption* first = nullptr;
  for (const AttentionOption& option : attention_options()) {
    if (option.is_read_by(config.name) || same_value(option, config, preset)) continue;
    if (first == nullptr) first = &option;
    keys.push_back(option.key());
  }
  if (first == nullptr) return;
  if (config.name == "cosformer" && first->is_read_by("cosformer_plus")) {
    refuse(
        fmt::format("attention \"cosformer\" is the published method, which has no {}; set model.attention = "
                    "\"cosformer_plus\" and switch off what you do not want of it",
                    joined(keys)));
  }
  refuse(fmt::format("attention \"{}\" does not read {}; {} is an option of {}", config.name, joined(keys),
                     first->key(), joined(first->readers)));
}

void require_variant(const AttentionConfig& config) {
  const std::vector<std::string>& variants = traits_of(config.name).variants;
  if (!variants.empty() && std::find(variants.begin(), variants.end(), config.variant) == variants.end()) {
    refuse(fmt::format("attention.variant of \"{}\" must be one of {}; got \"{}\"", config.name, joined(variants),
                       config.variant));
  }
}

// Options that do not go together.
void require_consistent(const AttentionConfig& c) {
  if (c.theta_spread && !c.head_norm) {
    refuse(
        "attention.theta_spread makes weights of both signs, under which the division by their sum is unstable; set "
        "attention.head_norm = true as well");
  }
  if (c.feature_map == "softmax") {
    if (c.name == "linear") refuse("attention \"linear\" needs features; attention.feature_map=softmax has none");
    for (const auto& [is_on, key] : {std::pair{c.decay, "decay"},
                                     {c.theta_spread, "theta_spread"},
                                     {c.theta_learned, "theta_learned"},
                                     {c.head_norm, "head_norm"},
                                     {c.normalizer != "sum", "normalizer"}}) {
      if (is_on) refuse("attention.feature_map=softmax is the definition alone, without attention." + std::string(key));
    }
  }
  if (c.token_decay && !c.decay) refuse("attention.token_decay needs attention.decay = true");
  if (c.token_decay && c.theta_learned) refuse("attention.token_decay does not go with attention.theta_learned");
  if (c.theta_learned && !c.reweight) refuse("attention.theta_learned needs attention.reweight = true");
  for (const AttentionOption& option : attention_options()) {
    const bool is_count = option.name == "features" || option.name == "rank" || option.name == "landmarks";
    if (!is_count || !option.is_read_by(c.name)) continue;
    if (c.*std::get<std::int64_t AttentionConfig::*>(option.member) == 0) refuse(option.key() + " must be at least 1");
  }
  if (c.decay_shortest > c.decay_longest) refuse("attention.decay_shortest must not exceed attention.decay_longest");
}

}  // namespace

std::vector<std::string> attention_names() {
  std::vector<std::string> names;
  for (const AttentionTraits& traits : attention_traits()) names.push_back(traits.name);
  return names;
}

void add_settings(Settings& s, AttentionConfig& c) {
  s.add("model.attention", c.name,
        "Chooses the attention mechanism of every layer, but of those that model.pattern gives another one.",
        attention_names());
  struct Adder {
    Settings& s;
    AttentionConfig& c;
    const AttentionOption& o;
    std::string help() const {
      const bool for_some = o.readers.size() + 1 < attention_names().size();
      return o.help + (for_some ? fmt::format(" [{}]", joined(o.readers)) : "");
    }
    void operator()(bool AttentionConfig::*member) const { s.add(o.key(), c.*member, help()); }
    void operator()(double AttentionConfig::*member) const { s.add(o.key(), c.*member, help(), o.least, o.most); }
    void operator()(std::string AttentionConfig::*member) const { s.add(o.key(), c.*member, help(), o.choices); }
    void operator()(std::int64_t AttentionConfig::*member) const {
      constexpr auto kMost = std::numeric_limits<std::int64_t>::max();
      s.add(o.key(), c.*member, help(), static_cast<std::int64_t>(o.least),
            o.most < 9e18 ? static_cast<std::int64_t>(o.most) : kMost);
    }
  };
  for (const AttentionOption& option : attention_options()) std::visit(Adder{s, c, option}, option.member);
}

void apply_preset(AttentionConfig& c, const Settings& s, bool causal) {
  const AttentionConfig preset = preset_of(c.name, causal);
  for (const AttentionOption& option : attention_options()) {
    if (s.was_set(option.key())) continue;
    std::visit([&](auto member) { c.*member = preset.*member; }, option.member);
  }
}

void require_possible(const AttentionConfig& c, bool causal) {
  const AttentionTraits& traits = traits_of(c.name);
  if (causal && !traits.no_causal.empty()) {
    refuse(fmt::format("attention \"{}\" cannot be causal: {}", c.name, traits.no_causal));
  }
  require_read(c, causal);
  if (c.token_decay && !causal) {
    refuse("attention.token_decay forgets what came before, which only a causal model has; set it to false");
  }
  require_variant(c);
  require_consistent(c);
}

void require_positions_possible(const AttentionConfig& config, const std::string& positions) {
  const AttentionTraits& traits = traits_of(config.name);
  if (positions == "rotary" && !traits.no_rotary.empty()) {
    refuse(fmt::format(
        "rotary positions do not go with attention \"{}\": {}; set model.positions to sinusoidal, learned or none",
        config.name, traits.no_rotary));
  }
  if (positions == "stochastic" && !traits.no_stochastic.empty()) {
    refuse(fmt::format(
        "stochastic positions do not go with attention \"{}\": {}; set model.positions to sinusoidal, learned or none",
        config.name, traits.no_stochastic));
  }
}

std::string label_of(const AttentionConfig& c, bool causal) {
  const AttentionConfig preset = preset_of(c.name, causal);
  std::vector<std::string> changes;
  for (const AttentionOption& option : attention_options()) {
    if (!same_value(option, c, preset)) changes.push_back(option.name + "=" + value_text(option, c));
  }
  return changes.empty() ? c.name : fmt::format("{} ({})", c.name, joined(changes));
}

}  // namespace cosformer::nn
