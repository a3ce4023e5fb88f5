// What a step is computed from, on the device: one struct for each kind of batch. A job knows which of them is its own;
// a captured step sees their tensors alone.
#pragma once

#include <variant>
#include <vector>

#include "train/inputs/device_batch.h"
#include "train/inputs/language_batch.h"
#include "train/inputs/text_to_text_batch.h"

namespace cosformer::train {

using StepInputs = std::variant<DeviceBatch, LanguageInputs, MaskedInputs, TextToTextInputs>;

// All tensors in it, in an order of its kind; some may be undefined.
std::vector<at::Tensor*> tensors_of(StepInputs& inputs);

}  // namespace cosformer::train
