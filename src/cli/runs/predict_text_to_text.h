// `cosformer predict` of text-to-text models: an answer to each text, written as the texts come.
#pragma once

#include "cli/runs/predict_options.h"

namespace cosformer::cli {

void predict_text_to_text(const PredictOptions& options);

}  // namespace cosformer::cli
