#include "models/layer_pattern.h"

#include <algorithm>

#include <fmt/core.h>

#include "base/error.h"
#include "nn/mechanisms/attention_options.h"
#include "nn/mechanisms/attention_traits.h"
#include "nn/positions/token_order_note.h"

namespace cosformer::models {
namespace {

constexpr const char* kOptionsKey = "model.pattern_options";
const std::string kSection = "attention.";

// "softmax.convolution=4"
struct PatternOption {
  std::string mechanism, name, value;
};

PatternOption parsed(const std::string& text) {
  const std::size_t dot = text.find('.'), equals = text.find('=');
  if (dot == std::string::npos || equals == std::string::npos || dot > equals) {
    throw UserError(fmt::format("settings: {} expects MECHANISM.OPTION=VALUE, such as softmax.convolution=4; got '{}'",
                                kOptionsKey, text));
  }
  return {text.substr(0, dot), text.substr(dot + 1, equals - dot - 1), text.substr(equals + 1)};
}

bool is_of_model(const ModelConfig& c, const std::string& name) {
  return name == "same" || name == c.attention.name;
}

nn::AttentionConfig attention_named(const ModelConfig& c, const std::string& name) {
  if (is_of_model(c, name)) return c.attention;
  nn::AttentionConfig attention = nn::preset_of(name, c.causal);
  Settings settings;
  nn::add_settings(settings, attention);
  for (const std::string& text : c.pattern_options) {
    const PatternOption option = parsed(text);
    if (option.mechanism == name) settings.set(kSection + option.name, option.value, kOptionsKey);
  }
  return attention;
}

// What is read, and what differs from an attention that nobody has said anything of.
std::vector<std::string> written_options(nn::AttentionConfig attention) {
  Settings settings;
  nn::add_settings(settings, attention);
  const std::vector<Settings::Description> all = settings.descriptions();
  const nn::AttentionConfig plain;
  std::vector<std::string> written;
  for (const nn::AttentionOption& option : nn::attention_options()) {
    if (!option.is_read_by(attention.name) && nn::same_value(option, attention, plain)) continue;
    const auto found = std::find_if(all.begin(), all.end(), [&](const auto& d) { return d.key == option.key(); });
    std::string value = found->value;
    std::erase(value, '"');  // one of a choice of names
    written.push_back(fmt::format("{}.{}={}", attention.name, option.name, value));
  }
  return written;
}

bool takes(const nn::AttentionConfig& attention, const std::string& positions) {
  const nn::AttentionTraits& traits = nn::traits_of(attention.name);
  if (positions == "rotary") return traits.no_rotary.empty();
  return positions != "stochastic" || traits.no_stochastic.empty();
}

void require_names(const ModelConfig& c) {
  std::string names = "same";
  for (const std::string& known : nn::attention_names()) names += ", " + known;
  for (const std::string& name : c.pattern) {
    const std::vector<std::string> known = nn::attention_names();
    if (name == "same" || std::find(known.begin(), known.end(), name) != known.end()) continue;
    throw UserError(fmt::format("settings: model.pattern names a mechanism for each layer, each one of {}; got \"{}\"",
                                names, name));
  }
}

void require_pattern_possible(const ModelConfig& c) {
  require_names(c);
  if (static_cast<std::int64_t>(c.pattern.size()) > c.layers) {
    throw UserError(
        fmt::format("settings: model.pattern names {} layers, and the model has {}; shorten it, or set model.layers",
                    c.pattern.size(), c.layers));
  }
  if (std::none_of(c.pattern.begin(), c.pattern.end(), [&](const auto& name) { return is_of_model(c, name); })) {
    throw UserError(fmt::format(
        "settings: no layer in model.pattern has model.attention, \"{}\", so nothing would read its options; "
        "set model.attention to \"{}\", or name \"same\" in the pattern",
        c.attention.name, c.pattern.front()));
  }
}

void require_options_possible(const ModelConfig& c) {
  for (const std::string& text : c.pattern_options) {
    const PatternOption option = parsed(text);
    if (is_of_model(c, option.mechanism)) {
      throw UserError(fmt::format("settings: {} has '{}', but \"{}\" is model.attention; set attention.{}", kOptionsKey,
                                  text, c.attention.name, option.name));
    }
    if (std::find(c.pattern.begin(), c.pattern.end(), option.mechanism) == c.pattern.end()) {
      throw UserError(fmt::format("settings: {} has '{}', but model.pattern has no layer of \"{}\"", kOptionsKey, text,
                                  option.mechanism));
    }
  }
}

}  // namespace

void add_pattern_settings(Settings& s, ModelConfig& c) {
  s.add(
      "model.pattern", c.pattern,
      "The layers have these mechanisms, one after the other and again from the first; same: model.attention. Those of "
      "another name than model.attention have their own defaults. Empty: every layer has model.attention.");
  s.add(kOptionsKey, c.pattern_options,
        "Options of mechanisms in model.pattern that are not model.attention, as softmax.convolution=4.");
}

void name_attention_of_pattern(ModelConfig& c, const Settings& settings) {
  if (settings.was_set("model.attention")) return;
  require_names(c);
  const auto named = std::find_if(c.pattern.begin(), c.pattern.end(), [](const auto& name) { return name != "same"; });
  if (named != c.pattern.end()) c.attention.name = *named;
}

void complete_pattern_options(ModelConfig& c) {
  if (c.pattern.empty()) return;
  require_names(c);
  require_options_possible(c);
  std::vector<std::string> all;
  for (const nn::AttentionConfig& attention : attentions_of(c)) {
    if (is_of_model(c, attention.name)) continue;
    const std::vector<std::string> own = written_options(attention);
    all.insert(all.end(), own.begin(), own.end());
  }
  c.pattern_options = all;
}

std::vector<nn::AttentionConfig> attentions_of(const ModelConfig& c) {
  if (c.pattern.empty()) return {c.attention};
  std::vector<nn::AttentionConfig> all;
  for (const std::string& name : c.pattern) {
    const std::string& mechanism = name == "same" ? c.attention.name : name;
    const bool is_there = std::any_of(all.begin(), all.end(), [&](const auto& a) { return a.name == mechanism; });
    if (!is_there) all.push_back(attention_named(c, mechanism));
  }
  return all;
}

std::vector<nn::AttentionConfig> layer_attentions(const ModelConfig& c) {
  const std::vector<nn::AttentionConfig> all = attentions_of(c);
  std::vector<nn::AttentionConfig> layers;
  for (std::size_t layer = 0; layer < static_cast<std::size_t>(c.layers); ++layer) {
    const std::string name = c.pattern.empty() ? "same" : c.pattern[layer % c.pattern.size()];
    const std::string& mechanism = name == "same" ? c.attention.name : name;
    layers.push_back(*std::find_if(all.begin(), all.end(), [&](const auto& a) { return a.name == mechanism; }));
  }
  return layers;
}

void replace_attention(ModelConfig& c, const nn::AttentionConfig& attention) {
  if (is_of_model(c, attention.name)) {
    c.attention = attention;
    return;
  }
  std::erase_if(c.pattern_options, [&](const auto& text) { return parsed(text).mechanism == attention.name; });
  const std::vector<std::string> own = written_options(attention);
  c.pattern_options.insert(c.pattern_options.end(), own.begin(), own.end());
}

bool has_positions(const ModelConfig& c, const nn::AttentionConfig& attention) {
  return c.pattern.empty() || takes(attention, c.positions);
}

bool changes_while_training(const ModelConfig& c) {
  const std::vector<nn::AttentionConfig> all = attentions_of(c);
  return std::any_of(all.begin(), all.end(), [](const auto& a) { return nn::changes_while_training(a); });
}

// One layer that knows the order tells it to those after it.
std::string note_on_order(const ModelConfig& c) {
  for (const nn::AttentionConfig& attention : attentions_of(c)) {
    if (!nn::is_blind_to_order(attention)) return "";
  }
  return nn::note_on_order(c.attention, c.positions, c.causal);
}

std::string label_of(const ModelConfig& c) {
  const std::vector<nn::AttentionConfig> all = attentions_of(c);
  if (all.size() == 1) return nn::label_of(all.front(), c.causal);
  std::string text;
  for (const nn::AttentionConfig& attention : all) {
    const auto count = std::count_if(c.pattern.begin(), c.pattern.end(), [&](const auto& name) {
      return name == attention.name || (name == "same" && is_of_model(c, attention.name));
    });
    text += fmt::format("{}{}:{}", text.empty() ? "" : ", ", nn::label_of(attention, c.causal), count);
  }
  return fmt::format("hybrid({})", text);
}

void require_attention_possible(const ModelConfig& c) {
  if (c.pattern.empty()) {
    if (!c.pattern_options.empty()) {
      throw UserError(fmt::format("settings: {} belongs to model.pattern, which is empty", kOptionsKey));
    }
    nn::require_possible(c.attention, c.causal);
    nn::require_positions_possible(c.attention, c.positions);
    return;
  }
  require_pattern_possible(c);
  require_options_possible(c);
  const std::vector<nn::AttentionConfig> all = attentions_of(c);
  for (const nn::AttentionConfig& attention : all) {
    try {
      nn::require_possible(attention, c.causal);
    } catch (const UserError& error) {
      if (is_of_model(c, attention.name)) throw;
      throw UserError(fmt::format("the layers of \"{}\" in model.pattern: {}", attention.name, error.what()));
    }
  }
  if (std::any_of(all.begin(), all.end(), [&](const auto& a) { return takes(a, c.positions); })) return;
  nn::require_positions_possible(c.attention, c.positions);  // says why not
}

}  // namespace cosformer::models
