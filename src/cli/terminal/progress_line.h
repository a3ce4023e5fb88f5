// The progress line that the callbacks of src/data draw.
#pragma once

#include <functional>
#include <string>

#include "data/tasks/generated_splits.h"

namespace cosformer::cli {

// Draws a line named `what` from (done, total) calls.
data::Progress progress_line(const std::string& what, const std::string& unit);

// Draws one from the numbers of units done since the last call.
std::function<void(std::size_t)> progress_line(const std::string& what, const std::string& unit, std::size_t total);

}  // namespace cosformer::cli
