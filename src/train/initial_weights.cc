#include "train/initial_weights.h"

#include <algorithm>

#include <ATen/ATen.h>
#include <fmt/core.h>

#include "base/error.h"
#include "data/tokenizers/tokenized_text.h"

namespace cosformer::train {
namespace {

// Longer texts than anybody classifies; tokens, not bytes, are what is counted.
constexpr std::int64_t kUncutBytes = std::int64_t{1} << 24;

}  // namespace

void take_encoder(const models::LanguageModel& from, models::Classifier& into) {
  at::NoGradGuard no_grad;
  auto targets = into.named_parameters();
  for (const auto& item : into.named_buffers()) targets.insert(item.key(), item.value());
  auto sources = from.named_parameters();
  for (const auto& item : from.named_buffers()) sources.insert(item.key(), item.value());
  const auto misfit = [](const std::string& name) {
    return UserError(fmt::format("train.init: '{}' of the language model does not fit the classifier's encoder", name));
  };
  for (const auto& item : sources) {
    const std::string& name = item.key();
    if (name == "output.weight") continue;
    at::Tensor* target = targets.find("encoder." + name);
    if (target == nullptr) throw misfit(name);
    at::Tensor place = *target;
    if (name == "token_embedding.weight") place = place.narrow(0, data::kFirstToken, place.size(0) - data::kFirstToken);
    const bool has_class_token = into.config().pooling == "cls";
    if (name == "position_embedding" && has_class_token) place = place.narrow(0, 1, place.size(0) - 1);
    at::Tensor source = item.value();
    if (name == "position_embedding" && place.size(0) < source.size(0)) source = source.narrow(0, 0, place.size(0));
    if (place.sizes() != source.sizes()) throw misfit(name);
    place.copy_(source);
  }
}

data::DataConfig uncut(const data::DataConfig& config) {
  data::DataConfig result = config;
  result.max_length = kUncutBytes;
  return result;
}

data::TaskData tokenized(const data::TaskData& text, const data::Tokenizer& tokenizer, std::int64_t max_length) {
  data::TaskData task = text;
  for (data::DatasetPointer* part : {&task.train, &task.valid, &task.test}) {
    *part = data::tokenize_dataset(*part, tokenizer, max_length);
  }
  task.max_length = max_length;
  task.notes.push_back(fmt::format("texts are read as {} of {} tokens, at most {} of each", tokenizer.kind_name(),
                                   tokenizer.vocabulary(), max_length));
  return task;
}

}  // namespace cosformer::train
