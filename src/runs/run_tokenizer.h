// The tokenizer of a run: RUN/tokenizer, what its texts are read with.
#pragma once

#include <string>

#include "data/tokenizers/tokenizer.h"
#include "runs/run_config.h"

namespace cosformer::runs {

std::string tokenizer_path(const std::string& run);
// Saves it in a run that has none yet.
void keep_tokenizer(const std::string& run, const data::Tokenizer& tokenizer);
// The run's, or null when it has none. Throws UserError when it is not the one with the hash `expected`, unless that is
// empty.
data::TokenizerPointer tokenizer_of_run(const std::string& run, const std::string& expected = "");

// The run's, where it has one; otherwise the one that data.tokenizer names, or null where that is to be learned. Throws
// UserError when the run has another one than the settings name.
data::TokenizerPointer kept_or_named_tokenizer(const RunConfig& config, const std::string& run);

// The tokenizer that a classifier's texts are to be read with: that of the language model it begins as, or the file of
// data.tokenizer; the run's own copy, where there is one. Null: texts are bytes, or the task is none of text. Throws
// UserError for what cannot be.
data::TokenizerPointer tokenizer_for_classifier(const RunConfig& config, const std::string& run);

// The tokenizer that a trained classifier reads its texts with; null: it reads bytes as they are. Throws UserError when
// RUN/tokenizer is not the one that it was trained with.
data::TokenizerPointer tokenizer_of_classifier(const std::string& run);

}  // namespace cosformer::runs
