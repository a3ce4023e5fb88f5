// A picture of a run's curves, drawn by gnuplot.
#pragma once

#include <string>

namespace cosformer::cli {

// Draws RUN/curves.svg and RUN/curves.png from RUN/metrics.jsonl; returns what to tell the user: where it is, or why
// there is none.
std::string draw_curves(const std::string& run);

}  // namespace cosformer::cli
