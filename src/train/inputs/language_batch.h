// Batches of language models on their way to the device.
#pragma once

#include "data/batches/lm_batches.h"
#include "data/batches/lm_masking.h"
#include "models/language/language_model.h"

namespace cosformer::train {

struct LanguageInputs {
  at::Tensor tokens, targets;  // [R, W] int32 and int64
  at::Tensor cu_seqlens;       // int32; undefined unless documents are kept apart
  bool begins_state = false;   // with a carried state: it begins anew here
};
LanguageInputs language_inputs(const data::LmBatch& batch, bool documents_apart, at::Device device);

struct MaskedInputs {
  at::Tensor tokens;   // [R, W] int32, with masks
  at::Tensor places;   // [K] int64 in the flattened tokens; K depends on R · W and the rate alone
  at::Tensor targets;  // [1, K] int64: what was there; kNoTarget where there are fewer than K
  at::Tensor cu_seqlens;
  at::Tensor present;  // [R, W] bool; undefined where all are there, or documents are kept apart
};
// The masks are a function of `seed` and the batch's position.
MaskedInputs masked_inputs(const data::LmBatch& batch, const data::Tokenizer& tokenizer, const data::MaskOptions& masks,
                           std::uint64_t seed, bool documents_apart, at::Device device);

// What a masked model says at the places: [1, K, width].
at::Tensor masked_hidden(models::LanguageModel& model, const MaskedInputs& inputs);

}  // namespace cosformer::train
