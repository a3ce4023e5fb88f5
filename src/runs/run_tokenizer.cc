#include "runs/run_tokenizer.h"

#include <filesystem>

#include <fmt/core.h>

#include "base/error.h"
#include "base/formats/safetensors.h"
#include "data/tokenizers/tokenizer_file.h"
#include "runs/encoder_settings.h"
#include "runs/run_bundle.h"
#include "runs/run_folder.h"
#include "runs/trained_models.h"

namespace cosformer::runs {
namespace {

namespace fs = std::filesystem;

bool is_learned(const std::string& tokenizer) {
  return tokenizer == "words" || tokenizer == "sentencepiece";
}

}  // namespace

std::string tokenizer_path(const std::string& run) {
  return (fs::path(run) / "tokenizer").string();
}

void keep_tokenizer(const std::string& run, const data::Tokenizer& tokenizer) {
  if (!fs::exists(tokenizer_path(run))) data::save_tokenizer(tokenizer_path(run), tokenizer);
}

data::TokenizerPointer tokenizer_of_run(const std::string& run, const std::string& expected) {
  const std::string path = tokenizer_path(run);
  if (is_file(run)) {
    const BundleContent bundle = read_bundle(run, /*check_all=*/false);
    if (!bundle.tokenizer) return nullptr;
    data::TokenizerPointer tokenizer = data::parse_tokenizer(*bundle.tokenizer, run);
    if (!expected.empty()) data::require_tokenizer(*tokenizer, expected, fmt::format("the model of '{}'", run));
    return tokenizer;
  }
  if (!fs::exists(path)) {
    if (expected.empty()) return nullptr;
    throw UserError(fmt::format("the run '{}' has lost its tokenizer ('{}'); copy it back", run, path));
  }
  data::TokenizerPointer tokenizer = data::open_tokenizer(path);
  if (!expected.empty()) data::require_tokenizer(*tokenizer, expected, fmt::format("the model of the run '{}'", run));
  return tokenizer;
}

data::TokenizerPointer kept_or_named_tokenizer(const RunConfig& config, const std::string& run) {
  const std::string& named = config.text.tokenizer;
  data::TokenizerPointer kept = tokenizer_of_run(run);
  if (kept) {
    // A file that has gone is no reason to stop: the run has its own copy.
    if (named == "bytes" || (!is_learned(named) && fs::exists(named))) {
      data::require_tokenizer(*data::open_tokenizer(named), kept->hash(), fmt::format("the run '{}'", run));
    }
    return kept;
  }
  return is_learned(named) ? nullptr : data::open_tokenizer(named);
}

data::TokenizerPointer tokenizer_for_classifier(const RunConfig& config, const std::string& run) {
  const std::string &init = config.train.init, &named = config.text.tokenizer;
  if (!init.empty()) {
    const data::TokenizerPointer kept = tokenizer_of_run(run);
    return kept ? kept : tokenizer_of_run(init, load_trained_language_model(init)->config().tokenizer);
  }
  if (named == "bytes") return nullptr;
  if (!classifies_texts(config.data.task)) {
    throw UserError(fmt::format("settings: data.tokenizer is for texts; the task '{}' has none", config.data.task));
  }
  if (named == "words" || named == "sentencepiece") {
    throw UserError(
        fmt::format("settings: data.tokenizer='{}' is learned by language models alone; for a classifier give the file "
                    "of one (cosformer data tokenizer)",
                    named));
  }
  if (config.data.max_length == 0) {
    throw UserError("settings: with data.tokenizer, say how many tokens of a text are read: data.max_length");
  }
  return kept_or_named_tokenizer(config, run);
}

data::TokenizerPointer tokenizer_of_classifier(const std::string& run) {
  const safetensors::Reader file(trained_weights_path(run));
  const auto found = file.metadata().find("cosformer.tokenizer");
  return found == file.metadata().end() ? nullptr : tokenizer_of_run(run, found->second);
}

}  // namespace cosformer::runs
