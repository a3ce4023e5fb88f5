#include "models/text_to_text/encoder_decoder_config.h"

#include <fmt/core.h>

#include "base/error.h"
#include "models/layer_pattern.h"
#include "models/model_size.h"
#include "nn/cross_attention.h"
#include "nn/mechanisms/attention_options.h"
#include "nn/mechanisms/attention_traits.h"

namespace cosformer::models {
namespace {

const std::string kDecoderKey = std::string(kEncoderDecoderKey) + ".decoder_attention";
const std::string kCrossKey = std::string(kEncoderDecoderKey) + ".cross_attention";

std::vector<std::string> same_or_named() {
  std::vector<std::string> names = nn::attention_names();
  names.insert(names.begin(), "same");
  return names;
}

// As an error about one of the three attentions says which.
template <class Check>
void checked(const std::string& whose, const Check& check) {
  try {
    check();
  } catch (const UserError& error) {
    throw UserError(whose + ": " + error.what());
  }
}

void add_own(Settings& s, EncoderDecoderConfig& c) {
  s.add("decoder.layers", c.decoder_layers, "The decoder has this many blocks.", 1, 1000);
  s.add("tokenizer.hash", c.tokenizer,
        "The model was trained with the tokenizer of this hash; another one is refused.");
}

void add_all(Settings& s, EncoderDecoderConfig& c) {
  add_settings(s, c.model, true);
  add_own(s, c);
}

void add_to_write(Settings& s, EncoderDecoderConfig& c) {
  add_settings_to_write(s, c.model);
  add_own(s, c);
}

void add_attention(Settings& s, nn::AttentionConfig& c) {
  nn::add_settings(s, c);
}

}  // namespace

void add_settings(Settings& s, DecoderOptions& o) {
  s.rename_section("seq2seq", "text_to_text");
  s.add("text_to_text.decoder_attention", o.attention,
        "The decoder of text_to_text attends to itself with this mechanism; same: model.attention with its options. "
        "Another one has its own defaults.",
        same_or_named());
  s.add("text_to_text.cross_attention", o.cross_attention,
        "The decoder of text_to_text attends to the source with this mechanism; same: model.attention. It never has a "
        "decay or a convolution.",
        same_or_named());
  s.add("text_to_text.decoder_decay", o.decay,
        "The decoder's self-attention in text_to_text has a learned decay per head. [cosformer_plus, linear]");
  s.add("text_to_text.decoder_layers", o.layers, "The decoder of text_to_text has this many blocks; 0: model.layers.",
        0, 1000);
  s.add("text_to_text.decode_examples", o.decode_examples,
        "At each evaluation while training, this many answers are written and those that are right are counted "
        "(text_to_text).");
}

void apply_preset(DecoderOptions& o, const ModelConfig& model, const Settings& settings) {
  if (settings.was_set("text_to_text.decoder_decay")) return;
  const bool same = o.attention == "same";
  o.decay = same && settings.was_set("attention.decay")
                ? model.attention.decay
                : nn::preset_of(same ? model.attention.name : o.attention, true).decay;
}

EncoderDecoderConfig encoder_decoder_config(const ModelConfig& model, const DecoderOptions& o,
                                            const std::string& tokenizer) {
  EncoderDecoderConfig config;
  config.model = model;
  config.model.causal = false;
  config.decoder_layers = o.layers > 0 ? o.layers : model.layers;
  config.decoder = o.attention == "same" ? model.attention : nn::preset_of(o.attention, true);
  if (nn::reads_option(config.decoder.name, "attention.decay")) {
    config.decoder.decay = o.decay;
  } else if (o.decay) {
    throw UserError(fmt::format(
        "settings: text_to_text.decoder_decay is an option of cosformer_plus and linear; the decoder has \"{}\"",
        config.decoder.name));
  }
  config.cross = nn::cross_attention_config(o.cross_attention == "same" ? model.attention
                                                                        : nn::preset_of(o.cross_attention, false));
  config.tokenizer = tokenizer;
  return config;
}

std::string label_of(const EncoderDecoderConfig& c) {
  std::string label = label_of(c.model);
  if (c.decoder.name != c.model.attention.name) label += ", decoder " + nn::label_of(c.decoder, true);
  if (c.cross.name != c.model.attention.name) label += ", cross " + c.cross.name;
  return label;
}

void require_possible(const EncoderDecoderConfig& c) {
  const ModelConfig& m = c.model;
  if (m.input.vocabulary < 2 || m.input.max_length < 2) {
    throw UserError("an encoder-decoder needs a vocabulary of at least two tokens and texts of at least one");
  }
  require_heads_fit(m);
  if (m.positions == "grid" || m.positions == "stochastic") {
    throw UserError(fmt::format(
        "settings: model.positions={} is not for text_to_text; set learned, sinusoidal, rotary or none", m.positions));
  }
  checked("the encoder's attention", [&] { require_attention_possible(m); });
  checked("the decoder's attention (text_to_text.decoder_attention chooses another one)", [&] {
    nn::require_possible(c.decoder, true);
    nn::require_positions_possible(c.decoder, m.positions);
  });
  checked("the cross-attention (text_to_text.cross_attention chooses another one)",
          [&] { nn::require_possible(c.cross, false); });
  require_memory(m, size_of(c));
}

// The decoder's blocks are the larger ones.
ModelSize size_of(const EncoderDecoderConfig& c) {
  return size_of(c.model, c.model.layers + c.decoder_layers);
}

std::map<std::string, std::string> to_metadata(const EncoderDecoderConfig& config) {
  return {{kEncoderDecoderKey, toml_of(config, add_to_write)},
          {kDecoderKey, toml_of(config.decoder, add_attention)},
          {kCrossKey, toml_of(config.cross, add_attention)}};
}

EncoderDecoderConfig encoder_decoder_config_from(const std::map<std::string, std::string>& metadata,
                                                 const std::string& path) {
  const auto text_of = [&](const std::string& key) {
    const auto found = metadata.find(key);
    if (found == metadata.end()) {
      throw UserError(fmt::format("'{}' holds no encoder-decoder ('{}' is missing from its metadata)", path, key));
    }
    return found->second;
  };
  auto config = from_toml<EncoderDecoderConfig>(text_of(kEncoderDecoderKey), path, add_all);
  config.decoder = from_toml<nn::AttentionConfig>(text_of(kDecoderKey), path, add_attention);
  config.cross = from_toml<nn::AttentionConfig>(text_of(kCrossKey), path, add_attention);
  require_possible(config);
  return config;
}

}  // namespace cosformer::models
