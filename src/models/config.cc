#include "models/config.h"

#include <fmt/core.h>

#include "base/error.h"
#include "models/layer_pattern.h"
#include "models/model_size.h"

namespace cosformer::models {
namespace {

constexpr std::int64_t kMostCounted = std::int64_t{1} << 31;

void add_all(Settings& settings, ModelConfig& config) {
  add_settings(settings, config, true);
}

// `wish`: the setting and what it does with images.
void require_images(const ModelConfig& c, const std::string& wish, const std::string& instead) {
  if (c.input.image_width > 0) return;
  throw UserError(fmt::format("settings: {} of images, but the data are none; set {}", wish, instead));
}

void require_scan_possible(const ModelConfig& c) {
  if (c.scan == "rows") return;
  require_images(c, "model.scan=alternate turns rows and columns", "rows");
  if (c.causal) {
    throw UserError(
        "settings: with model.causal the pixels before a place are those of the rows above it; set model.scan=rows");
  }
}

void require_blanks_can_be_skipped(const ModelConfig& c) {
  if (!c.skip_blank) return;
  require_images(c, "model.skip_blank leaves out pixels", "false");
  if (c.scan != "rows") {
    throw UserError("settings: with model.skip_blank there are no whole columns to read; set model.scan=rows");
  }
  if (c.positions == "rotary" || c.positions == "stochastic") {
    throw UserError(
        fmt::format("settings: with model.skip_blank positions are those in the image, which {} ones do not tell; set "
                    "model.positions to grid, learned, sinusoidal or none",
                    c.positions));
  }
}

}  // namespace

namespace {

void add_without_pattern(Settings& s, ModelConfig& c, bool with_input) {
  nn::add_settings(s, c.attention);
  s.add("model.layers", c.layers, "The model has this many Transformer blocks.", 1, 1000);
  s.add("model.width", c.width, "Each token is a vector of this many numbers between the blocks.", 1, 65536);
  s.add("model.heads", c.heads, "Each attention has this many heads.", 1, 1024);
  s.add("model.head_dim", c.head_dim, "A head has this many dimensions; 0: model.width / model.heads.", 0, 65536);
  s.add("model.feed_forward", c.feed_forward,
        "The feed-forward part of a block has this many numbers between its two layers.", 1, 1 << 20);
  s.add("model.activation", c.activation,
        "This function is between the two layers of the feed-forward part; gated: twice as many numbers, of which SiLU "
        "of one half multiplies the other.",
        {"gelu", "relu", "gated"});
  s.add("model.norm", c.norm, "Vectors are normalised by LayerNorm or by RMSNorm.", {"layer", "rms"});
  s.add("model.norm_place", c.norm_place,
        "Norms stand before each part of a block, or after its residual connection as in the first Transformers.",
        {"before", "after"});
  s.add("model.positions", c.positions,
        "The model is told in this way where a token stands; grid: row and column of images. none suits cosformer, "
        "whose weights know distances. With model.pattern only layers that can have them have rotary and stochastic "
        "ones.",
        {"none", "sinusoidal", "learned", "rotary", "grid", "stochastic"});
  s.add("model.scan", c.scan, "Images are read row by row; alternate: by every second layer column by column.",
        {"rows", "alternate"});
  s.add("model.skip_blank", c.skip_blank,
        "Pixels of value 0 are left out of images, as in the Long Range Arena's code, for which they are padding.");
  s.add("model.stochastic_realizations", c.stochastic.realizations,
        "Stochastic positions are estimated from this many random realisations, the new dimension of queries and keys.",
        1, 4096);
  s.add("model.stochastic_sines", c.stochastic.sines,
        "Each kernel of stochastic positions is a sum of this many sines.", 1, 4096);
  s.add("model.stochastic_gated", c.stochastic.gated,
        "With stochastic positions a learned share of each dimension knows no position.");
  s.add("model.pooling", c.pooling,
        "The classifier reads the mean over all tokens, or a token of its own (cls) before them.", {"mean", "cls"});
  s.add("model.pooled_norm", c.pooled_norm,
        "What was pooled is scaled by its spread over a batch, for tasks whose examples look alike on average, or left "
        "as it is.",
        {"none", "batch"});
  s.add("model.causal", c.causal, "Tokens see only those before them; language models set it by themselves.");
  s.add("model.pair_features", c.pair_features,
        "Of two documents the classifier reads both encodings, or also their difference and product.",
        {"both", "interaction"});
  s.add("model.attention_bias", c.attention_bias, "The attention's projections have biases.");
  s.add("model.dropout", c.dropout,
        "This share of embeddings and of each part's output is zeroed while training; higher against overfitting.", 0,
        0.999);
  if (!with_input) return;
  s.add("input.vocabulary", c.input.vocabulary, "Token ids are below this number; 0: the input are real values.", 0,
        kMostCounted);
  s.add("input.max_length", c.input.max_length, "An input has at most this many tokens.", 1, kMostCounted);
  s.add("input.pairs", c.input.pairs, "An input is a pair of documents.");
  s.add("input.image_width", c.input.image_width, "Images are this many pixels wide; 0: no images.", 0, kMostCounted);
  s.add("input.image_height", c.input.image_height, "Images are this many pixels high; 0: no images.", 0, kMostCounted);
  s.add("input.value_scale", c.input.value_scale,
        "Stored values are multiplied by this number before the model reads them.");
  s.add("input.classes", c.input.classes, "The classes have these names, in the order of the output.");
  s.add("input.blank", c.input.blank, "A pixel of value 0 is read as this token.", 0, kMostCounted);
  s.add("input.most_drawn", c.input.most_drawn,
        "The fullest training image has this many pixels above 0; 0: not counted.", 0, kMostCounted);
}

}  // namespace

void add_settings(Settings& s, ModelConfig& c, bool with_input) {
  add_without_pattern(s, c, with_input);
  add_pattern_settings(s, c);
}

void add_settings_to_write(Settings& s, ModelConfig& c) {
  add_without_pattern(s, c, true);
  if (!c.pattern.empty()) add_pattern_settings(s, c);
}

void apply_preset(ModelConfig& config, const Settings& settings) {
  name_attention_of_pattern(config, settings);
  nn::apply_preset(config.attention, settings, config.causal);
  complete_pattern_options(config);
}

void require_heads_fit(const ModelConfig& c) {
  if (c.head_dim == 0 && c.width % c.heads != 0) {
    throw UserError(fmt::format(
        "settings: model.width must be a multiple of model.heads (or set model.head_dim); got width {} and {} heads",
        c.width, c.heads));
  }
}

void require_possible(const ModelConfig& c) {
  require_heads_fit(c);
  if (c.causal && c.pooling == "cls") {
    throw UserError(
        "settings: with model.causal the class token, which comes first, sees nothing; set model.pooling=mean");
  }
  const nn::StochasticPositionConfig unset;
  if (c.positions != "stochastic" &&
      (c.stochastic.realizations != unset.realizations || c.stochastic.sines != unset.sines || c.stochastic.gated)) {
    throw UserError("settings: model.stochastic_* belong to model.positions=stochastic; got positions " + c.positions);
  }
  if (c.input.classes.size() < 2) throw UserError("the data have fewer than two classes; there is nothing to learn");
  if (c.positions == "grid") {
    require_images(c, "model.positions=grid tells rows and columns", "learned, sinusoidal or none");
  }
  require_scan_possible(c);
  require_blanks_can_be_skipped(c);
  require_attention_possible(c);
  require_memory(c, size_of(c, c.layers));
}

std::string to_toml(const ModelConfig& config) {
  return toml_of(config, add_settings_to_write);
}

ModelConfig model_config_from_toml(const std::string& text, const std::string& name) {
  const auto config = from_toml<ModelConfig>(text, name, add_all);
  require_possible(config);
  return config;
}

}  // namespace cosformer::models
