// `cosformer bench peers`: this operator beside what people would use instead, in one Python process.
#pragma once

#include <CLI/CLI.hpp>

namespace cosformer::cli {

void add_bench_peers(CLI::App& app);

}  // namespace cosformer::cli
