// From a run's settings to the pairs of texts of an encoder-decoder, in tokens.
#pragma once

#include "models/text_to_text/encoder_decoder.h"
#include "train/inputs/language_data.h"

namespace cosformer::train {

struct TextToTextData {
  data::TaskData task;  // in tokens; task.max_length is of the longest text
  data::TokenizerPointer tokenizer;
};

// Reads the texts, then has the tokenizer that the settings name, learned from the training part's sources and targets
// where they ask for it; of a run that has one, that one.
TextToTextData open_text_to_text_data(const runs::RunConfig& config, const std::string& run,
                                      const TextProgress& progress);

// The same in the tokens of a trained model, texts cut to its greatest length.
TextToTextData open_text_to_text_data(const runs::RunConfig& config, const data::TokenizerPointer& tokenizer,
                                      const models::EncoderDecoderConfig& model);

// What the model reads, as batches are cut for it: texts without the <eod> that is added to them.
models::InputConfig text_input(const models::EncoderDecoderConfig& config);

}  // namespace cosformer::train
