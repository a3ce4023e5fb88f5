// A masked language model that says what may stand in a text's gaps.
#pragma once

#include <memory>

#include "data/tokenizers/tokenizer.h"
#include "models/language/language_model.h"
#include "serve/asked_model.h"

namespace cosformer::serve {

std::unique_ptr<GapFiller> masked_filler(std::shared_ptr<models::LanguageModel> model,
                                         data::TokenizerPointer tokenizer);

}  // namespace cosformer::serve
