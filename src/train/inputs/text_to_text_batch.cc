#include "train/inputs/text_to_text_batch.h"

#include <algorithm>

#include <ATen/ATen.h>

#include "data/batches/lm_batches.h"

namespace cosformer::train {
namespace {

at::Tensor on_device(const at::Tensor& host, at::Device device) {
  return device.is_cpu() ? host : host.pin_memory().to(device, /*non_blocking=*/true);
}

// Token `at` of a row, as the tokenizer numbers it.
std::int32_t token(const data::SequenceBatch& batch, std::int64_t row, std::int64_t at) {
  return batch.tokens[static_cast<std::size_t>(row * batch.width + at)] - data::kFirstToken;
}

}  // namespace

SourceInputs source_inputs(const data::SequenceBatch& sources, std::int32_t end, at::Device device) {
  const std::int64_t width = sources.width + 1;
  const at::Tensor tokens = at::full({sources.rows, width}, end, at::kInt);
  const at::Tensor mask = at::zeros({sources.rows, width}, at::kBool);
  for (std::int64_t row = 0; row < sources.rows; ++row) {
    const std::int64_t length = sources.lengths[static_cast<std::size_t>(row)];
    std::int32_t* place = tokens.data_ptr<std::int32_t>() + row * width;
    for (std::int64_t at = 0; at < length; ++at) place[at] = token(sources, row, at);
    std::fill_n(mask.data_ptr<bool>() + row * width, length + 1, true);
  }
  return {on_device(tokens, device), on_device(mask, device)};
}

TextToTextInputs text_to_text_inputs(const data::Batch& batch, std::int32_t end, at::Device device) {
  const data::SequenceBatch& t = batch.second;
  const std::int64_t width = t.width + 1;
  const at::Tensor inputs = at::full({t.rows, width}, end, at::kInt);
  const at::Tensor targets = at::full({t.rows, width}, data::kNoTarget, at::kLong);
  for (std::int64_t row = 0; row < t.rows; ++row) {
    const std::int64_t length = t.lengths[static_cast<std::size_t>(row)];
    std::int32_t* input = inputs.data_ptr<std::int32_t>() + row * width;
    std::int64_t* target = targets.data_ptr<std::int64_t>() + row * width;
    for (std::int64_t at = 0; at < length; ++at)
      input[at + 1] = static_cast<std::int32_t>(target[at] = token(t, row, at));
    target[length] = end;
  }
  return {source_inputs(batch.first, end, device), on_device(inputs, device), on_device(targets, device)};
}

at::Tensor target_hidden(models::EncoderDecoder& model, const TextToTextInputs& inputs) {
  const models::EncodedSource source = model.encode(inputs.source.tokens, inputs.source.mask);
  return model.hidden(inputs.inputs, inputs.targets.ne(data::kNoTarget), source);
}

}  // namespace cosformer::train
