#include "train/inputs/text_to_text_data.h"

#include <algorithm>

#include <ATen/ATen.h>

#include "data/batches/lm_batches.h"
#include "data/tokenizers/tokenized_text.h"
#include "train/initial_weights.h"

namespace cosformer::train {
namespace {

std::string_view text_of(const data::SequenceView& sequence) {
  return {static_cast<const char*>(sequence.data), sequence.size};
}

data::TokenizerPointer learned_from(const data::Dataset& texts, const data::LearningOptions& options) {
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const data::Lengths lengths = texts.lengths(i);
    bytes += static_cast<std::uint64_t>(lengths.first + lengths.second);
  }
  const data::ReadTexts read = [&](const std::function<bool(std::string_view)>& use) {
    for (std::size_t i = 0; i < texts.size(); ++i) {
      const data::Example example = texts.get(i);
      if (!use(text_of(example.first)) || !use(text_of(example.second))) return;
    }
  };
  return data::learn_tokenizer(read, bytes, options);
}

TextToTextData in_tokens(const data::TaskData& text, const data::TokenizerPointer& tokenizer, std::int64_t most) {
  TextToTextData result{text, tokenizer};
  data::TaskData& task = result.task;
  task.max_length = 1;
  std::size_t cut = 0;
  for (data::DatasetPointer* part : {&task.train, &task.valid, &task.test}) {
    const data::DatasetPointer longer = data::tokenize_dataset(*part, *tokenizer, most + 1);  // shows what is cut
    for (std::size_t i = 0; i < longer->size(); ++i) {
      const data::Lengths lengths = longer->lengths(i);
      cut += (lengths.first > most ? 1 : 0) + (lengths.second > most ? 1 : 0);
    }
    *part = data::shorten(longer, most);
    task.max_length = std::max(task.max_length, (*part)->info().max_length);
  }
  task.notes.push_back("texts are read as " + tokenizer->kind_name() + " of " +
                       std::to_string(tokenizer->vocabulary()) + " tokens");
  if (cut > 0) {
    task.notes.push_back(std::to_string(cut) + " texts are longer than " + std::to_string(most) +
                         " tokens (data.max_length) and were cut");
  }
  return result;
}

at::Tensor on_device(const at::Tensor& host, at::Device device) {
  return device.is_cpu() ? host : host.pin_memory().to(device, /*non_blocking=*/true);
}

// Token `at` of a row, as the tokenizer numbers it.
std::int32_t token(const data::SequenceBatch& batch, std::int64_t row, std::int64_t at) {
  return batch.tokens[static_cast<std::size_t>(row * batch.width + at)] - data::kFirstToken;
}

}  // namespace

TextToTextData open_text_to_text_data(const runs::RunConfig& config, const std::string& run,
                                      const TextProgress& progress) {
  const data::TaskData text = data::open_task(uncut(config.data));
  const data::TokenizerPointer tokenizer = tokenizer_for(
      config, run, progress, [&](const data::LearningOptions& options) { return learned_from(*text.train, options); });
  return in_tokens(text, tokenizer, data::effective_max_length(config.data));
}

TextToTextData open_text_to_text_data(const runs::RunConfig& config, const data::TokenizerPointer& tokenizer,
                                      const models::EncoderDecoderConfig& model) {
  return in_tokens(data::open_task(uncut(config.data)), tokenizer, text_input(model).max_length);
}

models::InputConfig text_input(const models::EncoderDecoderConfig& config) {
  models::InputConfig input = config.model.input;
  --input.max_length;
  return input;
}

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

StepInputs step_inputs(const TextToTextInputs& inputs) {
  return {inputs.source.tokens, inputs.source.mask, inputs.inputs, inputs.targets};
}

TextToTextInputs text_to_text_inputs(const StepInputs& inputs) {
  return {{inputs.at(0), inputs.at(1)}, inputs.at(2), inputs.at(3)};
}

at::Tensor target_hidden(models::EncoderDecoder& model, const TextToTextInputs& inputs) {
  const models::EncodedSource source = model.encode(inputs.source.tokens, inputs.source.mask);
  return model.hidden(inputs.inputs, inputs.targets.ne(data::kNoTarget), source);
}

}  // namespace cosformer::train
