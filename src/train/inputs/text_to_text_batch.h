// Batches of an encoder-decoder on their way to the device.
#pragma once

#include "data/batches/batch.h"
#include "models/text_to_text/encoder_decoder.h"

namespace cosformer::train {

// A batch on the device. `end` is the tokenizer's <eod>.
struct SourceInputs {
  at::Tensor tokens, mask;  // [B, S] int32 and bool: each source and an <eod> behind it
};
SourceInputs source_inputs(const data::SequenceBatch& sources, std::int32_t end, at::Device device);

struct TextToTextInputs {
  SourceInputs source;
  at::Tensor inputs, targets;  // [B, T] int32 and int64: <eod> and the target; the target and <eod>, then kNoTarget
};
TextToTextInputs text_to_text_inputs(const data::Batch& batch, std::int32_t end, at::Device device);

// What the decoder says of a batch's targets: [B, T, width].
at::Tensor target_hidden(models::EncoderDecoder& model, const TextToTextInputs& inputs);

}  // namespace cosformer::train
