// `cosformer predict` of text-to-text models: an answer to each text, written as the texts come.
#pragma once

#include "cli/runs/predict_options.h"

namespace cosformer::cli {

void predict_seq2seq(const PredictOptions& options);

}  // namespace cosformer::cli
