#include "nn/positions/token_order_note.h"

#include <fmt/core.h>

#include "nn/mechanisms/attention_traits.h"

namespace cosformer::nn {

bool is_blind_to_order(const AttentionConfig& c) {
  if (c.convolution > 1) return false;
  if (c.name == "cosformer" || c.name == "cosformer_plus") return !c.reweight && !c.decay;
  if (c.name == "linear") return !c.decay;
  if (c.name == "rfa") return !c.variant.ends_with("gated");
  return c.name == "softmax" || c.name == "performer" || c.name == "one_vs_each";
}

std::string note_on_order(const AttentionConfig& config, const std::string& positions, bool causal) {
  if (positions != "none" || !is_blind_to_order(config)) return "";
  const std::string best = traits_of(config.name).no_rotary.empty() ? "rotary" : "learned";
  return fmt::format(
      "with attention \"{}\" and model.positions=none nothing tells the order of tokens{}: the model will be poor. Set "
      "model.positions={}{}",
      config.name, causal ? ", only which come before" : "", best,
      config.name == "cosformer" ? "" : ", or attention.convolution=4, or both");
}

}  // namespace cosformer::nn
