#include "train/device_batch.h"

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

models::Sequences to_device(const data::SequenceBatch& batch, at::Device device) {
  models::Sequences result;
  result.content = batch.tokens.empty()
                       ? moved(view_of(batch.values.data(), {batch.rows, batch.width}, at::kFloat), device)
                       : moved(view_of(batch.tokens.data(), {batch.rows, batch.width}, at::kInt), device);
  bool full = true;
  for (const std::int32_t length : batch.lengths) full = full && length == batch.width;
  if (!full) {
    const at::Tensor lengths = moved(view_of(batch.lengths.data(), {batch.rows, 1}, at::kInt), device);
    result.mask = at::arange(batch.width, lengths.options()).unsqueeze(0).lt(lengths);
  }
  return result;
}

}  // namespace

DeviceBatch to_device(const data::Batch& batch, at::Device device) {
  DeviceBatch result;
  result.first = to_device(batch.first, device);
  if (batch.second.rows > 0) result.second = to_device(batch.second, device);
  const auto count = static_cast<std::int64_t>(batch.labels.size());
  result.labels = moved(view_of(batch.labels.data(), {count}, at::kInt), device).to(at::kLong);
  return result;
}

at::Tensor logits_of(models::Classifier& model, const DeviceBatch& batch) {
  return batch.second.content.defined() ? model.forward(batch.first, batch.second) : model.forward(batch.first);
}

}  // namespace cosformer::train
