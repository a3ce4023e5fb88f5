// Options that do nothing for the kind of run at hand are refused, not passed over in silence.
#pragma once

#include <string>
#include <vector>

#include <CLI/CLI.hpp>

namespace cosformer::cli {

// Throws UserError when one of the options ("--write") was given; `why` completes "--write ": "is for text-to-text
// runs; 'RUN' is a classifier".
void refuse_given(const CLI::App& app, const std::vector<std::string>& options, const std::string& why);

}  // namespace cosformer::cli
