// Fine-tuning: a classifier whose encoder begins as a language model that was trained before.
#pragma once

#include "data/tokenizers/tokenizer.h"
#include "models/classifier.h"
#include "models/language/language_model.h"
#include "train/run_folder.h"

namespace cosformer::train {

// With train.init: makes the settings of the encoder those of that run's model, and data.max_length, where nobody has
// set it, its greatest length. Throws UserError for settings that contradict it, and for tasks that are not of text.
void take_encoder_settings(RunConfig& config, const Settings& settings);

// Copies all weights but the output's. Token t of the language model is token t + data::kFirstToken of the classifier;
// the two before it, and the class token, stay as they were drawn. Throws UserError when the models do not fit.
void take_encoder(const models::LanguageModel& from, models::Classifier& into);

// The texts of a task as tokens, at most `max_length` of each.
data::TaskData tokenized(const data::TaskData& text, const data::Tokenizer& tokenizer, std::int64_t max_length);

// `config` for reading texts that are to be tokenised: not cut by bytes.
data::DataConfig uncut(const data::DataConfig& config);

// The tokenizer that a classifier's texts are to be read with: that of the language model it begins as, or the file of
// data.tokenizer; the run's own copy, where there is one. Null: texts are bytes, or the task is none of text. Throws
// UserError for what cannot be.
data::TokenizerPointer tokenizer_for_classifier(const RunConfig& config, const std::string& run);

// The tokenizer that a trained classifier reads its texts with; null: it reads bytes as they are. Throws UserError when
// RUN/tokenizer is not the one that it was trained with.
data::TokenizerPointer tokenizer_of_classifier(const std::string& run);

}  // namespace cosformer::train
