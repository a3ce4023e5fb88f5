#include "data/batches/lm_masking.h"

#include "base/error.h"
#include "base/random.h"
#include "data/batches/lm_batches.h"

namespace cosformer::data {

MaskedTokens mask_tokens(std::span<const std::int32_t> tokens, const Tokenizer& tokenizer, const MaskOptions& options,
                         std::uint64_t seed, std::uint64_t step) {
  const auto is_rate = [](double rate) { return rate >= 0 && rate <= 1; };
  if (!is_rate(options.rate) || !is_rate(options.as_mask) || !is_rate(options.as_random) ||
      !is_rate(options.as_mask + options.as_random)) {
    throw UserError("masking rates must be from 0 to 1, the shares of masks and random tokens together too");
  }
  const auto vocabulary = static_cast<std::size_t>(tokenizer.vocabulary());
  std::vector<bool> special(vocabulary, false);
  for (const SpecialToken& token : tokenizer.specials()) special[static_cast<std::size_t>(token.id)] = true;
  std::vector<std::int32_t> ordinary;
  for (std::size_t id = 0; id < vocabulary; ++id) {
    if (!special[id]) ordinary.push_back(static_cast<std::int32_t>(id));
  }

  MaskedTokens masked;
  masked.inputs.assign(tokens.begin(), tokens.end());
  masked.targets.assign(tokens.size(), kNoTarget);
  Random random(seed, RandomStream::kMasking, step);
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    // Drawn for every place, so that each place's fate depends on no other token.
    const double chosen = random.unit(), how = random.unit(), which = random.unit();
    if (tokens[i] == kNoTarget) {
      masked.inputs[i] = tokenizer.end_of_document();
      continue;
    }
    if (special.at(static_cast<std::size_t>(tokens[i])) || chosen >= options.rate) continue;
    masked.targets[i] = tokens[i];
    ++masked.predictions;
    if (how < options.as_mask) {
      masked.inputs[i] = tokenizer.mask();
    } else if (how < options.as_mask + options.as_random && !ordinary.empty()) {
      masked.inputs[i] = ordinary[static_cast<std::size_t>(which * static_cast<double>(ordinary.size()))];
    }
  }
  return masked;
}

}  // namespace cosformer::data
