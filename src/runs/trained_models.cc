#include "runs/trained_models.h"

#include <fmt/core.h>

#include "base/error.h"
#include "base/formats/safetensors.h"
#include "models/language/language_model_file.h"
#include "models/model_size.h"
#include "models/trained_weights.h"
#include "runs/run_folder.h"

namespace cosformer::runs {
namespace {

// Throws UserError that says what the file holds instead and what asks it.
void require_kind(const std::string& folder, const std::string& path, const std::string& wanted) {
  const bool is_pair = models::is_encoder_decoder(path);
  const bool is_recalling = models::is_language_model(path) && is_recall(read_run(folder));
  const bool is_lm = models::is_language_model(path) && !is_recalling;
  const std::string found = is_lm          ? "language model"
                            : is_recalling ? "recall model"
                            : is_pair      ? "text-to-text model"
                                           : "classifier";
  if (found == wanted) return;
  if (is_recalling) {
    throw UserError(fmt::format(
        "'{}' is a recall model, whose texts are generated, not a {}; cosformer eval {} tells how good it is", folder,
        wanted, folder));
  }
  // A masked model neither continues texts nor answers them.
  const bool is_masked = is_lm && read_run(folder).data.task == "mlm";
  throw UserError(fmt::format(
      "'{}' is a {}{}, not a {}; cosformer eval {} tells how good it is{}", folder, is_masked ? "masked " : "", found,
      wanted, folder,
      is_masked
          ? fmt::format(
                ", and cosformer train --task text_files --data FILE --set train.init={} begins a classifier as it",
                folder)
      : is_lm ? fmt::format(", and cosformer generate {} continues texts", folder)
              : fmt::format(", and cosformer predict {} --input FILE asks it", folder)));
}

}  // namespace

std::shared_ptr<models::Classifier> load_trained_classifier(const std::string& folder) {
  const std::string path = trained_weights_path(folder);
  require_kind(folder, path, "classifier");
  const safetensors::Reader file(path);
  const auto found = file.metadata().find("cosformer.model");
  if (found == file.metadata().end()) {
    throw UserError(fmt::format("'{}' does not tell its model ('cosformer.model' is missing from its metadata)", path));
  }
  const models::ModelConfig config = models::model_config_from_toml(found->second, path);
  models::require_numbers(file, models::size_of(config, config.layers));
  auto model = std::make_shared<models::Classifier>(config);
  models::load_trained_weights(path, *model);
  return model;
}

std::shared_ptr<models::LanguageModel> load_trained_language_model(const std::string& folder) {
  const std::string path = trained_weights_path(folder);
  require_kind(folder, path, "language model");
  return models::load_language_model(path);
}

std::shared_ptr<models::LanguageModel> load_trained_recall_model(const std::string& folder) {
  const std::string path = trained_weights_path(folder);
  require_kind(folder, path, "recall model");
  return models::load_language_model(path);
}

std::shared_ptr<models::EncoderDecoder> load_trained_encoder_decoder(const std::string& folder) {
  const std::string path = trained_weights_path(folder);
  require_kind(folder, path, "text-to-text model");
  return models::load_encoder_decoder(path);
}

}  // namespace cosformer::runs
