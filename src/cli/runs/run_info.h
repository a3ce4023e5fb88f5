// What is known of a run without touching its data.
#pragma once

#include <string>

namespace cosformer::cli {

void print_run(const std::string& folder, bool as_json);

}  // namespace cosformer::cli
