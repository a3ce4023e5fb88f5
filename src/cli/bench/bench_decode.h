// `cosformer bench decode`: what the next token of a language model costs, by how much text is behind it.
#pragma once

#include <CLI/CLI.hpp>

namespace cosformer::cli {

void add_bench_decode(CLI::App& app);

}  // namespace cosformer::cli
