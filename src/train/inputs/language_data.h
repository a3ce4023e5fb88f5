// From a run's settings to the text and the tokenizer of a language model.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "data/corpus/corpus.h"
#include "data/tokenizers/tokenizer_learning.h"
#include "runs/run_folder.h"

namespace cosformer::train {

struct LanguageData {
  data::Corpus corpus;             // with its tokenizer
  std::string description;         // one line: what there is
  std::vector<std::string> notes;  // what one should know before believing a number
};

// Begins a progress line of `total` bytes (0: not known) for what is said; gives what is called with bytes done and
// their total.
using TextProgress = std::function<data::Progress(const std::string& what)>;

// The tokenizer that the settings name, learned where they ask for it; of a run that has one, that one. Throws
// UserError when the run has another one than the settings name.
data::TokenizerPointer tokenizer_for(const runs::RunConfig& config, const std::string& run,
                                     const TextProgress& progress);
// The same where `learn` knows the texts.
using LearnTokenizer = std::function<data::TokenizerPointer(const data::LearningOptions& options)>;
data::TokenizerPointer tokenizer_for(const runs::RunConfig& config, const std::string& run,
                                     const TextProgress& progress, const LearnTokenizer& learn);

LanguageData open_language_data(const runs::RunConfig& config, const data::TokenizerPointer& tokenizer,
                                const TextProgress& progress);

}  // namespace cosformer::train
