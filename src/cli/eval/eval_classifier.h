// `cosformer eval` of classifiers.
#pragma once

#include "cli/eval/eval_options.h"

namespace cosformer::cli {

void eval_classifier(const EvalOptions& options);

}  // namespace cosformer::cli
