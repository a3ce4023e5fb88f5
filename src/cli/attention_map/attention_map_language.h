// `cosformer attention-map` of language models: a text of the user's in place of an example.
#pragma once

#include <string>
#include <vector>

#include "cli/attention_map/attention_look.h"

namespace cosformer::cli {

struct PromptOptions {
  std::string text, file;  // one of them

  // The flag that was given, or nothing.
  std::string given() const { return !text.empty() ? "--prompt" : !file.empty() ? "--prompt-file" : ""; }
};

// The weights of a head of each run's model for the text, each in its own tokens, behind the <eod> before every text.
// Throws UserError for runs that are no language models and texts that are none, or too long.
void map_language_models(const PromptOptions& prompt, const LookOptions& options, const std::vector<std::string>& runs);

}  // namespace cosformer::cli
