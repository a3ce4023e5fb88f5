// A batch on its way from plain arrays to the model: tensors on the device.
#pragma once

#include "data/batch.h"
#include "models/classifier.h"

namespace cosformer::train {

struct DeviceBatch {
  models::Sequences first, second;  // `second` undefined unless there are pairs
  at::Tensor labels;                // [B] int64
};

// The mask is left out where every row is full. Copies to a GPU go through pinned memory and are not waited for.
DeviceBatch to_device(const data::Batch& batch, at::Device device);

// The model's answer to it: logits [B, classes].
at::Tensor logits_of(models::Classifier& model, const DeviceBatch& batch);

}  // namespace cosformer::train
