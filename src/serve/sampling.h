// Which token comes next: from a model's logits to one choice. Plain numbers; no model, no device.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace cosformer::serve {

// Applied in this order. The defaults change nothing.
struct SamplingOptions {
  double repetition_penalty = 1;  // divides positive logits of recent tokens, multiplies negative ones
  double temperature = 1;         // divides logits; 0: the likeliest token, always
  std::int64_t top_k = 0;         // only so many of the likeliest; 0: all
  double top_p = 1;               // only the fewest of the likeliest whose probabilities reach this sum
  double min_p = 0;               // only those at least so likely, relative to the likeliest

  // Throws UserError for what makes no sense.
  void require_possible() const;
};

// Probabilities after all of it, of sum 1. Tokens in `forbidden` get none. Of tokens that are equally likely the ones
// with lower ids come first. Logits of −∞ are never chosen; if none is finite or one is NaN, Failure is thrown.
std::vector<double> next_token_probabilities(std::span<const float> logits, std::span<const std::int32_t> recent,
                                             std::span<const std::int32_t> forbidden, const SamplingOptions& options);

// The token at which the sum of probabilities first exceeds `unit` in [0, 1).
std::int32_t choose(std::span<const double> probabilities, double unit);

}  // namespace cosformer::serve
