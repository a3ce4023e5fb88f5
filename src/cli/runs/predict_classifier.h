// `cosformer predict` of classifiers: labels with their probabilities, written as inputs come.
#pragma once

#include "cli/runs/predict_options.h"

namespace cosformer::cli {

void predict_classifier(const PredictOptions& options);

}  // namespace cosformer::cli
