#include "runs/trained_models.h"

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
  const bool is_lm = models::is_language_model(path), is_pair = models::is_encoder_decoder(path);
  const std::string found = is_lm ? "language model" : is_pair ? "text-to-text model" : "classifier";
  if (found == wanted) return;
  // A masked model neither continues texts nor answers them.
  const bool is_masked = is_lm && read_run(folder).data.task == "mlm";
  throw UserError("'" + folder + "' is a " + (is_masked ? "masked " : "") + found + ", not a " + wanted +
                  "; cosformer eval " + folder + " tells how good it is" +
                  (is_masked ? ", and cosformer train --task text_files --data FILE --set train.init=" + folder +
                                   " begins a classifier as it"
                   : is_lm ? ", and cosformer generate " + folder + " continues texts"
                           : ", and cosformer predict " + folder + " --input FILE asks it"));
}

}  // namespace

std::shared_ptr<models::Classifier> load_trained(const std::string& folder) {
  const std::string path = trained_weights_path(folder);
  require_kind(folder, path, "classifier");
  const safetensors::Reader file(path);
  const auto found = file.metadata().find("cosformer.model");
  if (found == file.metadata().end()) {
    throw UserError("'" + path + "' does not tell its model ('cosformer.model' is missing from its metadata)");
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

std::shared_ptr<models::EncoderDecoder> load_trained_encoder_decoder(const std::string& folder) {
  const std::string path = trained_weights_path(folder);
  require_kind(folder, path, "text-to-text model");
  return models::load_encoder_decoder(path);
}

}  // namespace cosformer::runs
