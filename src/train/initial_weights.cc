#include "train/initial_weights.h"

#include <algorithm>

#include <ATen/ATen.h>

#include "base/error.h"
#include "base/formats/safetensors.h"
#include "data/tokenizers/tokenized_text.h"
#include "train/inputs/language_data.h"

namespace cosformer::train {
namespace {

// Longer texts than anybody classifies; tokens, not bytes, are what is counted.
constexpr std::int64_t kUncutBytes = std::int64_t{1} << 24;

bool reads_text(const std::string& task) {
  return task == "text_files" || task == "text_pairs" || task == "text";
}

// Settings of the classifier that the language model has no say in.
bool is_free(const std::string& key) {
  return key == "model.dropout" || key == "model.pooling" || key == "model.pooled_norm" || key == "model.pair_features";
}

std::vector<Settings::Description> descriptions_of(models::ModelConfig config) {
  Settings settings;
  models::add_settings(settings, config, false);
  return settings.descriptions();
}

}  // namespace

void take_encoder_settings(RunConfig& config, const Settings& settings) {
  if (config.train.init.empty()) return;
  if (!reads_text(config.data.task)) {
    throw UserError("settings: train.init begins classifiers of text (text_files, text_pairs, text); the task is '" +
                    config.data.task + "'");
  }
  const models::LanguageModelConfig from = load_trained_language_model(config.train.init)->config();
  if (!from.language.cutoffs.empty()) {
    throw UserError("settings: train.init cannot begin from '" + config.train.init +
                    "': its embeddings are of different widths (language.cutoffs)");
  }
  const auto wanted = descriptions_of(config.model), there = descriptions_of(from.model);
  std::string free_settings;  // as a settings file has them
  for (std::size_t at = 0; at < wanted.size(); ++at) {
    if (is_free(wanted[at].key)) {
      free_settings += wanted[at].key + " = " + wanted[at].value + "\n";
      continue;
    }
    if (!settings.was_set(wanted[at].key) || wanted[at].value == there[at].value) continue;
    throw UserError("settings: " + wanted[at].key + " is " + wanted[at].value + ", but train.init='" +
                    config.train.init + "' has " + there[at].value + "; leave it out");
  }
  models::ModelConfig model = from.model;
  model.input = config.model.input;
  Settings own;
  models::add_settings(own, model, false);
  own.read_toml(free_settings, "the classifier's settings");
  const std::int64_t longest = from.model.input.max_length;
  const bool has_horizon = model.attention.name == "cosformer" || model.attention.name == "cosformer_plus";
  if (has_horizon && model.attention.horizon == 0) model.attention.horizon = static_cast<double>(longest);
  config.model = model;
  if (config.data.max_length == 0) config.data.max_length = longest - (model.pooling == "cls" ? 1 : 0);
}

void take_encoder(const models::LanguageModel& from, models::Classifier& into) {
  at::NoGradGuard no_grad;
  auto targets = into.named_parameters();
  for (const auto& item : into.named_buffers()) targets.insert(item.key(), item.value());
  auto sources = from.named_parameters();
  for (const auto& item : from.named_buffers()) sources.insert(item.key(), item.value());
  const auto misfit = [](const std::string& name) {
    return UserError("train.init: '" + name + "' of the language model does not fit the classifier's encoder");
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
  task.notes.push_back("texts are read as " + tokenizer.kind_name() + " of " + std::to_string(tokenizer.vocabulary()) +
                       " tokens, at most " + std::to_string(max_length) + " of each");
  return task;
}

data::TokenizerPointer tokenizer_for_classifier(const RunConfig& config, const std::string& run) {
  const std::string &init = config.train.init, &named = config.text.tokenizer;
  if (!init.empty()) {
    const data::TokenizerPointer kept = tokenizer_of_run(run);
    return kept ? kept : tokenizer_of_run(init, load_trained_language_model(init)->config().tokenizer);
  }
  if (named == "bytes") return nullptr;
  if (!reads_text(config.data.task)) {
    throw UserError("settings: data.tokenizer is for texts; the task '" + config.data.task + "' has none");
  }
  if (named == "words" || named == "sentencepiece") {
    throw UserError("settings: data.tokenizer='" + named +
                    "' is learned by language models alone; for a classifier give the file of one (cosformer data "
                    "tokenizer)");
  }
  if (config.data.max_length == 0) {
    throw UserError("settings: with data.tokenizer, say how many tokens of a text are read: data.max_length");
  }
  return tokenizer_for(config, run, {});
}

data::TokenizerPointer tokenizer_of_classifier(const std::string& run) {
  const safetensors::Reader file(trained_weights_path(run));
  const auto found = file.metadata().find("cosformer.tokenizer");
  return found == file.metadata().end() ? nullptr : tokenizer_of_run(run, found->second);
}

}  // namespace cosformer::train
