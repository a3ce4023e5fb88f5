// `cosformer eval` for runs of the task recall.
#pragma once

#include "cli/eval/eval_options.h"

namespace cosformer::cli {

// Accuracy over all queries, by the number of pairs and by distance; several runs are asked the texts of the first.
void eval_recall(const EvalOptions& options);

}  // namespace cosformer::cli
