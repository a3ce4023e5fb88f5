#include "train/inputs/device_batch.h"

#include <ATen/ATen.h>

namespace cosformer::train {
namespace {

// `owned` by the caller until the copy has been made; on the CPU it is cloned.
at::Tensor moved(const at::Tensor& owned, at::Device device) {
  if (device.is_cpu()) return owned.clone();
  return owned.pin_memory().to(device, /*non_blocking=*/true);
}

at::Tensor view_of(const void* data, at::IntArrayRef shape, at::ScalarType type) {
  return at::from_blob(const_cast<void*>(data), shape, at::TensorOptions(type));
}

// Rows of `value` are added up to `rows`. Sequences that fill up have one token: softmax over none is not a number.
at::Tensor filled(const at::Tensor& x, std::int64_t rows, std::int64_t value = 0) {
  if (x.size(0) >= rows) return x;
  std::vector<std::int64_t> missing = x.sizes().vec();
  missing[0] = rows - x.size(0);
  return at::cat({x, at::full(missing, value, x.options())});
}

models::Sequences sequences_on(const data::SequenceBatch& batch, at::Device device, std::int64_t rows) {
  models::Sequences result;
  const at::Tensor content = batch.tokens.empty() ? view_of(batch.values.data(), {batch.rows, batch.width}, at::kFloat)
                                                  : view_of(batch.tokens.data(), {batch.rows, batch.width}, at::kInt);
  result.content = moved(filled(content, rows), device);
  bool full = rows == 0;
  for (const std::int32_t length : batch.lengths) full = full && length == batch.width;
  if (!full) {
    const at::Tensor lengths = moved(filled(view_of(batch.lengths.data(), {batch.rows, 1}, at::kInt), rows, 1), device);
    result.mask = at::arange(batch.width, lengths.options()).unsqueeze(0).lt(lengths);
  }
  return result;
}

DeviceBatch batch_on(const data::Batch& batch, at::Device device, std::int64_t rows) {
  DeviceBatch result;
  result.first = sequences_on(batch.first, device, rows);
  if (batch.second.rows > 0) result.second = sequences_on(batch.second, device, rows);
  const auto count = static_cast<std::int64_t>(batch.labels.size());
  const at::Tensor labels = filled(view_of(batch.labels.data(), {count}, at::kInt), rows, kNoLabel);
  result.labels = moved(labels, device).to(at::kLong);
  return result;
}

}  // namespace

DeviceBatch to_device(const data::Batch& batch, at::Device device) {
  return batch_on(batch, device, 0);
}

DeviceBatch to_device_filled(const data::Batch& batch, at::Device device, std::int64_t rows) {
  return batch_on(batch, device, rows);
}

at::Tensor classification_loss(models::Classifier& model, const DeviceBatch& batch, double label_smoothing) {
  return at::cross_entropy_loss(logits_of(model, batch).to(at::kFloat), batch.labels, {}, at::Reduction::Mean, kNoLabel,
                                label_smoothing);
}

at::Tensor logits_of(models::Classifier& model, const DeviceBatch& batch) {
  return batch.second.content.defined() ? model.forward(batch.first, batch.second) : model.forward(batch.first);
}

}  // namespace cosformer::train
