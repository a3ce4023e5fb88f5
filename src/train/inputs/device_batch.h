// A batch on its way from plain arrays to the model: tensors on the device.
#pragma once

#include "data/batches/batch.h"
#include "models/classifier.h"

namespace cosformer::train {

struct DeviceBatch {
  models::Sequences first, second;  // `second` undefined unless there are pairs
  at::Tensor labels;                // [B] int64
  at::Tensor symmetries;            // of images: 1 where they may be mirrored and turned, 0 not; undefined: never
};

// Labels of rows that only fill up a batch; the loss leaves them out.
constexpr std::int64_t kNoLabel = -100;

// The mask is left out where every row is full. Copies to a GPU go through pinned memory and are not waited for.
DeviceBatch to_device(const data::Batch& batch, at::Device device);

// The same with rows of one padding token added up to `rows` and always a mask, so that batches of one width have one
// shape.
DeviceBatch to_device_filled(const data::Batch& batch, at::Device device, std::int64_t rows);

// The mean cross-entropy of the rows that have labels.
at::Tensor classification_loss(models::Classifier& model, const DeviceBatch& batch, double label_smoothing);

// The model's answer to it: logits [B, classes].
at::Tensor logits_of(models::Classifier& model, const DeviceBatch& batch);

}  // namespace cosformer::train
