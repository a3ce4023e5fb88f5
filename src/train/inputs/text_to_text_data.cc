#include "train/inputs/text_to_text_data.h"

#include <algorithm>

#include <fmt/core.h>

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
  task.notes.push_back(
      fmt::format("texts are read as {} of {} tokens", tokenizer->kind_name(), tokenizer->vocabulary()));
  if (cut > 0) {
    task.notes.push_back(fmt::format("{} texts are longer than {} tokens (data.max_length) and were cut", cut, most));
  }
  return result;
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

}  // namespace cosformer::train
