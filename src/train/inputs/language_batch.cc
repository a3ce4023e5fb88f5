#include "train/inputs/language_batch.h"

#include <algorithm>
#include <cmath>

#include <ATen/ATen.h>

namespace cosformer::train {
namespace {

// A copy on the device; to a GPU through pinned memory, not waited for.
at::Tensor on_device(const std::vector<std::int32_t>& numbers, at::IntArrayRef shape, at::Device device) {
  const at::Tensor view = at::from_blob(const_cast<std::int32_t*>(numbers.data()), shape, at::TensorOptions(at::kInt));
  return device.is_cpu() ? view.clone() : view.pin_memory().to(device, /*non_blocking=*/true);
}

at::Tensor boundaries(const data::LmBatch& batch, bool documents_apart, at::Device device) {
  if (!documents_apart) return {};
  return on_device(batch.offsets, {static_cast<std::int64_t>(batch.offsets.size())}, device);
}

// More masks than this are drawn once in a billion batches; those are left out.
std::int64_t most_masks(std::int64_t tokens, double rate) {
  const auto count = static_cast<double>(tokens);
  const double most = count * rate + 6 * std::sqrt(count * rate * (1 - rate));
  return std::clamp<std::int64_t>(std::llround(std::ceil(most)), 1, tokens);
}

}  // namespace

LanguageInputs language_inputs(const data::LmBatch& batch, bool documents_apart, at::Device device) {
  return {on_device(batch.inputs, {batch.rows, batch.width}, device),
          on_device(batch.targets, {batch.rows, batch.width}, device).to(at::kLong),
          boundaries(batch, documents_apart, device)};
}

MaskedInputs masked_inputs(const data::LmBatch& batch, const data::Tokenizer& tokenizer, const data::MaskOptions& masks,
                           std::uint64_t seed, bool documents_apart, at::Device device) {
  const std::uint64_t number = (batch.position.epoch << 40) + batch.position.batch;
  const data::MaskedTokens masked = data::mask_tokens(batch.targets, tokenizer, masks, seed, number);
  const std::int64_t most = most_masks(batch.rows * batch.width, masks.rate);
  std::vector<std::int32_t> places, targets;
  for (std::size_t at = 0; at < masked.targets.size() && static_cast<std::int64_t>(places.size()) < most; ++at) {
    if (masked.targets[at] == data::kNoTarget) continue;
    places.push_back(static_cast<std::int32_t>(at));
    targets.push_back(masked.targets[at]);
  }
  places.resize(static_cast<std::size_t>(most), 0);
  targets.resize(static_cast<std::size_t>(most), data::kNoTarget);
  at::Tensor present;
  if (!documents_apart && batch.predictions < batch.rows * batch.width) {
    present = on_device(batch.targets, {batch.rows, batch.width}, device).ne(data::kNoTarget);
  }
  return {on_device(masked.inputs, {batch.rows, batch.width}, device), on_device(places, {most}, device).to(at::kLong),
          on_device(targets, {1, most}, device).to(at::kLong), boundaries(batch, documents_apart, device), present};
}

at::Tensor masked_hidden(models::LanguageModel& model, const MaskedInputs& inputs) {
  return model.hidden(inputs.tokens, inputs.cu_seqlens, inputs.present)
      .flatten(0, 1)
      .index_select(0, inputs.places)
      .unsqueeze(0);
}

}  // namespace cosformer::train
