// The language model of a run with the tokenizer that belongs to it. The trained models of all kinds by themselves:
// runs/trained_models.h.
#pragma once

#include <memory>
#include <string>

#include "data/tokenizers/tokenizer.h"
#include "models/language/language_model.h"

namespace cosformer::runs {

struct LanguageRun {
  std::shared_ptr<models::LanguageModel> model;
  data::TokenizerPointer tokenizer;
};

// RUN/best.safetensors and RUN/tokenizer, or a bundle of them (runs/run_bundle.h); a model of bytes needs no
// tokenizer's file. Throws UserError when the run has no language model (yet), or a tokenizer that the model was not
// trained with.
LanguageRun open_language_run(const std::string& folder);

}  // namespace cosformer::runs
