// `cosformer eval` of text-to-text models.
#pragma once

#include "cli/eval/eval_options.h"

namespace cosformer::cli {

void eval_text_to_text(const EvalOptions& options);

}  // namespace cosformer::cli
