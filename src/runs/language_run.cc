#include "runs/language_run.h"

#include <filesystem>
#include <optional>

#include <fmt/core.h>

#include "base/error.h"
#include "data/tokenizers/tokenizer_file.h"
#include "models/language/language_model_file.h"
#include "models/text_to_text/encoder_decoder.h"
#include "runs/run_bundle.h"
#include "runs/run_folder.h"

namespace cosformer::runs {

namespace fs = std::filesystem;

LanguageRun open_language_run(const std::string& folder) {
  const bool is_bundle = is_file(folder);
  const std::string weights = is_bundle ? folder : (fs::path(folder) / "best.safetensors").string();
  std::optional<std::string> bundled;  // tokenizer
  if (is_bundle) bundled = read_bundle(folder).tokenizer;
  if (!is_bundle && !fs::is_directory(folder))
    throw UserError(fmt::format("'{}' is not a run: there is no such folder", folder));
  if (!fs::exists(weights)) {
    if (!fs::exists(fs::path(folder) / "config.toml")) {
      throw UserError(fmt::format("'{}' is not a run: it has neither settings (config.toml) nor weights", folder));
    }
    throw UserError(fmt::format(
        "'{}' has no trained weights (best.safetensors); cosformer train --resume {} makes them at its next evaluation",
        folder, folder));
  }
  if (models::is_encoder_decoder(weights)) {
    throw UserError(
        fmt::format("'{}' is a text-to-text model, which answers texts instead of continuing them; cosformer predict "
                    "{} --input FILE asks it",
                    folder, folder));
  }
  if (!models::is_language_model(weights)) {
    throw UserError(
        fmt::format("'{}' holds a classifier, which writes no text; cosformer predict asks it, and cosformer train "
                    "makes language models too",
                    folder));
  }
  if ((is_bundle || is_run(folder)) && is_recall(read_run(folder))) {
    throw UserError(fmt::format(
        "'{}' is a recall model, which knows tokens of its task alone and writes no text; cosformer eval {} "
        "tells how good it is",
        folder, folder));
  }
  LanguageRun run;
  run.model = models::load_language_model(weights);
  const std::string saved = (fs::path(folder) / "tokenizer").string();
  run.tokenizer = bundled             ? data::parse_tokenizer(*bundled, folder)
                  : fs::exists(saved) ? data::open_tokenizer(saved)
                                      : data::byte_tokenizer();
  const std::string& expected = run.model->config().tokenizer;
  if (!expected.empty()) data::require_tokenizer(*run.tokenizer, expected, fmt::format("the run '{}'", folder));
  return run;
}

}  // namespace cosformer::runs
