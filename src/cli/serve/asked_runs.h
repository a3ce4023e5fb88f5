// Runs of classifiers and text-to-text models, as the server asks them.
#pragma once

#include <memory>
#include <string>

#include "serve/http/served_model.h"

namespace cosformer::cli {

// Of a run of any kind. Throws UserError when it cannot be served.
std::unique_ptr<serve::ServedModel> open_run_to_serve(const std::string& run, const serve::ServedModelOptions& options);

}  // namespace cosformer::cli
