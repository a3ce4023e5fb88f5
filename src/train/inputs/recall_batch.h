// Batches of the task recall on their way to the device.
#pragma once

#include "train/inputs/language_batch.h"

namespace cosformer::train {

// The targets are few, and the model is asked at their places alone, as a masked one is: `most` places, so that all
// batches have one shape; where there are fewer targets, the rest is kNoTarget. Throws std::invalid_argument for more.
MaskedInputs recall_inputs(const data::LmBatch& batch, std::int64_t most, at::Device device);

}  // namespace cosformer::train
