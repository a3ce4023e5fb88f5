// A picture of how a language model's loss falls with what it has read before.
#pragma once

#include <string>
#include <vector>

#include "cli/train/floor_lines.h"
#include "train/jobs/language_evaluation.h"

namespace cosformer::cli {

// Draws RUN/context.svg and .png, the floors (in nats per token) as level lines; returns what to tell the user: where
// it is, or why there is none.
std::string draw_contexts(const std::string& run, const std::string& title,
                          const std::vector<train::ContextRange>& ranges, const std::vector<PlotFloor>& floors);

}  // namespace cosformer::cli
