// Fine-tuning: a classifier whose encoder begins as a language model that was trained before.
#pragma once

#include "data/tokenizers/tokenizer.h"
#include "models/classifier.h"
#include "models/language/language_model.h"
#include "runs/run_folder.h"

namespace cosformer::train {

// Copies all weights but the output's. Token t of the language model is token t + data::kFirstToken of the classifier;
// the two before it, and the class token, stay as they were drawn. Throws UserError when the models do not fit.
void take_encoder(const models::LanguageModel& from, models::Classifier& into);

// The texts of a task as tokens, at most `max_length` of each.
data::TaskData tokenized(const data::TaskData& text, const data::Tokenizer& tokenizer, std::int64_t max_length);

// `config` for reading texts that are to be tokenised: not cut by bytes.
data::DataConfig uncut(const data::DataConfig& config);

}  // namespace cosformer::train
