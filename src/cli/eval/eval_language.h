// `cosformer eval` of language models.
#pragma once

#include "cli/eval/eval_options.h"

namespace cosformer::cli {

void eval_language(const EvalOptions& options);

}  // namespace cosformer::cli
